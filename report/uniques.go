package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"footfall/db"
	"footfall/report/draw"
)

// Uniques is the number of unique visitors in a range: each visitor counts once.
type Uniques struct {
	Uniques       int64   `json:"uniques"`
	Exact         bool    `json:"exact"`
	StandardError float64 `json:"standard_error"` // relative to Uniques; only meaningful if Exact is false
	Erased        int64   `json:"erased"`         // (visitor, day) pairs of erased visitors, who cannot be distinguished from each other
}

// UniquesOf returns the number of unique visitors in a range. They are the visitors of one page or site, of several pages and
// sites, or of all pages whose URI has a prefix. The number is always exact for a single page or site, and 0 if nothing was
// counted.
func (r *Reader) UniquesOf(ctx context.Context, l Look) (Uniques, error) {
	if len(l.Where) > 0 {
		l.Target = cmp.Or(l.Target, strings.Join(l.Targets, ""))
		return r.uniquesWhere(ctx, l)
	}
	if l.Target != "" {
		l.Targets = []string{l.Target}
	}
	row, err := runQuery(ctx, r, "uniques", (*Queries).UniquesOf, l)
	if errors.Is(err, db.ErrNoRows) {
		return Uniques{Exact: true}, nil
	}
	return Uniques(row), err
}

// String describes the number and its accuracy.
func (u Uniques) String() string {
	number := draw.Number(u.Uniques)
	if !u.Exact {
		number = fmt.Sprintf("about %s (standard error %.1f %%)", number, u.StandardError*100)
	}
	if u.Erased > 0 {
		number += fmt.Sprintf(", and %s of visitors who were erased", draw.Count(u.Erased, "day"))
	}
	return number
}
