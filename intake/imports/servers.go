package imports

import (
	"context"
	"net/netip"
	"slices"

	"footfall/record/feed"
)

const (
	// comparedLines is how many lines of a file checkServer compares with the counted lines of other servers.
	comparedLines = 20
	// mostQueued is the maximum number of lines in the queue among which checkServer searches for lines to compare.
	mostQueued = 2000
	// A monitoring program may send the same requests to all servers. So equal lines prove nothing if they have fewer than
	// fewestVisitors different visitors and fewer than fewestPages different pages.
	fewestVisitors = 4
	fewestPages    = 20
)

// findServers sets r.servers to true if lines were counted for another named server of the app. Then checkServer must
// compare the files with these lines.
func (r *run) findServers(ctx context.Context) error {
	if r.Server == "" || r.Another {
		return nil
	}
	return r.tx(ctx, func(q *Queries) (err error) {
		r.servers, err = q.ServersNamed(ctx, r.app.App().ID, r.Server)
		return err
	})
}

// checkServer refuses a file if its first lines were already counted for another named server, because the operator has
// then probably passed the wrong name in --server. It only compares lines that would count.
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
		e := s.queue[at] // a copy, because the feed later sets the fate of the queued entry
		if e.Data.recorded {
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

// haveManyVisitors reports whether the lines have so many visitors or pages that a monitoring program cannot have caused
// all of them.
func haveManyVisitors(lines []*feed.Entry[logLine]) bool {
	visitors, pages := map[netip.Addr]bool{}, map[string]bool{}
	for _, e := range lines {
		visitors[e.Visit.Visitor] = true
		pages[e.Visit.Target.Site+e.Visit.Target.Page] = true
	}
	return len(visitors) >= fewestVisitors || len(pages) >= fewestPages
}

// serverOf returns the name of another server for which all these lines were already counted, or "" if there is none.
func (d *reader) serverOf(ctx context.Context, lines []*feed.Entry[logLine]) (server string, err error) {
	all := newCounted(d.app.DB(), d.app.App().ID, "")
	var hours []int32
	for _, e := range lines {
		if !slices.Contains(hours, e.Data.hour) {
			hours = append(hours, e.Data.hour)
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
			return all.hours[e.Data.hour].numberOf(other, e.Data.hash) < e.Data.number
		}) {
			return other, nil
		}
	}
	return "", nil
}

// numberOf returns how often a line was counted for a server.
func (h *hourLines) numberOf(server string, hash uint64) int {
	l := h.servers[server]
	if l == nil {
		return 0
	}
	return l.before.count(hash) + l.since.count(hash)
}
