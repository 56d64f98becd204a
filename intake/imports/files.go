package imports

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// optionsHash is the hash of all that decides which lines of a file count.
func (r *run) optionsHash(a *app.App) [sha256.Size]byte {
	rules := r.Rules
	settings := []any{r.Server, rules.String(), r.After.Unix(), a.Tz, a.Sites, a.Ignore, a.Bots, a.Visitor}
	return sha256.Sum256(fmt.Appendf(nil, "%q", settings))
}

// begin notes in the tables that this import reads the files that have changed since one read them to their
// end, and returns them.
func (r *run) begin(ctx context.Context) (changed []*source, err error) {
	r.began = r.app.hash
	inodes := []string{}
	for _, s := range r.sources {
		if inode := s.file.inode(); inode != "" {
			inodes = append(inodes, inode)
		}
	}
	err = r.tx(ctx, func(q *Queries) error {
		rows, err := q.ReadLogsGet(ctx, ReadLogsGetParams{AppID: r.app.App().ID, Options: r.app.hash[:], Inodes: inodes})
		if err != nil {
			return err
		}
		states := make(map[string]string, len(rows))
		for _, row := range rows {
			states[row.Inode] = row.State
		}
		changed, inodes = nil, inodes[:0]
		for _, s := range r.sources {
			inode := s.file.inode()
			if s.size = s.file.size(); inode != "" && states[inode] != "" && states[inode] == s.file.state() && !r.Follow {
				r.summary.Unchanged++
				continue
			}
			if changed = append(changed, s); inode != "" {
				inodes = append(inodes, inode)
			}
		}
		slices.Sort(inodes)
		if len(inodes) == 0 {
			return nil
		}
		p := ReadLogsBeginParams{AppID: r.app.App().ID, Options: r.app.hash[:], Run: r.name, Inodes: slices.Compact(inodes)}
		return q.ReadLogsBegin(ctx, p)
	})
	return changed, err
}

// remember notes in the tables which files were read and counted to their end.
func (r *run) remember(ctx context.Context, files []*source) error {
	if err := r.retry.Do(ctx, func() error { return r.refresh(ctx) }); err != nil || r.app.hash != r.began {
		return err // with other settings, other lines may count
	}
	end := ReadLogsEndParams{AppID: r.app.App().ID, Options: r.app.hash[:], Run: r.name}
	for _, s := range files {
		if s.state != "" {
			end.Inodes, end.States = append(end.Inodes, s.file.inode()), append(end.States, s.state)
		}
	}
	if len(end.Inodes) == 0 {
		return nil
	}
	return r.tx(ctx, func(q *Queries) error { return q.ReadLogsEnd(ctx, end) })
}

// findServers finds out whether lines of other named servers were counted.
func (r *run) findServers(ctx context.Context) error {
	if r.Server == "" || r.Another {
		return nil
	}
	return r.app.DB().Read(ctx, func(q *db.Queries) (err error) {
		r.servers, err = New(q.Tx()).ServersNamed(ctx, r.app.App().ID, r.Server)
		return unanswered(err)
	})
}

// tx writes to the tables, and waits for a database that is away.
func (r *run) tx(ctx context.Context, f func(q *Queries) error) error {
	return r.retry.Do(ctx, func() error {
		return unanswered(r.app.DB().InTx(ctx, func(q *db.Queries) error { return f(New(q.Tx())) }))
	})
}

func unanswered(err error) error {
	if err == nil {
		return nil
	}
	return visit.Unanswered(err)
}

const (
	// touchEvery is how often an import says that it still uses its position: an old one is deleted.
	touchEvery = time.Hour
	// pauseEvery is how often an import renews its pause of retention.
	pauseEvery = 5 * time.Minute
	// manyCounted visits are so many that running instances had better read the visitors again than find
	// out about each of them by a batch that is written twice.
	manyCounted = 1000
)

// openPosition opens the import's position, or says that it is still used.
func (r *run) openPosition(ctx context.Context) error {
	if r.DryRun || time.Since(r.opened) < touchEvery {
		return nil
	}
	position, err := r.app.OpenQueue(ctx, positionSource, r.name, 0)
	if err != nil {
		return err
	}
	r.position, r.opened = position, time.Now()
	return nil
}

// positionSource is the source of the positions of imports.
const positionSource = "logs"

// keepPaused keeps visits from being let go while they are imported. Those of followed files are of the
// present.
func (r *run) keepPaused(ctx context.Context) error {
	if r.following || r.DryRun || time.Since(r.paused) < cmp.Or(r.pauses, pauseEvery) {
		return nil
	}
	err := r.app.PauseRetention(ctx, r.pause)
	if err == nil && r.position != nil { // which stays where it is
		_, err = r.app.OpenQueue(ctx, positionSource, r.name, 0)
	}
	if err == nil {
		r.paused = time.Now()
	}
	return err
}

// resume ends the pause of retention, and has running instances read the visitors again.
func (r *run) resume(ctx context.Context) error {
	if r.summary.Counted >= manyCounted {
		if err := r.app.TellInstances(ctx); err != nil {
			return err
		}
	}
	return r.app.ResumeRetention(ctx, r.pause)
}

// end deletes the import's position. If that fails, retention does so a week later.
func (r *run) end(ctx context.Context) {
	if r.position == nil || r.DryRun {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	_ = r.app.DB().InTx(ctx, func(q *db.Queries) error { return New(q.Tx()).ImportEnd(ctx, r.app.App().ID, r.name) })
}

const endWithin = 2 * time.Second
