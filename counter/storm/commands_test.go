package storm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/intake/imports"
	"footfall/record"
	"footfall/retention"
	"footfall/verify"
	"footfall/visit"
)

// atomicDay is the day on which a client started its present work.
type atomicDay = atomic.Int64

const idle = math.MaxInt64

// oldest returns the day on which the oldest work in progress started.
func (s *storm) oldest() int64 {
	day := s.today.Load()
	for i := range s.underWay {
		day = min(day, s.underWay[i].Load())
	}
	return day
}

// passDay lets a day pass, unless some work in progress started too long ago: a slow machine may not cause a visit to
// be refused as too old.
func (s *storm) passDay() {
	if today := s.today.Load(); s.oldest() >= today-held {
		s.setDay(today + 1)
	}
}

// retain runs retention by a clock that is behind all work in progress and the inbox, so that no day is closed before
// its last visit has been counted. The rows needed for the comparison are read before they are deleted.
func (s *storm) retain(*rand.Rand) {
	day := s.oldest()
	err := s.own.QueryRow(context.Background(), `
		SELECT least($1, min(day_date(day) - $2::date)) FROM inbox, unnest(days) AS day`, day, firstDay).Scan(&day)
	if err != nil {
		assert.True(s, interrupted(err), "%v", err)
		return
	}
	behind := func() time.Time { return firstDay.AddDate(0, 0, int(day)) }
	if !s.model.readRows() {
		return
	}
	soon := func(ctx context.Context, d time.Duration) error { pause(ctx, d/20); return ctx.Err() }
	s.untilAnswered("retention", func() bool {
		done, err := retention.NewRetainer(s.retains, retention.Options{Clock: behind, Pause: soon}).Run(context.Background())
		s.command("retention", err)
		if done != nil { // it was not skipped
			s.some("days closed", len(done.Closed))
			s.some("days dropped", len(done.Dropped))
			for _, day := range done.Visits {
				s.some("visits deleted", int(day.Visits))
			}
			for _, who := range done.Forgotten {
				s.some("visitors forgotten", int(who.Visitors))
			}
		}
		return err == nil || !interrupted(err)
	})
}

// verify proves all promises, in many snapshots. It also checks that each visitor of a page was counted at its site
// on the same day, which equal sums do not prove.
func (s *storm) verify() {
	s.untilAnswered("verify", func() bool {
		proof, err := verify.Run(context.Background(), s.proofs, verify.Options{Limit: 3, Jobs: 2, Within: 20 * time.Millisecond})
		if err != nil {
			assert.True(s, interrupted(err), "verify: %v", err)
			return false
		}
		for _, p := range proof.Promises {
			assert.Zero(s, p.Violations, "%s: %+v", p.Name, p.Offenders)
		}
		var alone []string
		err = s.own.QueryRow(context.Background(), `
			SELECT array_agg(format('%s %s on day %s', a.name, p.uri, v.day_id))
			FROM visits v JOIN pages p ON p.id = v.page_id JOIN apps a ON a.id = p.app_id AND a.deleted_at IS NULL
			LEFT JOIN visits_kept k ON k.app_id = a.id LEFT JOIN visits s ON s.page_id = p.site_id AND s.day_id = v.day_id AND s.ip = v.ip
			WHERE p.site_id IS NOT NULL AND v.day_id >= coalesce(k.from_day, 0) AND s.ip IS NULL`).Scan(&alone)
		if err != nil {
			assert.True(s, interrupted(err), "%v", err)
			return false
		}
		assert.Empty(s, alone, "pages with a visitor that their site lacks on that day")
		s.some("proofs", 1)
		return true
	})
}

func anyApp(r *rand.Rand) tenant { return apps[r.IntN(len(apps))] }

// process returns the commands of another process: its long work takes no slot from others.
func (s *storm) process() *admin.Admin {
	return s.admin.WithSlots(admin.NewSlots(context.Background()))
}

func (s *storm) eraseSomebody(r *rand.Rand) {
	_, err := s.process().EraseVisitor(context.Background(), wild[r.IntN(len(wild))].name, anyIP(r))
	s.command("erase a visitor", err)
}

// deletePage deletes any page of a wild app, or the page of another app that exists for this.
func (s *storm) deletePage(r *rand.Rand) {
	a, page := anyApp(r), gone
	if !a.exact {
		page = r.IntN(pages)
	}
	if err := s.process().DeletePage(context.Background(), a.name, uri(r.IntN(sites), page)); s.command("delete a page", err) {
		s.some("pages deleted", 1)
	}
}

// moveIn sets or removes an offset of a page.
func (s *storm) moveIn(r *rand.Rand) {
	a, uri, n := anyApp(r), uri(r.IntN(sites), r.IntN(pages)), r.Int64N(1000)
	if n%4 == 0 {
		_, err := s.admin.RemoveOffset(context.Background(), a.name, uri)
		s.command("remove an offset", err)
		return
	}
	_, err := s.admin.SetOffsets(context.Background(), a.name, []admin.Offset{{URI: uri, Hot: n + 2, PV: n + 1, UV: n}}, n%4 == 1)
	if s.command("set an offset", err) {
		s.some("offsets set", 1)
	}
}

// set changes settings of an app that only affect one visitor's visits.
func (s *storm) set(r *rand.Rand) {
	enough, ignore := "1000000", []string{}
	if r.IntN(2) == 0 {
		enough, ignore = "default", []string{ignored}
	}
	err := s.admin.SetApp(context.Background(), anyApp(r).name, app.Settings{MaxRequests: &enough, MaxNewPages: &enough, Ignore: ignore})
	if s.command("set an app", err) {
		s.some("apps set", 1)
	}
}

func (s *storm) replaceBrief(*rand.Rand) {
	s.command("delete an app", s.process().DeleteApp(context.Background(), brief.name))
	if s.command("add an app", s.addApp(brief)) {
		s.some("apps replaced", 1)
	}
}

// command fails the test unless a command succeeded, found no row to change, was interrupted, or met a day in use. A
// deadlock is none of these. It reports whether the command succeeded.
func (s *storm) command(what string, err error) bool {
	told := asTold(err)
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return true
	case errors.Is(err, db.ErrInstancesBehind), errors.Is(err, retention.ErrRunning), interrupted(err):
	case told != nil:
		assert.True(s, told.Kind == visit.NotFound || told.Kind == visit.Unavailable || strings.Contains(told.Message(), "there is an app"),
			"%s: %v", what, err)
	case errors.As(err, &refused):
		assert.Equal(s, dayInUse, refused.Code, "%s: %v", what, err)
	default:
		s.Errorf("%s: %v", what, err)
	}
	return false
}

const dayInUse = "55P03" // PostgreSQL's code

// interrupted reports whether an error is due to a connection that was cut or could not be made.
func interrupted(err error) bool {
	fault := db.FaultOf(err)
	return asTold(err) == nil && (fault == db.FaultUnknown || fault == db.FaultRefused)
}

func asTold(err error) *visit.Error {
	verr, _ := errors.AsType[*visit.Error](err)
	return verr
}

// drained waits until all accepted visits are counted, and all tags are added up.
func (s *storm) drained() {
	require.Eventually(s, func() bool {
		var waiting int64
		err := s.own.QueryRow(context.Background(), `SELECT (SELECT sum(inbox_behind(id)) FROM apps) + (SELECT count(*) FROM tag_news)`).Scan(
			&waiting)
		return err == nil && waiting == 0
	}, dbtest.Patience, dbtest.Tick)
}

// importer returns the loop of an importer: it writes to the log of its own server, which is rotated at times, and
// imports the logs of all servers, possibly at the same time as another importer.
func (s *storm) importer() func(client int, r *rand.Rand) {
	folder, tables := s.TempDir(), s.open("import")
	return func(client int, r *rand.Rand) {
		server := filepath.Join(folder, fmt.Sprintf("server-%d.log", client))
		lines := s.write(server, client, r)
		for i := range lines {
			s.model.counted(&lines[i], s.today.Load(), nil)
		}
		s.untilAnswered("an import", func() bool {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			if r.IntN(8) == 0 {
				ctx, stop = context.WithTimeout(ctx, time.Duration(r.Int64N(int64(20*time.Millisecond))))
				defer stop()
			}
			return s.importAll(ctx, tables, filepath.Join(folder, "*.log*"))
		})
		if r.IntN(4) == 0 {
			assert.NoError(s, os.Rename(server, server+"."+s.number()))
			s.some("logs rotated", 1)
		}
	}
}

// write writes some lines to the log of a server. All lines are different, so that each counts.
func (s *storm) write(server string, client int, r *rand.Rand) (lines []trip) {
	var text strings.Builder
	for range 1 + r.IntN(20) {
		t := trip{tenant: told, who: who{ip: anyIP(r)}, uri: uri(r.IntN(sites), r.IntN(pages)), from: s.today.Load()}
		t.at = t.from
		lines = append(lines, t)
		fmt.Fprintf(&text, "%s %s - - [%s] \"GET /%s%s&line=%s HTTP/1.1\" 200 100 \"%s\" \"Mozilla/5.0 (X11; Linux)\"\n", siteOf(t.uri), t.who.ip,
			timeOf(t.at).Add(time.Duration(client)*time.Second).Format("02/Jan/2006:15:04:05 -0700"), t.uri[strings.LastIndex(t.uri, "/")+1:],
			t.query(), s.number(), t.referrer())
	}
	log, err := os.OpenFile(server, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if !assert.NoError(s, err) {
		return nil
	}
	_, err = log.WriteString(text.String())
	assert.NoError(s, errors.Join(err, log.Close()))
	return lines
}

// importAll imports all logs as the command does, with its own counter.
func (s *storm) importAll(ctx context.Context, tables *db.DB, files string) bool {
	c, err := counter.Open(ctx, tables, counter.Options{Secret: secret, Options: record.Options{Clock: func() time.Time { return s.now(0) },
		MaxWait: time.Minute}})
	if err == nil {
		defer c.Close()
		rules := imports.Rules{Methods: imports.DefaultMethods, Statuses: imports.DefaultStatuses}
		var summary *imports.Summary
		summary, err = imports.Run(ctx, c, imports.Options{App: told.name, Files: []string{files}, Rules: rules, Notice: func(string, error) {}},
			&imports.Progress{})
		if err == nil {
			assert.Empty(s, summary.Problems)
			assert.Zero(s, summary.Unreadable)
			delete(summary.Left, imports.TooOld) // rotated logs have lines of days that are no longer kept
			assert.Empty(s, summary.Left)
			s.some("imports", 1)
			return true
		}
	}
	if ctx.Err() != nil {
		s.some("imports stopped", 1)
		_, _ = s.own.Exec(context.Background(), `DELETE FROM retention_pauses`) // which it has left behind for a day of the real clock
		return false
	}
	rotated := strings.HasSuffix(err.Error(), ": there is no such file") // since its name was found
	assert.True(s, rotated || interrupted(err) || kindOf(err) == visit.Unavailable, "an import: %v", err)
	return false
}

// beginFaults starts the faults, and returns the function that stops them. All instances are up then.
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

// killInstance kills an instance: all of its connections are cut, and another instance takes its place, with empty
// memory and another clock.
func (s *storm) killInstance(r *rand.Rand) {
	in := s.any(r)
	s.cutOff("storm "+in.name, 1000)
	in.now.Load().Close()
	s.some("instances killed", 1)
	s.untilAnswered("start an instance", func() bool { return s.start(in, ahead[r.IntN(len(ahead))]) })
}

// killBackend kills a process of PostgreSQL, which then ends all of its other processes and recovers.
func (s *storm) killBackend(*rand.Rand) {
	var pid int
	err := s.own.QueryRow(context.Background(), `
		SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'storm %' ORDER BY state = 'active' DESC, random() LIMIT 1`).Scan(&pid)
	if err != nil {
		assert.True(s, interrupted(err), "%v", err)
		return
	}
	if syscall.Kill(pid, syscall.SIGKILL) == nil { // it may have exited by itself
		s.some("backends killed", 1)
	}
}

// noDeadlock searches the server's log for deadlocks, because its counters do not survive its processes.
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
