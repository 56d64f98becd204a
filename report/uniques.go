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

// Uniques is the number of visitors in a range, each counted once.
type Uniques struct {
	Uniques       int64   `json:"uniques"`
	Exact         bool    `json:"exact"`
	StandardError float64 `json:"standard_error"` // relative to Uniques; meaningful if not Exact
	Erased        int64   `json:"erased"`         // days of erased visitors, who can no longer be distinguished from each other
}

// UniquesOf returns the number of visitors in a range to a target, to any of several targets, or to any page whose
// URI has a prefix. The number is always exact for a single target, and 0 if nothing was counted.
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
