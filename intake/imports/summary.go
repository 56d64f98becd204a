package imports

import (
	"slices"
	"sync"

	"footfall/intake/logs"
)

// Summary contains the results of an import.
type Summary struct {
	Lines      int64 // number of lines that were read
	Counted    int64 // number of counted visits; in a dry run: number of visits that would be counted
	Before     int64 // number of lines that had already been counted before this import
	Twice      int64 // number of lines that this import found in two files, or that another import counted in the meantime
	Unchanged  int64 // number of files that were not read, because they have not changed since an earlier import
	Skipped    int64 // number of lines at the start of files that were not read, because an earlier import read them
	Left       map[Reason]int64
	Formats    map[logs.Format]int64
	Sites      map[string]int64 // number of visits by site
	From, To   int32            // days of the earliest and the latest visit; 0: no visit
	Unread     []Unread
	Unreadable int64
	Problems   []string // messages that require an action of the operator
	Notes      []string // messages that require no action

	mu sync.Mutex // guards Left, Before and Twice, which both goroutines of the feed change
}

// Unread is a line that could not be parsed, and the reason.
type Unread struct {
	File string
	Line int64
	Why  string
}

// mostUnread is the maximum length of Summary.Unread.
const mostUnread = 20

// mostSites is the maximum number of sites in Summary.Sites.
const mostSites = 10_000

func newSummary() *Summary {
	return &Summary{Left: map[Reason]int64{}, Formats: map[logs.Format]int64{}, Sites: map[string]int64{}}
}

func (s *Summary) unread(file string, line int64, why string) {
	s.Unreadable++
	if len(s.Unread) < mostUnread {
		s.Unread = append(s.Unread, Unread{file, line, why})
	}
}

func (s *Summary) leaveOut(why Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Left[why]++
}

// addCounted adds a line that was already counted to the summary. before means that it was counted before this import.
func (s *Summary) addCounted(before bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before {
		s.Before++
	} else {
		s.Twice++
	}
}

func (s *Summary) note(text string) { addOnce(&s.Notes, text) }

func addOnce(list *[]string, text string) {
	if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

func (s *Summary) visit(site string, day int32) {
	if _, counted := s.Sites[site]; counted || len(s.Sites) < mostSites {
		s.Sites[site]++
	}
	if s.From == 0 || day < s.From {
		s.From = day
	}
	s.To = max(s.To, day)
}
