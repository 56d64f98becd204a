package report

import (
	"context"
	"errors"
	"fmt"

	"footfall/db"
	"footfall/report/draw"
	"footfall/visit"
)

// Uniques is how many visitors came in a range, each counted once.
type Uniques struct {
	Uniques       int64   `json:"uniques"`
	Exact         bool    `json:"exact"`
	StandardError float64 `json:"standard_error"` // relative, where it is not exact
	Erased        int64   `json:"erased"`         // days of erased visitors, who cannot be told apart
}

// Uniques returns how many visitors came to a target in a range. A target that was never counted
// had none.
func (r *Reader) Uniques(ctx context.Context, app, target string, in visit.Range) (Uniques, error) {
	p := UniquesOfTargetParams{App: app, Target: target, FromDay: in.From, ToDay: in.To}
	row, err := ask(ctx, r, "uniques", (*Queries).UniquesOfTarget, p)
	if errors.Is(err, db.ErrNoRows) {
		return Uniques{Exact: true}, nil
	}
	return Uniques(row), err
}

// UniquesOfAny returns how many visitors came to any of several targets in a range.
func (r *Reader) UniquesOfAny(ctx context.Context, app string, targets []string, in visit.Range) (Uniques, error) {
	p := UniquesOfTargetsParams{App: app, Targets: targets, FromDay: in.From, ToDay: in.To}
	row, err := ask(ctx, r, "uniques of targets", (*Queries).UniquesOfTargets, p)
	return Uniques(row), err
}

// UniquesUnder returns how many visitors came in a range to any page whose URI begins with a
// prefix.
func (r *Reader) UniquesUnder(ctx context.Context, app, prefix string, in visit.Range) (Uniques, error) {
	p := UniquesUnderParams{App: app, Prefix: prefix, FromDay: in.From, ToDay: in.To}
	row, err := ask(ctx, r, "uniques under a prefix", (*Queries).UniquesUnder, p)
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
