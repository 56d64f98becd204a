package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// Offset has the numbers that another tool has counted for a page or a site. They are added to the numbers counted here.
type Offset struct {
	URI         string // as typed by a user; in lists of offsets, as written in reports
	Hot, PV, UV int64
	History     [3]int64 // the parts of Hot, PV and UV from imports

	Line  int    // line number in the source file; 0: none
	Add   bool   // the numbers are added to those of earlier entries for the same page or site
	Fault string // syntax error; "": none
}

// OffsetCounts counts the offsets that were added, that were changed, and that already had the requested numbers.
type OffsetCounts struct {
	Added, Changed, Same int64
}

// mostFaults is the maximum number of errors that checkOffsets returns.
const mostFaults = 100

// errDryRun rolls back a dry run.
var errDryRun = errors.New("tried")

// SetOffsets is like PutOffsets, but does not return the changed offsets.
func (a *Admin) SetOffsets(ctx context.Context, app string, list []Offset, try bool) (OffsetCounts, error) {
	done, _, err := a.PutOffsets(ctx, app, list, try)
	return done, err
}

// PutOffsets sets offsets of pages and sites by hand, on behalf of an operator. They replace the offsets that were set by hand
// before, and are added to the offsets from imports. If an offset is invalid, PutOffsets sets no offset, and the error
// contains the faults of all offsets. first contains at most 20 of the changed offsets. If try is true, PutOffsets changes
// nothing.
func (a *Admin) PutOffsets(ctx context.Context, app string, list []Offset, try bool) (
	done OffsetCounts, first []OffsetsPutRow, err error,
) {
	err = a.withApp(ctx, app, func(q queries, row *db.App) error {
		p, err := checkOffsets(row, list)
		if err != nil {
			return err
		}
		if done, first, err = q.putOffsets(ctx, app, p); err == nil && try {
			return errDryRun
		}
		return err
	})
	if errors.Is(err, errDryRun) {
		return done, first, nil
	}
	return done, first, a.waitForChange(ctx, "set offsets of app "+app, err)
}

// putOffsets stores checked offsets or, if p.OfHistory is true, the parts of offsets that are from imports. It adds an entry
// to the change history. For a single offset, the entry contains the offset's numbers. Otherwise it shows how many offsets
// were added and changed.
func (q queries) putOffsets(ctx context.Context, app string, p OffsetsPutParams) (done OffsetCounts, first []OffsetsPutRow, err error) {
	first, err = q.OffsetsPut(ctx, p)
	if db.Violates(err, "offsets_hot_is_exact") {
		err = visit.Errorf(visit.Invalid, "hot", "together with imported days it would be more than %d", int64(mostOffset))
	}
	if len(first) > 0 {
		done = OffsetCounts{first[0].Added, first[0].Changed, first[0].Same}
	}
	first = slices.DeleteFunc(first, func(o OffsetsPutRow) bool { return !o.Differs })
	if err != nil || len(first) == 0 {
		return done, first, err
	}
	is := fmt.Sprintf("%d added, %d changed", done.Added, done.Changed)
	if len(p.Uris) == 1 {
		is = (&Offset{URI: p.Uris[0], Hot: first[0].Hot, PV: first[0].Pv, UV: first[0].Uv}).historyText()
	}
	return done, first, q.note(ctx, app, "offset", "", is)
}

func (o *Offset) historyText() string {
	return fmt.Sprintf("%s: hot %d, pv %d, uv %d", visit.Shown(o.URI), o.Hot, o.PV, o.UV)
}

// checkOffsets parses a list of offsets. Its error contains all faults in the list, at most mostFaults.
func checkOffsets(app *db.App, list []Offset) (p OffsetsPutParams, err error) {
	var faults []error
	p.AppID, p.ByHand = app.ID, true
	places := make(map[string]int, len(list)) // maps each page or site to its index in p.Uris
	var lines []int
	for i := range list {
		o := &list[i]
		target, err := offsetTarget(app, o)
		at, again := places[target]
		if err == nil && again && !o.Add {
			err = visit.Errorf(visit.Invalid, "uri", "%s is on line %d, too: give each page once, with its numbers added up", visit.Shown(target),
				lines[at])
		}
		if err == nil && again {
			o.Hot, o.PV, o.UV = o.Hot+p.Hots[at], o.PV+p.Pvs[at], o.UV+p.Uvs[at]
		}
		if err == nil {
			err = o.check()
		}
		if err != nil {
			if o.Line > 0 {
				err = visit.Errorf(visit.Invalid, "", "line %d: %v", o.Line, err)
			}
			faults = append(faults, err)
			continue
		}
		if again {
			p.Hots[at], p.Pvs[at], p.Uvs[at] = o.Hot, o.PV, o.UV
			continue
		}
		places[target], lines = len(p.Uris), append(lines, o.Line)
		p.Uris, p.Hots, p.Pvs, p.Uvs = append(p.Uris, target), append(p.Hots, o.Hot), append(p.Pvs, o.PV), append(p.Uvs, o.UV)
	}
	if len(faults) > mostFaults {
		faults = append(faults[:mostFaults], visit.Errorf(visit.Invalid, "", "and %d more", len(faults)-mostFaults))
	}
	return p, visit.Join(faults...)
}

// mostOffset is the largest number that the table of offsets accepts.
const mostOffset = 1_000_000_000_000_000

func (o *Offset) check() error {
	switch {
	case o.UV < 0:
		return visit.Errorf(visit.Invalid, "uv", "%d is less than 0", o.UV)
	case o.PV < o.UV:
		return visit.Errorf(visit.Invalid, "pv",
			"%d is less than uv, %d: each visitor came on at least one day; leave pv out if it is unknown", o.PV, o.UV)
	case o.Hot < 0:
		return visit.Errorf(visit.Invalid, "hot", "%d is less than 0", o.Hot)
	case o.Hot < o.UV:
		return visit.Errorf(visit.Invalid, "hot", "%d is less than uv, %d: each visitor opened at least one page", o.Hot, o.UV)
	case o.Hot < o.PV:
		return visit.Errorf(visit.Invalid, "hot", "%d is less than pv, %d: hot is the number of all page views, at least pv", o.Hot, o.PV)
	case o.Hot > mostOffset:
		return visit.Errorf(visit.Invalid, "hot", "%d is more than %d", o.Hot, int64(mostOffset))
	}
	return nil
}

// offsetTarget parses the page or site of an offset. It returns an error if the app cannot have an offset there.
func offsetTarget(row *db.App, o *Offset) (string, error) {
	if o.Fault != "" {
		return "", visit.Errorf(visit.Invalid, "", "%s", o.Fault)
	}
	target, err := visit.ParseTarget(o.URI, row.KeepQuery)
	if err != nil {
		return "", err
	}
	site, path, isPage := strings.Cut(target, "/")
	switch {
	case site == visit.OtherSite || isPage && ("/"+path == visit.OtherPage || "/"+path == visit.DeletedPage):
		return "", visit.Errorf(visit.Invalid, "uri", "%s collects the numbers of several other pages, so it cannot have numbers "+
			"from elsewhere", target)
	case !app.CountsSite(row, site):
		return "", visit.Errorf(visit.Invalid, "uri", "app %s does not count %s: name a page or site that it counts", row.Name, visit.Shown(site))
	}
	return target, nil
}

// Offsets lists the offsets of an app, sorted by URI.
func (a *Admin) Offsets(ctx context.Context, app string) (offsets []Offset, err error) {
	rows, err := list(ctx, a, "offsets", app, queries.OffsetsList)
	for _, o := range rows {
		offsets = append(offsets, Offset{URI: o.Uri, Hot: o.Hot, PV: o.Pv, UV: o.Uv, History: [3]int64{o.HistoryHot, o.HistoryPv, o.HistoryUv}})
	}
	return offsets, err
}

// ByHand returns the part of an offset that was set by hand, without the part from imports.
func (o *Offset) ByHand() Offset {
	return Offset{URI: o.URI, Hot: max(o.Hot-o.History[0], 0), PV: max(o.PV-o.History[1], 0), UV: max(o.UV-o.History[2], 0)}
}

// RemoveOffset removes the part of an offset that was set by hand, and returns it.
func (a *Admin) RemoveOffset(ctx context.Context, app, typed string) (removed Offset, err error) {
	err = a.change(ctx, "remove an offset of app ", app, func(q queries, row *db.App) error {
		target, err := visit.ParseTarget(typed, row.KeepQuery)
		if err != nil {
			return err
		}
		o, _, err := offsetOf(ctx, q, row.ID, target)
		if err == nil && o == nil {
			return visit.Errorf(visit.NotFound, "uri", "app %s has no offset for %s: `footfall offset list` lists its offsets", app,
				visit.Shown(target))
		}
		if err != nil {
			return err
		}
		if removed = o.ByHand(); removed.Hot == 0 && o.Hot > 0 {
			return visit.Errorf(visit.Invalid, "uri",
				"the offset of %s is from imported history: remove the import with `footfall history remove`", visit.Shown(target))
		}
		_, err = q.OffsetsPut(ctx, OffsetsPutParams{AppID: row.ID, Uris: []string{target}, Hots: []int64{0}, Pvs: []int64{0}, Uvs: []int64{0}})
		if err != nil {
			return err
		}
		return q.note(ctx, app, "offset", removed.historyText(), "")
	})
	return removed, err
}

// offsetOf returns the offset of a page or site, or nil. is reports whether the table offsets has a row for the page or site.
// The row may still exist after the offset was removed.
func offsetOf(ctx context.Context, q queries, app int32, target string) (offset *Offset, is bool, err error) {
	o, err := q.OffsetGet(ctx, app, target)
	switch {
	case errors.Is(err, db.ErrNoRows):
		return nil, false, nil
	case err != nil || o.Removed:
		return nil, true, err
	}
	return &Offset{URI: o.Uri, Hot: o.Hot, PV: o.Pv, UV: o.Uv, History: [3]int64{o.HistoryHot, o.HistoryPv, o.HistoryUv}}, true, nil
}

// removeOffset deletes the row for a deleted page from the table offsets. It returns the offset, or nil if there was no offset.
func removeOffset(ctx context.Context, q queries, app int32, target string) (*Offset, error) {
	o, is, err := offsetOf(ctx, q, app, target)
	if err != nil || !is {
		return nil, err
	}
	return o, q.OffsetDelete(ctx, app, target)
}
