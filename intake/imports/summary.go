package imports

import (
	"sync"

	"footfall/intake/logs"
)

// Summary is what became of the lines of an import.
type Summary struct {
	Lines      int64 // that were read
	Counted    int64 // visits; in a dry run, that would be
	Others     int64 // visits that another import of the same log has counted meanwhile
	Before     int64 // lines that an import has read before
	Left       map[Reason]int64
	Formats    map[logs.Format]int64
	Sites      map[string]int64 // visits
	From, To   int32            // days of visits; 0: there were none
	Unread     []Unread
	Unreadable int64
	Problems   []string // that somebody must look at
	Notes      []string // of what needs nothing

	mu sync.Mutex // guards Left, to which both goroutines of a feed add
}

// Unread is a line that could not be read.
type Unread struct {
	File string
	Line int64
	Why  string
}

// mostUnread is how many lines that could not be read are named.
const mostUnread = 20

// mostSites is how many sites are told apart.
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

func (s *Summary) visit(site string, day int32) {
	if _, counted := s.Sites[site]; counted || len(s.Sites) < mostSites {
		s.Sites[site]++
	}
	if s.From == 0 || day < s.From {
		s.From = day
	}
	s.To = max(s.To, day)
}
