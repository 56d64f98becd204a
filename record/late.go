package record

import (
	"context"
	"errors"
	"slices"

	"footfall/db"
	"footfall/visit"
)

// If visits are of past days, a job can be counted in one transaction for all days (a late batch), or day by day like
// live visits. fastVisits is the minimum average number of visits per day for which counting day by day is faster.
const fastVisits = 100

// chooseLate decides, once per job, whether the job's visits are sent as a late batch, which may have visits of any
// days. If it wrongly decides for a normal batch, the database refuses this batch, and the writer then sends a late
// batch.
func (w *writer) chooseLate(ctx context.Context, j *job) (err error) {
	if j.lateChosen || j.late {
		return nil
	}
	past, days, seen := 0, map[int32]bool{}, map[dayOfTarget]bool{}
	var sites []int64
	var siteDays []int32
	for _, e := range j.entries {
		if e.When != Past {
			continue
		}
		past++
		days[e.Day] = true
		if key := (dayOfTarget{e.site.id, e.Day}); !seen[key] {
			seen[key] = true
			sites, siteDays = append(sites, e.site.id), append(siteDays, e.Day)
		}
	}
	if len(days) > 1 && past < fastVisits*len(days) {
		j.late = true
	} else {
		j.late, err = w.db.MayBeLate(ctx, sites, siteDays)
	}
	j.lateChosen = err == nil
	return err
}

// handlePastDayFault handles a batch that the database refused because of a past day: fault is FaultLate,
// FaultTooOld or FaultLocked.
func (w *writer) handlePastDayFault(ctx context.Context, j *job, fault db.Fault, err error) {
	switch {
	case fault == db.FaultLocked:
		app := db.LockedApp(err)
		err = visit.Errorf(visit.Unavailable, "",
			"data of the app is being erased or deleted, or retention is running; try again").Because(err)
		locked := func(e *entry) error {
			if e.When == Past && e.App == app {
				return err
			}
			return nil
		}
		if j.chunk || !j.failWhere(locked) {
			j.failAll(err)
		}
	case fault == db.FaultTooOld:
		if err := w.leaveOldDays(ctx, j); err != nil {
			j.failAll(errDayUnavailable(err))
		}
	case j.late:
		j.failAll(errDayUnavailable(err))
	default:
		j.late = true
	}
}

// leaveOldDays fails the visits of days that their apps no longer keep. In a chunk, only the first of these visits
// fails, and only after the visits before it have been counted.
func (w *writer) leaveOldDays(ctx context.Context, j *job) error {
	first := map[int32]int32{}
	for _, e := range j.entries {
		if _, asked := first[e.App]; asked || e.When != Past {
			continue
		}
		day, err := w.db.FirstDay(ctx, e.App)
		if err != nil {
			return err
		}
		first[e.App] = day
	}
	tooOld := func(e *entry) error {
		if e.When != Past || e.repeated || e.Day >= first[e.App] {
			return nil
		}
		return visit.Errorf(visit.Invalid, "at", "the app no longer keeps visits of that day: the first possible day is %s",
			visit.DayText(first[e.App]))
	}
	at := slices.IndexFunc(j.entries, func(e *entry) bool { return tooOld(e) != nil })
	switch {
	case at < 0:
		return errors.New("the database refuses a day that it reports as kept")
	case !j.chunk:
		j.failWhere(tooOld)
	case at == 0:
		j.fail(1, tooOld(j.entries[0]))
	default:
		j.maxEntries = at
	}
	return nil
}
