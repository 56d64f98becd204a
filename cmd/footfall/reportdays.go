package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"footfall/report"
	"footfall/visit"
)

// allDays, as --from, is every day on which something was counted.
const allDays = "all"

// mostLastDays is a century: more days than anybody looks at one by one.
const mostLastDays = 36_525

// faults tells what is wrong with the days, as far as that does not depend on today.
func (f *rangeFlags) faults() []error {
	faults := dayFaults("--to", f.To)
	if _, last := lastDays(f.From); f.From == allDays || last {
		return faults
	}
	return append(faults, dayFaults("--from", f.From)...)
}

func dayFaults(flag, text string) []error {
	if text == "" {
		return nil
	}
	if _, err := parseDay(text); err != nil {
		return []error{fmt.Errorf("%s: %w", flag, err)}
	}
	return nil
}

// days is the range that the flags mean.
func (f *rangeFlags) days(today int32) (report.Range, error) {
	to := dayOr(f.To, today)
	n, last := lastDays(f.From)
	switch {
	case f.From == allDays && f.To == "":
		return report.AllDays, nil
	case f.From == allDays:
		return report.Range{From: report.AllDays.From, To: to}, nil
	case last:
		return report.LastDays(n, to), nil
	}
	in := report.Range{From: dayOr(f.From, today), To: to}
	if in.From > in.To {
		return in, invalid("--from: %s is after the last day, %d: exchange them, or name a later --to", f.From, in.To)
	}
	if in.From < report.LastDays(mostLastDays, to).From {
		return in, invalid("--from: %s is more than a century before the last day: write all for every day counted", f.From)
	}
	return in, nil
}

// lastDays reads what is written as 30d.
func lastDays(text string) (n int, is bool) {
	digits, is := strings.CutSuffix(text, "d")
	if !is {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 1 && n <= mostLastDays
}

// dayOr is the day that was checked to be one, or today if none is given.
func dayOr(text string, today int32) int32 {
	if day, err := parseDay(text); err == nil {
		return day
	}
	return today
}

func parseDay(text string) (int32, error) {
	for _, layout := range []string{"20060102", time.DateOnly} {
		if date, err := time.Parse(layout, text); err == nil && date.Year() > 0 {
			return visit.DayOf(date, time.UTC), nil
		}
	}
	return 0, fmt.Errorf("%.32q is no day: write one like 20190629 or 2019-06-29", text)
}

// Targets on which sums of others gather. No URI leads there, so that they are typed as they are.
var gathering = []string{"(other)", "(deleted)"}

// target is what is counted of something typed as a URI, or as reports write a page or site.
func (a asked) target(typed string) (string, error) {
	for _, name := range gathering {
		if typed == name || strings.HasSuffix(typed, "/"+name) && !strings.Contains(typed, "://") {
			return typed, nil
		}
	}
	target, err := a.normalize("uri", typed)
	if err != nil || strings.ContainsAny(typed, "/") {
		return target.Page, err
	}
	return target.Site, nil
}

// site is a site typed as a host, or as any of its URIs.
func (a asked) site(typed string) (string, error) {
	if host, _, _ := strings.Cut(typed, "/"); slices.Contains(gathering, host) {
		return host, nil
	}
	target, err := a.normalize("--site", typed)
	return target.Site, err
}

func (a asked) normalize(field, typed string) (visit.Target, error) {
	uri := typed
	if !strings.Contains(typed, "://") {
		host, _, _ := strings.Cut(typed, "/")
		uri = "http://" + typed
		if strings.HasSuffix(host, ":80") { // which reports write only where https came by it
			uri = "https://" + typed
		}
	}
	target, err := visit.Normalize(uri, a.app.KeepQuery)
	if err != nil {
		return target, invalid("%s: %s", field, strings.TrimPrefix(err.Error(), "uri: "))
	}
	return target, nil
}
