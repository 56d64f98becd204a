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

// Uniques is how many visitors came in a range, each counted once.
type Uniques struct {
	Uniques       int64   `json:"uniques"`
	Exact         bool    `json:"exact"`
	StandardError float64 `json:"standard_error"` // relative, where it is not exact
	Erased        int64   `json:"erased"`         // days of erased visitors, who cannot be told apart
}

// UniquesOf returns how many visitors came in a range to one target, for which that is exact for ever,
// to any of several, or to any page whose URI begins with a prefix. Where nothing was ever counted
// there were none.
func (r *Reader) UniquesOf(ctx context.Context, l Look) (Uniques, error) {
	if len(l.Where) > 0 {
		l.Target = cmp.Or(l.Target, strings.Join(l.Targets, ""))
		return r.uniquesWhere(ctx, l)
	}
	if l.Target != "" {
		l.Targets = []string{l.Target}
	}
	row, err := ask(ctx, r, "uniques", (*Queries).UniquesOf, l)
	if errors.Is(err, db.ErrNoRows) {
		return Uniques{Exact: true}, nil
	}
	return Uniques(row), err
}

// String says how many visitors they are, and how sure that is.
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
