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

// Reader reads what was counted. It is safe for concurrent use.
type Reader struct{ db *db.DB }

// NewReader returns a Reader of a database.
func NewReader(d *db.DB) *Reader { return &Reader{db: d} }

// ErrNobody says that a target has no visitor of that rank or address.
var ErrNobody = errors.New("there is no such visitor")

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
