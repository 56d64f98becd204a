// Package report reads what was counted, and writes it for people and programs.
package report

import (
	"context"
	"encoding/json"
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

// Totals reads those of a target, if it has any: in one row or none.
func (r *Reader) Totals(ctx context.Context, l Look) (Panel[Totals], error) {
	p, err := panelOf(ctx, r, "totals", PanelTotals, (*Queries).PanelTotals, l)
	for i, t := range p.Rows {
		if r.counted {
			p.Rows[i].Pv, p.Rows[i].Uv, p.Rows[i].Hot = t.CountedPv, t.CountedUv, t.CountedHot
		}
	}
	return p, err
}

// ranksBefore is by how much ranks of a target are higher than those that were counted.
func (r *Reader) ranksBefore(ctx context.Context, l Look) (int64, error) {
	totals, err := r.Totals(ctx, l)
	if err != nil || len(totals.Rows) == 0 {
		return 0, err
	}
	return totals.Rows[0].Uv - totals.Rows[0].CountedUv, nil
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
func (r *Reader) Sites(ctx context.Context, app, after string, n int) ([]Site, error) {
	rows, err := ask(ctx, r, "sites", (*Queries).SitesAfter, Look{App: app, After: Place{Name: after}, N: n})
	return convert(rows, func(s SitesAfterRow) Site {
		if r.counted {
			s.Pv, s.Uv, s.Hot = s.CountedPv, s.CountedUv, s.CountedHot
		}
		return Site{Site: s.Site, PV: s.Pv, UV: s.Uv, Hot: s.Hot, Since: s.Since, Shown: visit.Shown(s.Site)}
	}), err
}

// FirstPage is the page of an app that was counted first, and when; nil: none was.
func (r *Reader) FirstPage(ctx context.Context, app string) (*PageFirstRow, error) {
	rows, err := ask(ctx, r, "the first page", (*Queries).PageFirst, Look{App: app})
	if len(rows) == 0 {
		return nil, err
	}
	return &rows[0], err
}

// ProvedLast is when all that was counted was proved last; zero: it is not known.
func (r *Reader) ProvedLast(ctx context.Context) (at time.Time, err error) {
	err = r.db.Read(ctx, func(q *db.Queries) error {
		seconds, err := q.ProofLast(ctx)
		if seconds > 0 {
			at = time.Unix(seconds, 0).UTC()
		}
		return err
	})
	return at, err
}

// ask runs a generated query. what says what is read, where it fails.
func ask[Params, Answer any](ctx context.Context, r *Reader, what string,
	query func(*Queries, context.Context, Params) (Answer, error), l Look,
) (answer Answer, err error) {
	err = r.db.Report(ctx, func(tx db.Tx) error {
		answer, err = query(New(tx), ctx, paramsOf[Params](l))
		return err
	})
	if db.IsTooMuch(err) {
		err = visit.Errorf(visit.Invalid, "", "more than 100,000 pages, or 1,000,000 of their visits, would have to be read: "+
			"ask for fewer days, for fewer pages, or for a whole site").Because(err)
	}
	if err = refused(err); err != nil {
		err = fmt.Errorf("read %s: %w", what, err)
	}
	return answer, err
}

// refused returns the error for callers if a function of the schema refused its arguments, else err. Functions that are called for
// pages give the field and the text with its values as DETAIL, which the server logs: it never contains a visitor.
func refused(err error) error {
	message, detail, is := db.Refused(err)
	if !is {
		return err
	}
	refused := visit.Errorf(visit.Invalid, "", "%s", message).Because(err)
	var said struct {
		Field, Text string
		Values      []string
	}
	if json.Unmarshal([]byte(detail), &said) == nil && said.Text != "" {
		refused.Field, refused.Text = said.Field, visit.Text{Format: said.Text}
		for _, value := range said.Values {
			refused.Text.Values = append(refused.Text.Values, value)
		}
	}
	return refused
}

func convert[From, To any](rows []From, f func(From) To) []To {
	converted := make([]To, len(rows))
	for i, row := range rows {
		converted[i] = f(row)
	}
	return converted
}
