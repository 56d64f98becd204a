package storm

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// beginFaults lets the faults begin, and returns what ends them. All instances are up then.
func (s *storm) beginFaults() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, fault := range []struct {
		every time.Duration
		do    func(r *rand.Rand)
	}{{400 * time.Millisecond, s.cut}, {1500 * time.Millisecond, s.killInstance}, {3 * time.Second, s.killBackend}} {
		s.part(ctx, &all, fault.every, func(r *rand.Rand) {
			if s.waiting.Load() == 0 {
				fault.do(r)
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// cut cuts some connections.
func (s *storm) cut(r *rand.Rand) { s.cutOff("storm %", 1+r.IntN(2)) }

func (s *storm) cutOff(whose string, most int) {
	var n int
	err := s.own.QueryRow(context.Background(), `
		SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
		FROM (SELECT pid FROM pg_stat_activity WHERE application_name LIKE $1 ORDER BY random() LIMIT $2) AS them`, whose, most).Scan(&n)
	if err == nil {
		s.some("connections cut", n)
	} else {
		assert.True(s, interrupted(err), "%v", err)
	}
}

// killInstance kills an instance: all of its connections are cut, and another instance takes its
// place, which remembers nothing and has another clock.
func (s *storm) killInstance(r *rand.Rand) {
	in := s.any(r)
	s.cutOff("storm "+in.name, 1000)
	in.now.Load().Close()
	s.some("instances killed", 1)
	s.untilAnswered("start an instance", func() bool { return s.start(in, ahead[r.IntN(len(ahead))]) })
}

// killBackend kills a process of PostgreSQL, which then ends all others and recovers.
func (s *storm) killBackend(*rand.Rand) {
	var pid int
	err := s.own.QueryRow(context.Background(), `
		SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'storm %' ORDER BY state = 'active' DESC, random() LIMIT 1`).Scan(&pid)
	if err != nil {
		assert.True(s, interrupted(err), "%v", err)
		return
	}
	if syscall.Kill(pid, syscall.SIGKILL) == nil { // it may have ended by itself
		s.some("backends killed", 1)
	}
}

// noDeadlock looks for deadlocks in the log of the server, since what it counts of them does not
// outlive its processes.
func (s *storm) noDeadlock() {
	var text strings.Builder
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".log" {
			return nil //nolint:nilerr // a server removes files of its own while they are looked at
		}
		read, err := os.ReadFile(path)
		text.Write(read)
		return err
	})
	require.NoError(s, err)
	assert.Contains(s, text.String(), "was terminated by signal 9", "this is not the log of the server")
	assert.NotContains(s, text.String(), "deadlock detected")
}
