package imports

import (
	"context"
	"slices"
)

// begin notes in the tables that this import reads the files that have changed since one read them to their
// end.
func (r *run) begin(ctx context.Context) error {
	if r.DryRun {
		r.changed = r.sources
		return nil
	}
	r.began = r.app.hash
	inodes := []string{}
	for _, s := range r.sources {
		inodes = append(inodes, s.file.inode())
	}
	err := r.tx(ctx, func(q *Queries) error {
		rows, err := q.ReadLogsGet(ctx, ReadLogsGetParams{AppID: r.app.App().ID, Options: r.began[:], Inodes: inodes})
		if err != nil {
			return err
		}
		states := make(map[string]string, len(rows))
		for _, row := range rows {
			states[row.Inode] = row.State
		}
		var read []string
		r.changed = nil
		for _, s := range r.sources {
			inode := s.file.inode()
			if state := s.file.state(); state != "" && states[inode] == state && !r.Follow {
				continue
			}
			if r.changed = append(r.changed, s); inode != "" {
				read = append(read, inode)
			}
		}
		slices.Sort(read)
		p := ReadLogsBeginParams{AppID: r.app.App().ID, Options: r.began[:], Run: r.name, Inodes: slices.Compact(read)}
		return q.ReadLogsBegin(ctx, p)
	})
	r.summary.Unchanged = int64(len(r.sources) - len(r.changed))
	return err
}

// remember notes in the tables which files were read and counted to their end. With other settings, other
// lines may count.
func (r *run) remember(ctx context.Context) error {
	end := ReadLogsEndParams{AppID: r.app.App().ID, Options: r.began[:], Run: r.name}
	for _, s := range r.changed {
		if s.state != "" && r.app.hash == r.began {
			end.Inodes, end.States = append(end.Inodes, s.file.inode()), append(end.States, s.state)
		}
	}
	if len(end.Inodes) == 0 {
		return nil
	}
	return r.tx(ctx, func(q *Queries) error { return q.ReadLogsEnd(ctx, end) })
}
