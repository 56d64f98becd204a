package imports

import (
	"context"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// begin sets r.changed to the files that have changed since an earlier import read them. A dry run reads all files, and so
// does an import that follows them. Except in a dry run, begin records in the table read_logs that this import reads the
// files in r.changed.
func (r *run) begin(ctx context.Context) error {
	if r.DryRun {
		r.changed = r.sources
		return nil
	}
	r.startHash = r.app.hash
	inodes := []string{}
	for _, s := range r.sources {
		inodes = append(inodes, s.file.inode())
	}
	err := r.tx(ctx, func(q *Queries) error {
		rows, err := q.ReadLogsGet(ctx, ReadLogsGetParams{AppID: r.app.App().ID, Options: r.startHash[:], Inodes: inodes})
		if err != nil {
			return err
		}
		known := make(map[string]ReadLogsGetRow, len(rows))
		for _, row := range rows {
			known[row.Inode] = row
		}
		var read []string
		r.changed = nil
		for _, s := range r.sources {
			inode := s.file.inode()
			s.earlier = known[inode]
			if state := s.file.state(); state != "" && s.earlier.State == state && !r.Follow {
				continue
			}
			if r.changed = append(r.changed, s); inode != "" {
				read = append(read, inode)
			}
		}
		slices.Sort(read)
		p := ReadLogsBeginParams{AppID: r.app.App().ID, Options: r.startHash[:], Run: r.name, Inodes: slices.Compact(read)}
		return q.ReadLogsBegin(ctx, p)
	})
	r.summary.Unchanged = int64(len(r.sources) - len(r.changed))
	return err
}

// remember records in the table read_logs how far this import has read the files. If settings have changed since begin, it
// records nothing. Then a later import reads the files again, because other lines may count now.
func (r *run) remember(ctx context.Context) error {
	end := ReadLogsEndParams{AppID: r.app.App().ID, Options: r.startHash[:], Run: r.name}
	for _, s := range r.changed {
		if s.file.inode() == "" || s.refused || r.app.hash != r.startHash {
			continue
		}
		var k ReadLogsGetRow
		if s.file.packed == plain && !s.headed {
			k.Start, k.Lines = s.numbers.start(s.place, s.number)
			k.Place, k.Sum = s.place, int64(s.sum.Sum64()) //nolint:gosec // the same bits
		}
		end.Inodes, end.States, end.Places = append(end.Inodes, s.file.inode()), append(end.States, s.state), append(end.Places, k.Place)
		end.Sums, end.Starts, end.Lines = append(end.Sums, k.Sum), append(end.Starts, k.Start), append(end.Lines, k.Lines)
	}
	if len(end.Inodes) == 0 {
		return nil
	}
	return r.tx(ctx, func(q *Queries) error { return q.ReadLogsEnd(ctx, end) })
}

// skip skips the part of a file that an earlier import read, if the file still begins with this part. It does not skip
// lines of the last ten minutes: they must be numbered again, so that later occurrences of the same lines get the right
// numbers.
func (s *source) skip(seed uint64) error {
	s.sum = xxhash.NewWithSeed(seed)
	if s.file.handle == nil || s.earlier.Place == 0 {
		return nil
	}
	part := io.NewSectionReader(s.file.handle, 0, s.earlier.Place)
	sum := xxhash.NewWithSeed(seed)
	n, err := io.Copy(sum, io.LimitReader(part, s.earlier.Start))
	if err != nil {
		return err
	}
	begin := *sum
	rest, err := io.Copy(sum, part)
	if err != nil || n+rest < s.earlier.Place || int64(sum.Sum64()) != s.earlier.Sum { //nolint:gosec // the same bits
		return err
	}
	s.place, s.number, s.sum = s.earlier.Start, s.earlier.Lines, &begin
	s.summary.Skipped += s.number
	return nil
}
