package dbtest

import (
	"strings"
	"sync"
)

// Log collects what is logged, by any goroutine.
type Log struct {
	mu   sync.Mutex // guards text
	text strings.Builder
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was logged so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
