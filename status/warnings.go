package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"

	"footfall/db"
)

const (
	leastFree        = 1 << 30 // minimum number of free bytes on the disk
	leastFreePercent = 5

	// The daily task should have closed a day this long after its end in UTC. After twelve hours, the day has ended in all time
	// zones. The daily task starts ten minutes later and may take long.
	closedWithin = 36 * time.Hour
	// Ten minutes after the first attempt of the daily task, all instances have tried to run the task. If it is then neither
	// completed nor running, it has left out some days or apps.
	triedWithin = 12*time.Hour + 30*time.Minute

	// If fewer future days have partitions, no instance creates partitions any more. Instances create them for eight days in
	// advance. After midnight, seven days are left for some minutes, until an instance creates the next partition.
	enoughDays = 7

	webhookWithin = time.Hour // a webhook's call should succeed within this time, which is enough to restart its receiver
)

// daysLeft returns the number of days after today that have partitions.
func (f *facts) daysLeft() (left int) {
	for ; slices.Contains(f.days, dayOf(f.now.AddDate(0, 0, left+1))); left++ {
	}
	return left
}

// due returns the days that the daily task should have closed by now.
func (f *facts) due() (due []int32) {
	over := dayOf(f.now.Add(-closedWithin))
	for _, day := range f.days {
		if day < over {
			due = append(due, day)
		}
	}
	return due
}

// warnOfDays warns of missing partitions of the table visits. It does not warn if no instance is running, because only running
// instances create partitions.
func (f *facts) warnOfDays(warn func(format string, values ...any)) {
	if len(f.instances) == 0 || f.unreadable != nil { // then f.days was not read
		return
	}
	if len(f.missing) > 0 {
		warn("the table visits has no partition for %v: see the service's log", f.missing)
	} else if left := f.daysLeft(); left < enoughDays {
		warn("visits can be counted for only %d more days, because no more partitions are created: see the service's log; "+
			"in a cell, that needs the coordinator", left)
	}
}

// warnings returns the warnings in order of urgency.
func (f *facts) warnings() []string {
	warnings := []string{}
	warn := func(format string, values ...any) { warnings = append(warnings, fmt.Sprintf(format, values...)) }
	if f.unreadable != nil {
		warn("%v", f.unreadable)
	}
	if f.disk != nil && f.disk.Free < max(leastFree, f.disk.Bytes/100*leastFreePercent) {
		warn("the disk of the data has %s of %s left, and if it is full, nothing is counted: make room, or keep less "+
			"(`footfall app set --help`, --retain-days)",
			units.BytesSize(float64(f.disk.Free)), units.BytesSize(float64(f.disk.Bytes)))
	}
	switch {
	case f.standby.IsHanging:
		warn("the server waits for a synchronous standby (synchronous_standby_names = '%s'), but none follows it or responds, "+
			"so nothing is counted: start the standby",
			f.server.WaitsFor)
	case f.standby.IsMissing && !f.server.IsStandby:
		warn("a synchronous standby is required, but the server does not wait for one, so nothing is counted: name the standby in " +
			"its synchronous_standby_names, and check that its max_wal_senders is not 0; or allow counting without a standby with " +
			"`footfall standby require off`")
	}
	if f.refused != nil && !db.IsDenied(f.refused) { // if access is denied, only this command's role lacks the right to count
		warn("no visit can be counted now: %s", db.Sentence(f.refused))
	}
	if len(f.nodesAway) > 0 {
		warn("nodes of the Citus cluster cannot be reached: %s; their cells count nothing: start them, replace them by "+
			"their standbys (`footfall cell node replace`), or remove them (`footfall cell node remove`)", strings.Join(f.nodesAway, ", "))
	}
	if len(f.instances) == 0 && !f.server.IsStandby { // a standby does not show the locks of running instances
		warn("no instance of the service runs on this database, so nothing is counted: start one with `footfall serve`")
	}
	if f.ahead.Abs() > db.ClockMayDiffer {
		where := "ahead of"
		if f.ahead < 0 {
			where = "behind"
		}
		warn("this machine's clock is %v %s the database's, which determines when visits count: correct it",
			f.ahead.Abs().Round(time.Millisecond), where)
	}
	f.warnOfDays(warn)
	const look = "see the service's log, or run `footfall retain`"
	due := f.due()
	// An unclosed day does not always mean that the daily task has failed. Late visits to the day may have arrived after the
	// task. The next daily task closes the day.
	behind := len(due) > 0 && f.daily.DoneOn <= due[len(due)-1]
	leftOut := f.daily.DoneOn > 0 && f.daily.DoneOn < dayOf(f.now.Add(-triedWithin)) && !f.daily.Running
	switch {
	case behind && len(f.unclosed) > 0:
		warn("past days are not closed (%d in all, the first is %d): the daily task has not run since then, or failed: %s", len(f.unclosed),
			f.unclosed[0], look)
	case behind || leftOut:
		warn("the daily task was not completed since %d, so some rows that no app keeps any longer are still there: %s",
			f.daily.DoneOn, look)
	}
	for _, t := range f.snapshots {
		warn("%s has held a snapshot of the database since %s, and the longer it lasts, the slower counting becomes: "+
			"unless it is needed, end it with %s",
			t.Holder, t.Since.UTC().Format(time.RFC3339), t.Ending)
	}
	for _, w := range f.webhooks {
		warn("webhook %d of app %s has a call that has been waiting since %s (%d in all), for the reason in the service's log: "+
			"repair its receiver, check that the service has its secret, or run `footfall app webhook remove %[2]s %[1]d`",
			w.ID, w.App, w.Since.UTC().Format(time.RFC3339), w.Waiting)
	}
	return warnings
}
