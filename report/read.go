// Package report reads what was counted, and writes it for people and programs.
package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"footfall/db"
	"footfall/visit"
)

// Reader reads what was counted. Totals of all time, and ranks, are as callers of the service get
// them: with the numbers from elsewhere (offsets). It is safe for concurrent use.
type Reader struct {
	db      *db.DB
	counted bool // totals and ranks are without offsets
}

// NewReader returns a Reader of a database.
func NewReader(d *db.DB) *Reader { return &Reader{db: d} }

// Counted returns a Reader that leaves offsets out.
func (r *Reader) Counted() *Reader { return &Reader{db: r.db, counted: true} }

// Totals are what is shown of a target of all time, and how much of it was counted here.
type Totals struct {
	PV         int64 `json:"pv"`
	UV         int64 `json:"uv"`
	Hot        int64 `json:"hot"`
	CountedPV  int64 `json:"counted_pv"`
	CountedUV  int64 `json:"counted_uv"`
	CountedHot int64 `json:"counted_hot"`
}

// Totals reads those of a target, if it has any: in one row or none.
func (r *Reader) Totals(ctx context.Context, app, target string) (Panel[Totals], error) {
	return panelOf(ctx, r, "totals", db.PanelTotals, (*db.Queries).PanelTotals, db.PanelTotalsParams{App: app, Target: target}, r.totals)
}

func (r *Reader) totals(t db.PanelTotalsRow) Totals {
	if r.counted {
		t.Pv, t.Uv, t.Hot = t.CountedPv, t.CountedUv, t.CountedHot
	}
	return Totals{t.Pv, t.Uv, t.Hot, t.CountedPv, t.CountedUv, t.CountedHot}
}

// ranksBefore is by how much ranks of a target are higher than those that were counted.
func (r *Reader) ranksBefore(ctx context.Context, app, target string) (int64, error) {
	totals, err := r.Totals(ctx, app, target)
	if err != nil || len(totals.Rows) == 0 {
		return 0, err
	}
	return totals.Rows[0].UV - totals.Rows[0].CountedUV, nil
}

// ErrNobody says that a target has no visitor of that rank or address.
var ErrNobody = errors.New("there is no such visitor")

// ErrElsewhere is ErrNobody for a rank of those who came before, elsewhere.
var ErrElsewhere = fmt.Errorf("this visitor came before: %w", ErrNobody)

// Site is a site and its totals.
type Site struct {
	Site  string    `json:"site"`
	PV    int64     `json:"pv"`
	UV    int64     `json:"uv"`
	Hot   int64     `json:"hot"`
	Since time.Time `json:"since"`
	Shown string    `json:"shown"` // the site as people read it
}

// Sites returns the first n sites of an app in order of name, after the one named (none: from the
// first).
func (r *Reader) Sites(ctx context.Context, app, after string, n int) (sites []Site, err error) {
	err = r.db.Report(ctx, func(q *db.Queries) error {
		rows, err := q.SitesAfter(ctx, db.SitesAfterParams{App: app, After: after, N: int32(n)}) //nolint:gosec // a page of an answer
		sites = convert(rows, func(s db.SitesAfterRow) Site {
			if r.counted {
				s.Pv, s.Uv, s.Hot = s.CountedPv, s.CountedUv, s.CountedHot
			}
			return Site{Site: s.Site, PV: s.Pv, UV: s.Uv, Hot: s.Hot, Since: s.Since, Shown: visit.Shown(s.Site)}
		})
		return err
	})
	return sites, wrap("sites", err)
}

// onTarget runs f on the id of a target, unless nothing was counted for it.
func (r *Reader) onTarget(ctx context.Context, app, target string, f func(q *db.Queries, id int64) error) error {
	return r.db.Report(ctx, func(q *db.Queries) error {
		found, err := q.TargetFind(ctx, db.TargetFindParams{App: app, Target: target})
		if errors.Is(err, db.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return f(q, found.ID)
	})
}

func convert[From, To any](rows []From, f func(From) To) []To {
	converted := make([]To, len(rows))
	for i, row := range rows {
		converted[i] = f(row)
	}
	return converted
}

// wrap says what was being read when an error came up.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("read %s: %w", what, err)
}
