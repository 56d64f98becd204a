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
	// errRowsChanged is returned if rows of the inbox, or settings of the app, have changed since the drainer read the
	// rows.
	errRowsChanged = errors.New("rows of the inbox must be read again")
	// errAppPaused is returned if the drainer counts the visits of only one app, but they cannot be counted now.
	errAppPaused = errors.New("visits of the app are skipped for now")
)

// row is a row of the table inbox, which contains several visits. next is the index of the first visit that is neither
// counted nor in a chunk yet.
type row struct {
	db.InboxReadRow
	position *record.Position
	next     int64
}

// entry is one visit of a row. If the visits of a row can never be counted, one entry contains all its remaining visits.
type entry struct {
	row     *row
	step    record.Step
	visits  int64
	dropped string // the reason why the entry can never be counted; "": it can be counted
}

// record counts the visits in rows, in several chunks. of is the id of the app to which all rows belong. It is 0 if the
// rows may belong to different apps.
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

// chunkOf returns the next visits in rows, as one chunk. During a burst of new visits, the chunk is small, because no new
// visit gets a response while a chunk is being counted.
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
				e.visits, e.dropped = all-r.next, "their app was deleted, or its settings for days or visitors have changed"
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

// visitOf returns the visit with the index i in a row. Its When is record.Past, because its day may have ended, and visits
// of later days may already be counted.
func visitOf(r *db.InboxReadRow, i int) record.Visit {
	page := r.Uris[r.Pages[i]-1]
	site, _, _ := strings.Cut(page, "/")
	v := record.Visit{
		App: r.AppID, CountsBy: db.CountingSettings{Tz: r.Tz, Visitor: r.Visitor, Ipv6Prefix: r.Ipv6Prefix},
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

// send counts a chunk. If an app's visits cannot be counted now, send sets the app aside (putAside), and continues without
// its visits.
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
		case of != 0 && (locked || db.TimedOut(err)):
			if locked {
				err = nil
			}
			d.putAside(of, err)
			return errAppPaused
		case locked:
			app := db.LockedApp(err)
			d.putAside(app, nil)
			chunk = slices.DeleteFunc(chunk, func(e entry) bool { return e.row.AppID == app })
		case db.TimedOut(err):
			// It is unknown which app's visits caused the timeout. So set aside all apps of the chunk. drain later retries
			// each app alone.
			for _, app := range appsOf(chunk) {
				d.putAside(app, err)
			}
			return nil
		case errors.Is(err, record.ErrMoved), errors.Is(err, db.ErrAppChanged), errors.Is(err, db.ErrAppGone):
			return errRowsChanged
		case e.step.Visit == nil, told && verr.Kind != visit.Invalid:
			return err
		case told: // the visits of this day have just been deleted
			e.step.Visit, e.dropped = nil, verr.Error()
		default:
			e.step.Visit, e.dropped = nil, "internal error: "+err.Error()
		}
	}
	return nil
}

// settle adds entries to the metrics. It logs how many visits can never be counted, and why.
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
