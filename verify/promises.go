package verify

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// promise is a promise of Footfall about its tables. Queries check it with one or more measures.
type promise struct {
	name     string
	says     string
	restsOn  string
	unit     string    // of the checked objects
	pass     string    // the pass that decides it
	measures []measure // the first one counts the checked objects
}

// measure is a pair of numbers that a query compares.
type measure struct {
	name   string // as in the query
	stored string // meaning of the wrong number
	should string // meaning of the number it is compared with
}

// promises lists all promises in the order of the report.
var promises = []promise{
	{"order", "hot >= pv >= uv", "counters", "target", passTargets,
		[]measure{{"order", "pv", "uv and hot"}}},
	{"ranks", "ranks are exactly 1..uv", "rows of visitors and erased visitors", "target", passTargets,
		[]measure{{"last rank", "the last rank", "uv"}, {"ranks", "ranks taken", "uv"}}},
	{"visitors", "uv = visitors", "rows of visitors and erased visitors", "target", passTargets,
		[]measure{{"visitors", "uv", "rows of visitors"}}},
	{"sites", "a site's hot = its pages', uv and pv between the most and the sum of theirs", "counters", "site", passSites,
		[]measure{{"site hot", "hot", "the sum over its pages"}, {"site pv", "pv", "the most of a page and the sum over them"},
			{"site uv", "uv", "the most of a page and the sum over them"}}},
	{"days", "hot, pv and uv = the sums of hot, pv and new visitors of the days", "daily numbers", "target", passTargets,
		[]measure{{"days hot", "the sum of days' hot", "hot"}, {"days pv", "the sum of days' pv", "pv"},
			{"new visitors", "the sum of days' new visitors", "uv"}}},
	{"new or returned", "pv of a day = new visitors + those who returned", "daily numbers", "day", passTargets,
		[]measure{{"new or returned", "new and returned visitors", "pv"}}},
	{"site days", "as for sites, on each day", "daily numbers", "site day", passSites,
		[]measure{{"site day hot", "hot", "the sum over its pages"}, {"site day pv", "pv", "the most of a page and the sum over them"}}},
	{"kept days", "pv of a day = its visitors", "rows of visits and erased visits", "day", passTargets,
		[]measure{{"rows pv", "pv", "rows of visits"}}},
	{"new visitors", "new visitors of a day = those whose first day it is", "rows of visitors, visits and erased visits", "day", passTargets,
		[]measure{{"rows new", "new visitors", "visitors whose first day it is"},
			{"rows of first days", "rows of visits of the visitors whose first day it is", "such visitors"}}},
	{"returns", "visitors who returned, by their previous day", "rows of visits and erased visits", "day pair", passTargets,
		[]measure{{"returns", "returned visitors", "rows of visits with that previous day"},
			{"previous days", "rows of visits with another previous day than that of the row before", "what is allowed"}}},
	{"visits", "a visit is of a visitor, from the first to the last day", "rows of visitors and visits", "visit", passTargets,
		[]measure{{"visitors of rows", "rows of visits that no visitor has", "what is allowed"},
			{"rows of last days", "rows of visits of visitors on their last day", "such visitors"}}},
	{"site visitors", "a site has the visitors of its pages, on the same days", "rows of visits", "row", passSites,
		[]measure{{"site of visits", "visitors of its pages whom the site does not have on the day", "what is allowed"}}},
	{"sketches", "a closed day has its sketches", "rows of visits", "day", passTargets,
		[]measure{{"sketches", "sketches", "what a closed day has"}}},
	{"registers", "a sketch is that of its visitors (a sample, in each run another one)", "rows of visits and erased visits", "sampled day",
		passTargets,
		[]measure{{"registers", "wrong registers of the sketch", "what is allowed"}}},
	{"top pages", "the top pages of a closed day are those of the days", "daily numbers", "list", passSites,
		[]measure{{"tops", "right places in the list of top pages", "its length"}}},
	{"tags", "the values of a tag have at most pv of their day, as many newcomers up to each day as new visitors, and are the app's",
		"sums by tag", "tag day", passTargets,
		[]measure{{"tags pv", "the sum over the values of a tag", "pv"},
			{"tags newcomers", "newcomers of all values of a tag up to the day", "new visitors up to it"},
			{"tags of app", "tags of another app, or of none", "what is allowed"}}},
	{"tag rows", "the sums of a tag on a site's day = its visitors, and newcomers, with the tag (a sample)",
		"tags in rows of visits, and erased visits", "sum", passTargets,
		[]measure{{tagRowsMeasure, "the sum", "rows of visits with the tag"},
			{tagRowsMeasure + " new", "newcomers", "rows of visits with the tag and without a previous day"}}},
	{"hours", "the hours of a site's day have pv of the day, and those of all days its newcomers",
		"sums by tag, also those that are not added yet", "site day", passTargets,
		[]measure{{"hours", "the sum over the hours", "pv"}, {"hours newcomers", "newcomers of all hours", "uv"}}},
	{"no day ahead", "days that are closed, or from which an app keeps its visits, have come", "closed days, and days of apps", "day",
		passTargets,
		[]measure{{closedMeasure, "a closed day", "the latest day that it is anywhere"},
			{"kept ahead", "the day from which visits are kept", "the latest day that it is anywhere"}}},
	{"belonging", "numbers belong to pages, days and history to their site, which has the visitors of before the kept days (a sample)",
		"pages", "row", passTargets,
		[]measure{{"page of days", "pages with this number", "what days belong to"}, {"site of days", "the site's number", "the one of the page"},
			{"site of visitors", "visitors whom the site never had", "what is allowed"},
			{"page of totals", "pages with this number", "what counters and visitors belong to"},
			{"page of rows", "rows of visits of no page", "what is allowed"},
			{"site of here", "rows of visitors who are here now, at no site", "what is allowed"},
			{"site of history", "pages of history that are not of the site of their day", "what is allowed"}}},
	{"people", "ids lead to a person over four steps at most and never back, an app's tags are its own", "rows of people", "row", passPeople,
		[]measure{{peopleMeasure, "ids that lead to none with a greater height", "what is allowed"},
			{"people rows", "rows that are neither of an id that leads to another nor of a person", "what is allowed"},
			{"people tags", "persons with tags that the app does not have, or with two of one name", "what is allowed"},
			{"people apps", "rows of an app that does not exist, or whose visitors have no ids", "what is allowed"}}},
	{"log lines", "the counted lines of an hour of logs are those of its blocks, and those of a day no more than visits", "counted lines",
		"hour", passLines,
		[]measure{{linesMeasure, "lines in blocks without a gap", "the lines of the hour"},
			{"lines of days", "lines of the day", "hot of the app's sites on the days around it"}}},
}

const (
	peopleMeasure = "people"
	linesMeasure  = "lines"
	closedMeasure = "closed ahead"

	tagRowsMeasure = "tag rows" // has tags instead of previous days
)

// result returns the result of a promise. The caller holds v.mu, unless no other goroutine runs.
func (v *verifier) result(p promise) PromiseResult {
	u := PromiseResult{Name: p.name, Says: p.says, RestsOn: p.restsOn, Unit: p.unit, Offenders: []Offender{}}
	u.Checked = v.results[p.measures[0].name].held
	for _, m := range p.measures {
		r := v.results[m.name]
		u.Violations += r.broken
		u.Seconds = max(u.Seconds, r.known.Seconds())
	}
	return u
}

// name adds each promise's offenders to the proof, with app and URI.
func (v *verifier) name(ctx context.Context, q *Queries, proof *Proof) error {
	ids := []int64{}
	for _, r := range v.results {
		for _, o := range r.offenders {
			ids = append(ids, o.target)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	rows, err := q.VerifyNames(ctx, ids)
	if err != nil {
		return err
	}
	names := make(map[int64]VerifyNamesRow, len(rows))
	for _, row := range rows {
		names[row.ID] = row
	}
	for i, p := range promises {
		u := &proof.Promises[i]
		for _, m := range p.measures {
			for _, o := range v.results[m.name].offenders {
				if len(u.Offenders) < v.Limit {
					u.Offenders = append(u.Offenders, m.offender(o, names))
				}
			}
		}
	}
	return nil
}

// offender describes an offence in words.
func (m measure) offender(o offence, names map[int64]VerifyNamesRow) Offender {
	named := Offender{App: names[o.target].App, Target: names[o.target].Uri, Day: int32(o.day)} //nolint:gosec // a day
	switch {
	case strings.HasPrefix(m.name, peopleMeasure):
		named.Target = fmt.Sprintf("(people of app %d)", -o.target)
	case strings.HasPrefix(m.name, linesMeasure):
		named.Target = fmt.Sprintf("(logs of app %d)", -o.target)
	case m.name == closedMeasure:
		named.Target = "(all apps)"
	case named.Target == "":
		named.Target = fmt.Sprintf("(no page has the number %d)", o.target)
	}
	bound := fmt.Sprint(o.least)
	switch {
	case o.most == math.MaxInt64:
		bound = fmt.Sprintf("at least %d", o.least)
	case o.least != o.most:
		bound = fmt.Sprintf("%d to %d", o.least, o.most)
	}
	named.Problem = fmt.Sprintf("%s: %d, but %s: %s", m.stored, o.stored, m.should, bound)
	switch {
	case strings.HasPrefix(m.name, tagRowsMeasure):
		named.Problem += fmt.Sprintf(" (tag %d)", o.previous)
	case o.previous > 0:
		named.Problem += fmt.Sprintf(" (previous day %d)", o.previous)
	}
	return named
}
