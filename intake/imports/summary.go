package imports

import (
	"slices"
	"sync"

	"footfall/intake/logs"
)

// Summary is what became of the lines of an import.
type Summary struct {
	Lines      int64 // that were read
	Counted    int64 // visits; in a dry run, that would be
	Before     int64 // lines that were counted before
	Twice      int64 // lines that another file of this import had, or that another import counted at the same time
	Unchanged  int64 // files that were not read
	Skipped    int64 // lines that were not read, since an earlier import has counted the beginning of their file
	Left       map[Reason]int64
	Formats    map[logs.Format]int64
	Sites      map[string]int64 // visits
	From, To   int32            // days of visits; 0: there were none
	Unread     []Unread
	Unreadable int64
	Problems   []string // that somebody must look at
	Notes      []string // of what needs nothing

	mu sync.Mutex // guards Left, Before and Twice, to which both goroutines of a feed add
}

// Unread is a line that could not be read.
type Unread struct {
	File string
	Line int64
	Why  string
}

// mostUnread is how many lines that could not be read are named.
const mostUnread = 20

// mostSites is the number of sites that are counted separately.
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

// addCounted adds a line that does not count; before: it was counted before this import.
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
