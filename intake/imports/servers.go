package imports

import (
	"context"
	"net/netip"
	"slices"

	"footfall/record/feed"
)

const (
	// comparedLines is the number of lines of a file that are compared with lines of other servers.
	comparedLines = 20
	// mostQueued is the maximum number of queued lines among which the lines to compare are searched.
	mostQueued = 2000
	// Lines with fewer than fewestVisitors visitors and fewer than fewestPages pages may come from a monitor that sends the
	// same requests to all servers.
	fewestVisitors = 4
	fewestPages    = 20
)

// findServers finds out whether files must be compared with the lines of other named servers.
func (r *run) findServers(ctx context.Context) error {
	if r.Server == "" || r.Another {
		return nil
	}
	return r.tx(ctx, func(q *Queries) (err error) {
		r.servers, err = q.ServersNamed(ctx, r.app.App().ID, r.Server)
		return err
	})
}

// checkServer refuses a file if logs of another named server already contain the first lines of the file that would count.
func (d *reader) checkServer(ctx context.Context, s *source) error {
	decide, err := d.Decide(ctx)
	if err != nil {
		return err
	}
	var lines []*feed.Entry[logLine]
	for at := 0; len(lines) < comparedLines && at < mostQueued; at++ {
		for len(s.queue) <= at && !s.ended {
			if err := d.readLine(ctx, s); err != nil {
				return err
			}
		}
		if len(s.queue) <= at {
			return nil
		}
		e := s.queue[at] // a copy, because the feed decides again
		if e.Of.recorded {
			continue
		}
		if err := decide(ctx, &e); err != nil {
			return err
		}
		if e.Fate == feed.Counts {
			lines = append(lines, &e)
		}
	}
	if len(lines) < comparedLines || !haveManyVisitors(lines) {
		return nil
	}
	server, err := d.serverOf(ctx, lines)
	if err != nil || server == "" {
		return err
	}
	s.refuse("the counted logs of the server %s already contain its first %d lines that would count: if that server wrote the file, "+
		"import it with --server %[1]s; if another server wrote it, add --another", server, comparedLines)
	return nil
}

// haveManyVisitors reports whether the lines have so many visitors or pages that a monitor cannot have caused them.
func haveManyVisitors(lines []*feed.Entry[logLine]) bool {
	visitors, pages := map[netip.Addr]bool{}, map[string]bool{}
	for _, e := range lines {
		visitors[e.Visit.Visitor] = true
		pages[e.Visit.Target.Site+e.Visit.Target.Page] = true
	}
	return len(visitors) >= fewestVisitors || len(pages) >= fewestPages
}

// serverOf returns another named server whose counted logs contain all the lines, or "".
func (d *reader) serverOf(ctx context.Context, lines []*feed.Entry[logLine]) (server string, err error) {
	all := newCounted(d.app.DB(), d.app.App().ID, "")
	var hours []int32
	for _, e := range lines {
		if !slices.Contains(hours, e.Of.hour) {
			hours = append(hours, e.Of.hour)
		}
	}
	if err := d.retry.Do(ctx, func() error { return all.load(ctx, hours) }); err != nil {
		return "", err
	}
	for other := range all.hours[hours[0]].servers {
		if other == "" || other == d.Server {
			continue
		}
		if !slices.ContainsFunc(lines, func(e *feed.Entry[logLine]) bool {
			return all.hours[e.Of.hour].numberOf(other, e.Of.hash) < e.Of.number
		}) {
			return other, nil
		}
	}
	return "", nil
}

// numberOf returns how often a line of a server was counted.
func (h *hourLines) numberOf(server string, hash uint64) int {
	l := h.servers[server]
	if l == nil {
		return 0
	}
	return l.before.count(hash) + l.since.count(hash)
}
