package verify

import (
	"context"
	"fmt"
	"math"
	"strings"
)

// promise is a rule that Footfall guarantees for the numbers in its tables. Queries check it with one or more measures.
type promise struct {
	name      string
	statement string
	restsOn   string
	unit      string    // name of the checked objects, such as target
	pass      string    // the pass over the tables in which it is checked
	measures  []measure // the first measure counts the checked objects
}

// measure is a pair of numbers that a query compares.
type measure struct {
	name   string // name of the measure in the query's result
	stored string // words for the stored number, in the description of an offender
	should string // words for the right number, with which the stored number is compared
}

// promises lists all promises in the order of the report.
var promises = []promise{
	{"order", "hot >= pv >= uv", "counters", "target", passTargets,
		[]measure{{"order", "pv", "uv and hot"}}},
	{"ranks", "ranks are exactly 1..uv", "rows of visitors and erased visitors", "target", passTargets,
		[]measure{{"last rank", "the last rank", "uv"}, {"ranks", "ranks taken", "uv"}}},
	{"visitors", "uv = visitors", "rows of visitors and erased visitors", "target", passTargets,
		[]measure{{"visitors", "uv", "rows of visitors"}}},
	{"sites", "a site's hot = the sum over its pages; pv and uv are between the highest value of a page and the sum", "counters", "site",
		passSites,
		[]measure{{"site hot", "hot", "the sum over its pages"}, {"site pv", "pv", "the highest value of a page and the sum over its pages"},
			{"site uv", "uv", "the highest value of a page and the sum over its pages"}}},
	{"days", "hot, pv and uv = the sums of hot, pv and new visitors over all days", "daily numbers", "target", passTargets,
		[]measure{{"days hot", "the sum of days' hot", "hot"}, {"days pv", "the sum of days' pv", "pv"},
			{"new visitors", "the sum of days' new visitors", "uv"}}},
	{"new or returned", "pv of a day = new visitors + returning visitors", "daily numbers", "day", passTargets,
		[]measure{{"new or returned", "new and returning visitors", "pv"}}},
	{"site days", "a site's hot and pv agree with its pages on each day", "daily numbers", "site day", passSites,
		[]measure{{"site day hot", "hot", "the sum over its pages"},
			{"site day pv", "pv", "the highest value of a page and the sum over its pages"}}},
	{"kept days", "pv of a day = its visitors", "rows of visits and erased visits", "day", passTargets,
		[]measure{{"rows pv", "pv", "rows of visits"}}},
	{"new visitors", "new visitors of a day = visitors whose first day it is", "rows of visitors, visits and erased visits", "day",
		passTargets,
		[]measure{{"rows new", "new visitors", "visitors whose first day it is"},
			{"rows of first days", "rows of visits of the visitors whose first day it is", "number of these visitors"}}},
	{"returns", "returning visitors, by previous day = rows with this previous day", "rows of visits and erased visits", "day pair",
		passTargets,
		[]measure{{"returns", "returning visitors", "rows of visits with that previous day"},
			{"previous days", "rows of visits whose previous day is not the day of the row before", "allowed"}}},
	{"visits", "each visit belongs to a visitor, and is between the visitor's first and last day", "rows of visitors and visits", "visit",
		passTargets,
		[]measure{{"visitors of rows", "rows of visits without a visitor", "allowed"},
			{"rows of last days", "rows of visits on the last day of their visitor", "number of these visitors"}}},
	{"site visitors", "a site has the visitors of its pages, on the same days", "rows of visits", "row", passSites,
		[]measure{{"site of visits", "visitors of its pages who are missing at the site on this day", "allowed"}}},
	{"sketches", "a closed day has its sketches", "rows of visits", "day", passTargets,
		[]measure{{"sketches", "sketches", "needed for a closed day"}}},
	{"registers", "a sketch matches its visitors (a different sample in each run)", "rows of visits and erased visits", "sampled day",
		passTargets,
		[]measure{{"registers", "wrong registers of the sketch", "allowed"}}},
	{"top pages", "the top pages of a closed day agree with the daily numbers", "daily numbers", "list", passSites,
		[]measure{{"tops", "correct places in the list of top pages", "its length"}}},
	{"tags", "the values of a tag add up to at most pv of the day, their newcomers to at most the new visitors up to it; " +
		"tags belong to the app",
		"sums by tag", "tag day", passTargets,
		[]measure{{"tags pv", "the sum over the values of a tag", "pv"},
			{"tags newcomers", "newcomers of all values of a tag up to this day", "new visitors up to this day"},
			{"tags of app", "tags of another app, or of no app", "allowed"}}},
	{"tag rows", "the sums of a tag on a site's day = its visitors and newcomers with the tag (a sample)",
		"tags in rows of visits, and erased visits", "sum", passTargets,
		[]measure{{tagRowsMeasure, "the sum", "rows of visits with the tag"},
			{tagRowsMeasure + " new", "newcomers", "rows of visits with the tag and without a previous day"}}},
	{"hours", "the hours of a site's day add up to at least its pv, and newcomers of all hours to at least uv",
		"sums by tag, including those that are not added yet", "site day", passTargets,
		[]measure{{"hours", "the sum over the hours", "pv"}, {"hours newcomers", "newcomers of all hours", "uv"}}},
	{"no day ahead", "closed days, and the days from which apps keep visits, are not in the future", "closed days, and days of apps",
		"day", passTargets,
		[]measure{{closedMeasure, "a closed day", "the latest current day in any time zone"},
			{"kept ahead", "the day from which visits are kept", "the latest current day in any time zone"}}},
	{"belonging", "numbers belong to pages; days, history and earlier visitors of a page belong to its site (visitors: a sample)",
		"pages", "row", passTargets,
		[]measure{{"page of days", "pages with this number", "needed for its days"},
			{"site of days", "the number of the day's site", "the number of the page's site"},
			{"site of visitors", "visitors of its pages who are missing at the site", "allowed"},
			{"page of totals", "pages with this number", "needed for its counters and visitors"},
			{"page of rows", "rows of visits without a page", "allowed"},
			{"site of here", "rows of current visitors without a site", "allowed"},
			{"site of history", "pages in history that are not on the site of their day", "allowed"}}},
	{"people", "ids lead to a person in at most four steps and never in a circle; tags of a person belong to the app", "rows of people",
		"row", passPeople,
		[]measure{{peopleMeasure, "ids that do not lead to an id with a greater height", "allowed"},
			{"people rows", "rows that are neither an id that leads to another one nor a person", "allowed"},
			{"people tags", "persons with tags that the app does not have, or with two tags of one name", "allowed"},
			{"people apps", "rows of an app that does not exist, or whose visitors have no ids", "allowed"}}},
	{"log lines", "the counted lines of an hour of logs are those in its blocks; a day has at most as many as page views",
		"counted lines", "hour", passLines,
		[]measure{{linesMeasure, "lines in blocks without a gap", "the number of lines stored with the hour"},
			{"lines of days", "lines of the day", "hot of the app's sites on the days around it"}}},
}

const (
	peopleMeasure = "people"
	linesMeasure  = "lines"
	closedMeasure = "closed ahead"

	tagRowsMeasure = "tag rows" // the offences of this measure have the id of a tag in the field previous
)

// result returns the result of a promise. The caller holds v.mu, unless no other goroutine runs.
func (v *verifier) result(p promise) PromiseResult {
	u := PromiseResult{Name: p.name, Says: p.statement, RestsOn: p.restsOn, Unit: p.unit, Offenders: []Offender{}}
	u.Checked = v.results[p.measures[0].name].compared
	for _, m := range p.measures {
		r := v.results[m.name]
		u.Violations += r.broken
		u.Seconds = max(u.Seconds, r.known.Seconds())
	}
	return u
}

// addOffenders adds the offenders (numbers that break a promise) to the proof, with the names of their apps and URIs.
func (v *verifier) addOffenders(ctx context.Context, q *Queries, proof *Proof) error {
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

// offender describes an offence (a wrong number) in words.
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
