// Package status reports the state of the service to an operator, as far as the database can show it. The state
// includes the running instances, the counted and kept data, and warnings.
package status

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"footfall/db"
	"footfall/visit"
)

// Status is the state of the service at one moment. Days are numbers like 20190629, or 0 if there
// is no day.
type Status struct {
	Server    Server     `json:"server"`
	Disk      *Disk      `json:"disk"` // null if the database server is on another machine
	Instances []Instance `json:"instances"`
	Apps      []App      `json:"apps"`
	Tables    []Table    `json:"tables"`
	Visits    Visits     `json:"visits"`
	Daily     Daily      `json:"daily_task"`
	Inbox     Inbox      `json:"inbox"`
	// Shared has a sentence for each pair of apps that list the same site. This is no problem if it is intended.
	Shared []string `json:"shared_sites"`
	// Warnings are sentences about problems and their remedies. If there are none, everything works.
	Warnings []string `json:"warnings"`
}

// Server is the PostgreSQL server and its database.
type Server struct {
	Version     string  `json:"version"`
	Database    string  `json:"database"`
	Bytes       int64   `json:"bytes"`
	HugePages   string  `json:"huge_pages"`           // on, off or unknown: whether the server's memory uses huge pages
	ClockOffset float64 `json:"clock_offset_seconds"` // how far this machine's clock is ahead of the server's
	Standby     bool    `json:"standby_required"`     // visits and changes are refused unless a synchronous standby stores them, too
}

// Disk is the file system of the embedded server's data.
type Disk struct {
	Bytes int64 `json:"bytes"`
	Free  int64 `json:"free_bytes"`
}

// Instance is a running instance. The details are empty if the instance uses another role, and the database
// hides the sessions of that role.
type Instance struct {
	Name    string     `json:"name"`    // application_name of its connections
	Address string     `json:"address"` // address of its connections; empty over a Unix socket
	Since   *time.Time `json:"since"`   // when it opened the connection on which it watches for changes of apps
}

// The rows of queries in queries/status/status.sql, which describes their columns.
type (
	// App shows how much an app has counted, and how long it keeps visit rows.
	App = StatusAppsRow
	// Table is a table with its size.
	Table = TableSizesRow
)

// Visits are the days up to today that have a partition of the table visits.
type Visits struct {
	Days     int   `json:"days"`
	FirstDay int32 `json:"first_day"`
	LastDay  int32 `json:"last_day"`
}

// Daily is the task that closes days and deletes data that no app keeps.
type Daily struct {
	DoneOn    int32      `json:"done_on"` // the day of the last completed run, in the time zone where days start last
	Running   bool       `json:"running"`
	ClosedDay int32      `json:"closed_day"`
	ClosedAt  *time.Time `json:"closed_at"`
}

// Inbox has the accepted visits that are not counted yet.
type Inbox struct {
	Waiting int64      `json:"waiting"` // number of waiting visits
	Oldest  *time.Time `json:"oldest"`  // when the oldest waiting visit was accepted, or null
	Skipped int64      `json:"aside"`   // number of waiting visits of locked apps, which are skipped for now
}

// Read reads the status. If this program cannot use the schema, Read adds a warning and reads no tables. dir is the folder of
// the database server's data, or "" if the server is on another machine.
func Read(ctx context.Context, d *db.DB, dir string) (*Status, error) {
	if err := d.MeasureClock(ctx); err != nil {
		return nil, err
	}
	f := facts{now: d.Now().UTC(), ahead: d.ClockOffset()}
	if dir != "" {
		var err error
		if f.disk, err = DiskOf(dir); err != nil {
			return nil, err
		}
	}
	err := d.Read(ctx, func(q *db.Queries) error { return f.readServer(ctx, q) })
	if err == nil {
		if f.unreadable = d.CheckSchema(ctx); f.unreadable == nil {
			f.standby, err = d.Standby(ctx)
			if err == nil && !f.standby.IsHanging && !f.standby.IsMissing && !f.server.IsStandby {
				f.refused = d.Probe(ctx)
			}
		}
		if err == nil && f.unreadable == nil {
			err = d.Read(ctx, func(q *db.Queries) error { return f.readTables(ctx, q) })
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the status: %w", err)
	}
	return f.status(), nil
}

// facts are the data from which the status is made.
type facts struct {
	now   time.Time     // the current time by the database's clock
	ahead time.Duration // how far this machine's clock is ahead of the database's
	disk  *Disk         // nil if the data is on another machine

	server    db.StatusServerRow
	standby   db.Standby
	instances []db.StatusInstancesRow
	snapshots []db.SnapshotHoldersRow // only snapshots that are held for too long

	unreadable error // why this program cannot use the tables; if set, the following fields were not read
	apps       []App
	tables     []Table
	daily      db.StatusDailyRow
	inbox      []db.InboxLookRow
	days       []int32 // days that have a partition of the table visits
	unclosed   []int32 // days that should be closed, but are not
	missing    []int32 // the days among yesterday, today and tomorrow that have no partition
	nodesAway  []string
	refused    error // why no batch of visits can be written now; nil: a batch can be written, or this was not tried
	webhooks   []WebhooksFailingRow
	lists      []db.App
}

// readServer reads the data about the server and its sessions, which does not come from Footfall's tables.
func (f *facts) readServer(ctx context.Context, q *db.Queries) (err error) {
	if f.server, err = q.StatusServer(ctx); err != nil {
		return err
	}
	if f.instances, err = q.StatusInstances(ctx); err != nil {
		return err
	}
	holders, err := q.SnapshotHolders(ctx)
	for _, h := range holders {
		if began := timeOrNil(h.Since); began != nil && f.now.Sub(*began) > db.SnapshotMayLast {
			f.snapshots = append(f.snapshots, h)
		}
	}
	return err
}

func (f *facts) readTables(ctx context.Context, q *db.Queries) (err error) {
	own := New(q.Tx())
	if f.apps, err = own.StatusApps(ctx); err != nil {
		return err
	}
	if f.tables, err = own.TableSizes(ctx); err != nil {
		return err
	}
	if f.lists, err = q.AppsList(ctx); err != nil {
		return err
	}
	if f.daily, err = q.StatusDaily(ctx); err != nil {
		return err
	}
	if f.webhooks, err = own.WebhooksFailing(ctx, webhookWithin.Seconds()); err != nil {
		return err
	}
	if f.inbox, err = q.InboxLook(ctx, 0); err != nil {
		return err
	}
	if f.days, err = q.VisitsDays(ctx, 0, lastDay); err != nil {
		return err
	}
	if f.nodesAway, err = q.NodesAway(ctx); err != nil {
		return err
	}
	if f.unclosed, err = q.DaysUnclosed(ctx, f.due()); err != nil {
		return err
	}
	f.missing, err = q.VisitsDaysMissing(ctx, []int32{dayOf(f.now.AddDate(0, 0, -1)), dayOf(f.now), dayOf(f.now.AddDate(0, 0, 1))})
	return err
}

func (f *facts) status() *Status {
	s := &Status{
		Server:    Server{f.server.Version, f.server.Database, f.server.Bytes, f.server.HugePages, f.ahead.Seconds(), f.standby.Required},
		Disk:      f.disk,
		Instances: []Instance{}, Apps: append([]App{}, f.apps...), Tables: append([]Table{}, f.tables...), Shared: f.shared(),
		Warnings: f.warnings(),
		Daily:    Daily{f.daily.DoneOn, f.daily.Running, f.daily.ClosedDay, timeOrNil(f.daily.ClosedAt)},
	}
	for _, i := range f.instances {
		s.Instances = append(s.Instances, Instance{Name: i.Name, Address: i.Address, Since: timeOrNil(i.Since)})
	}
	for _, app := range f.inbox {
		s.Inbox.Waiting += app.Visits
		if app.IsLocked {
			s.Inbox.Skipped += app.Visits
		}
		if s.Inbox.Oldest == nil || app.Oldest.Before(*s.Inbox.Oldest) {
			s.Inbox.Oldest = timeOrNil(app.Oldest)
		}
	}
	for _, day := range f.days {
		if day > dayOf(f.now) {
			break // partitions of later days are created in advance
		}
		s.Visits.FirstDay = cmp.Or(s.Visits.FirstDay, day)
		s.Visits.LastDay = day
		s.Visits.Days++
	}
	return s
}

// lastDay is later than every day with a partition.
const lastDay = 99991231

// timeOrNil returns nil for 1970, which queries return instead of null, and for the zero time of a field that
// was not read.
func timeOrNil(t time.Time) *time.Time {
	if t.Unix() <= 0 {
		return nil
	}
	return &t
}

// dayOf returns the day of a moment in UTC.
func dayOf(t time.Time) int32 { return visit.DayOf(t, time.UTC) }

// DiskOf returns the total and the free space of a folder's disk.
func DiskOf(dir string) (*Disk, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return nil, fmt.Errorf("read the free space of the disk of %s: %w", dir, err)
	}
	block := int64(fs.Bsize) //nolint:unconvert // an int32 on other systems
	d := &Disk{}
	d.Bytes, d.Free = int64(fs.Blocks)*block, int64(fs.Bavail)*block //nolint:gosec // numbers of bytes
	return d, nil
}
