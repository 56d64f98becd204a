package imports

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"time"

	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/record/feed"
	"footfall/visit"
)

// service is what an import asks the rest of the service for.
type service interface {
	// refresh reads the settings of the app.
	refresh(ctx context.Context) (*settings, error)
	// inBook runs f while nobody else changes what is written of the app's logs. What f has written
	// stays if this returns nil.
	inBook(ctx context.Context, f func(b book) error) error
	// firstDay is the first day that the app still counts.
	firstDay(ctx context.Context) (int32, error)
	// latest is the latest time that is taken for now.
	latest() time.Time
	// count counts what a reader reads.
	count(ctx context.Context, d *reader) error
	pauseRetention(ctx context.Context) error
	// end ends an import that has counted so many visits.
	end(ctx context.Context, counted int64) error
}

// settings are what an import knows of the app.
type settings struct {
	id     int32
	zone   *time.Location
	prefix int // of IPv6, that tells visitors apart
	hashes *hashes
}

// database is the service as it is.
type database struct {
	counter  *counter.Counter
	name     string // of the app
	counting *counter.Counting
	pause    counter.Pause
}

func (d *database) refresh(ctx context.Context) (*settings, error) {
	g, err := d.permit(ctx)
	if err != nil {
		return nil, err
	}
	h, err := hashesOf(ctx, g)
	if err != nil {
		return nil, err
	}
	if d.counting == nil {
		if err := withBook(ctx, g, func(t tables) error { return t.convert(ctx, h) }); err != nil {
			return nil, err
		}
	}
	d.counting = g
	a := g.App()
	return &settings{a.ID, a.Zone, int(a.Ipv6Prefix), h}, nil
}

// permit asks for the permission to count visits of the app.
func (d *database) permit(ctx context.Context) (*counter.Counting, error) {
	g, err := d.counter.AuthorizeOperator(ctx, d.name)
	if err == nil && g.App().Mode == app.ByID {
		return nil, visit.Errorf(visit.Invalid, "app",
			"%s tells visitors apart by ids, which no log has: import into an app that goes by addresses", d.name)
	}
	return g, err
}

func (d *database) inBook(ctx context.Context, f func(b book) error) error {
	return withBook(ctx, d.counting, func(t tables) error { return f(t) })
}

func (d *database) firstDay(ctx context.Context) (int32, error) { return d.counting.FirstDay(ctx) }

func (d *database) latest() time.Time { return d.counting.Latest() }

func (d *database) count(ctx context.Context, r *reader) error {
	r.permit = d.permit
	f := feed.Feed[read]{Source: r, Recorder: d.counting.Recorder(), Retry: r.retry, Fill: true, DryRun: r.DryRun}
	return f.Run(ctx)
}

func (d *database) pauseRetention(ctx context.Context) error {
	return d.counting.PauseRetention(ctx, d.pause)
}

// manyCounted visits are so many that the instances which run had better read the visitors anew
// than find out about each of them by a batch that is written twice.
const manyCounted = 1000

// end lets the night's work go on, and the instances know of those who came in.
func (d *database) end(ctx context.Context, counted int64) error {
	if counted >= manyCounted {
		if err := d.counting.TellInstances(ctx); err != nil {
			return err
		}
	}
	return d.counting.ResumeRetention(ctx, d.pause)
}

// hashesOf are those of an app's logs.
func hashesOf(ctx context.Context, g *counter.Counting) (*hashes, error) {
	key, daily, err := g.LogKey(ctx)
	if err != nil {
		return nil, err
	}
	fresh := make([]byte, sha256.Size)
	_, _ = rand.Read(fresh) // never fails: it would end the process
	var days map[int32][]byte
	err = g.DB().InTx(ctx, func(q *db.Queries) (err error) {
		if key == nil {
			key, err = New(q.Tx()).LogKeyMake(ctx, g.App().ID, fresh)
		}
		if err != nil || !daily {
			return err
		}
		rows, err := New(q.Tx()).LogDayKeys(ctx)
		days = map[int32][]byte{}
		for _, row := range rows {
			days[row.DayID] = row.Key
		}
		return err
	})
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	return newHashes(key, days), nil
}

// HashOldLogs writes anew what 0.1.0 has written of logs, of all apps whose key this program has.
func HashOldLogs(ctx context.Context, d *db.DB, c *counter.Counter) error {
	var names []string
	if err := d.Read(ctx, func(q *db.Queries) (err error) { names, err = New(q.Tx()).OldLogApps(ctx); return err }); err != nil {
		return visit.Unanswered(err)
	}
	for _, name := range names {
		g, err := c.AuthorizeOperator(ctx, name)
		if err != nil {
			continue // it lacks the secret, or the app is gone
		}
		h, err := hashesOf(ctx, g)
		if err == nil {
			err = withBook(ctx, g, func(t tables) error { return t.convert(ctx, h) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}
