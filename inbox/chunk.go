package inbox

import (
	"context"
	"errors"
	"slices"
	"strings"

	"footfall/db"
	"footfall/record"
	"footfall/visit"
	"footfall/visit/tag"
)

var (
	// errRowsChanged is returned if rows, or the settings of their app, have changed since the rows were read.
	errRowsChanged = errors.New("rows of the inbox must be read again")
	// errAppPaused is returned if only one app is being counted, and its visits cannot be counted for now.
	errAppPaused = errors.New("visits of the app are skipped for now")
)

// row is a row of the table inbox. next is the number of the row's visits that are already counted or in chunks.
type row struct {
	db.InboxReadRow
	position *record.Position
	next     int64
}

// entry is a visit of a row, or all remaining visits of a row that can never be counted.
type entry struct {
	row     *row
	step    record.Step
	visits  int64
	dropped string // why the entry is not counted; "": the entry is counted
}

// record counts the visits of rows that were read for the app of or, if of is 0, for all apps.
func (d *drainer) record(ctx context.Context, of int32, rows []row) error {
	for {
		chunk := d.chunkOf(of, rows)
		if len(chunk) == 0 {
			return nil
		}
		d.small = d.yield(ctx)
		if err := d.send(ctx, of, chunk); err != nil {
			return err
		}
	}
}

// chunkOf returns the next visits of some rows. During a burst of new visits it returns few, because the responses to new
// visits wait while a chunk is counted.
func (d *drainer) chunkOf(of int32, rows []row) (chunk []entry) {
	most := d.recorder.ChunkVisits()
	if d.small {
		most = max(most/burstPart, 1)
	}
	for i := range rows {
		r := &rows[i]
		if of == 0 && d.pausedApps[r.AppID] != nil {
			continue
		}
		for all := int64(len(r.Ips)); r.next < all; {
			if len(chunk) == most {
				return chunk
			}
			e := entry{row: r, visits: 1}
			if !r.CountsSo {
				e.visits, e.dropped = all-r.next, "their app was deleted, or now distinguishes days or visitors in another way"
			} else {
				v := visitOf(&r.InboxReadRow, int(r.next))
				e.step.Visit = &v
			}
			r.next += e.visits
			e.step.Position, e.step.Next = r.position, r.next
			chunk = append(chunk, e)
		}
	}
	return chunk
}

// visitOf returns visit i of a row. The visit has When Past, because its day may have ended, and visits of later days may
// have been counted since.
func visitOf(r *db.InboxReadRow, i int) record.Visit {
	page := r.Uris[r.Pages[i]-1]
	site, _, _ := strings.Cut(page, "/")
	v := record.Visit{
		App: r.AppID, CountsBy: db.CountsBy{Tz: r.Tz, Visitor: r.Visitor, Ipv6Prefix: r.Ipv6Prefix},
		Target: visit.Target{Site: site, Page: page}, Visitor: r.Ips[i], Day: r.Days[i], When: record.Past, NewPages: int64(r.NewPages[i]),
	}
	if len(r.Ids) > 0 {
		v.ID = r.Ids[i]
	}
	if len(r.TagPlaces) > 0 {
		if place := int(r.TagPlaces[i]); place > 0 && place <= len(r.TagSets) {
			v.Tags = func() tag.Set { return tag.ParseSet(r.TagSets[place-1]) }
		}
	}
	return v
}

// send counts a chunk. If visits of an app cannot be counted for now, it sets the app aside and leaves out the app's
// visits.
func (d *drainer) send(ctx context.Context, of int32, chunk []entry) error {
	for len(chunk) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		steps := make([]record.Step, len(chunk))
		for i := range chunk {
			steps[i] = chunk[i].step
		}
		results := d.recorder.RecordChunk(steps)
		failed := slices.IndexFunc(results, func(r record.Result) bool {
			return r.Err != nil && !errors.Is(r.Err, record.ErrNumbersLost) && !errors.Is(r.Err, record.ErrRepeated)
		})
		if failed < 0 {
			d.settle(chunk)
			return nil
		}
		d.settle(chunk[:failed])
		chunk = chunk[failed:]
		e, err := &chunk[0], results[failed].Err
		verr, told := errors.AsType[*visit.Error](err)
		locked := db.FaultOf(err) == db.FaultLocked
		switch {
		case of != 0 && (locked || db.WaitedInVain(err)):
			if locked {
				err = nil
			}
			d.putAside(of, err)
			return errAppPaused
		case locked:
			app := db.LockedApp(err)
			d.putAside(app, nil)
			chunk = slices.DeleteFunc(chunk, func(e entry) bool { return e.row.AppID == app })
		case db.WaitedInVain(err):
			// Perhaps only one app causes the wait. So set aside each app of the chunk: drain then retries each app separately.
			for _, app := range appsOf(chunk) {
				d.putAside(app, err)
			}
			return nil
		case errors.Is(err, record.ErrMoved), errors.Is(err, db.ErrAppChanged), errors.Is(err, db.ErrAppGone):
			return errRowsChanged
		case e.step.Visit == nil, told && verr.Kind != visit.Invalid:
			return err
		case told: // the visit's day has just been deleted
			e.step.Visit, e.dropped = nil, verr.Error()
		default:
			e.step.Visit, e.dropped = nil, "internal error: "+err.Error()
		}
	}
	return nil
}

// settle updates the metrics and the log with the results of entries.
func (d *drainer) settle(entries []entry) {
	dropped := map[string]int64{}
	for _, e := range entries {
		if e.dropped != "" {
			dropped[e.dropped] += e.visits
			continue
		}
		d.metrics.drained.WithLabelValues("counted").Inc()
	}
	for why, visits := range dropped {
		d.metrics.drained.WithLabelValues("dropped").Add(float64(visits))
		d.log.Warn("visits in the inbox can no longer be counted, and are skipped", "visits", visits, "why", why)
	}
}
