package main

import (
	"errors"
	"fmt"

	"footfall/visit"
)

// faults tells what is wrong with the days, as far as that does not depend on today.
func (f *rangeFlags) faults() []error {
	_, err := visit.ParseRange(f.From, "", visit.AllDays.To)
	return append(dayFaults("--to", f.To), flagFaults(err)...)
}

func dayFaults(flag, text string) []error {
	if text == "" {
		return nil
	}
	if _, err := visit.ParseDay(text, visit.AllDays.To); err != nil {
		return []error{fmt.Errorf("%s: %w", flag, err)}
	}
	return nil
}

// flagFaults names the flag where the field of that name is wrong.
func flagFaults(err error) []error {
	if err == nil {
		return nil
	}
	if told := (*visit.Error)(nil); errors.As(err, &told) && told.Field != "" {
		return []error{fmt.Errorf("--%w", err)}
	}
	return []error{err}
}

// days is the range that the flags mean.
func (f *rangeFlags) days(today int32) (visit.Range, error) {
	in, err := visit.ParseRange(f.From, f.To, today)
	if err != nil {
		return in, invalid("--%v", err)
	}
	return in, nil
}

// dayOr is the day that was checked to be one, or today if none is given.
func dayOr(text string, today int32) int32 {
	if day, err := visit.ParseDay(text, today); err == nil {
		return day
	}
	return today
}

// target is the page or site that somebody has typed.
func (a asked) target(typed string) (string, error) {
	target, err := visit.ParseTarget(typed, a.app.KeepQuery)
	if err != nil {
		return "", invalid("%v", err)
	}
	return target, nil
}

func site(typed string) (string, error) {
	site, err := visit.ParseSite(typed)
	if err != nil {
		return "", invalid("--%v", err)
	}
	return site, nil
}
