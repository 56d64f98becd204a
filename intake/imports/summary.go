package imports

import (
	"slices"
	"sync"

	"footfall/intake/logs"
)

// Summary contains the results of an import.
type Summary struct {
	Lines      int64 // lines that were read
	Counted    int64 // visits; in a dry run, visits that would be counted
	Before     int64 // lines that were counted before this import
	Twice      int64 // lines that were in another file too, or that another import counted at the same time
	Unchanged  int64 // files that were not read
	Skipped    int64 // lines at the beginning of a file that were not read, because an earlier import has read them
	Left       map[Reason]int64
	Formats    map[logs.Format]int64
	Sites      map[string]int64 // visits
	From, To   int32            // days of the first and the last visit; 0: there was no visit
	Unread     []Unread
	Unreadable int64
	Problems   []string // the operator must solve them
	Notes      []string // no action is needed

	mu sync.Mutex // guards Left, Before and Twice, which both goroutines of a feed change
}

// Unread is a line that could not be read.
type Unread struct {
	File string
	Line int64
	Why  string
}

// mostUnread limits Summary.Unread.
const mostUnread = 20

// mostSites limits Summary.Sites.
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

// addCounted adds a line that was already counted. before means that the line was counted before this import.
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
