package web

import (
	"cmp"
	"context"
	"math"
	"slices"

	"footfall/report"
	"footfall/visit"
)

type appPage struct {
	frame
	Heading heading
	Range   rangeBar
	Sites   list
	One     *targetPage // numbers of all sites together; nil if there are fewer than two sites, or no day has numbers
	Reason  string      // why some numbers of One are unavailable; "" if all are available
	NoTags  string      // why One does not show tags such as source; "" if it shows them, or if Reason explains it
	Cut     bool        // the app may have more sites than Sites can list
	InPages string      // link to the page with the script tag; "" if the reader has a shared link
}

// mostTagged is the maximum number of visits for which the page of all sites shows tags and the change from earlier days. Both
// require counting visitors across sites, which takes several times as long as reading one site.
const mostTagged = 100_000

// readAllSites reads the numbers of all sites together. It counts visitors from rows of visits, so that a visitor of several
// sites counts only once. Page views and the list of pages come from daily sums.
func (d *Dashboard) readAllSites(ctx context.Context, v view, sites []report.SiteBetween, page *appPage) (err error) {
	of, hot, visits := sumsOf(sites)
	if of < 2 || v.stretch().In == none {
		return nil
	}
	v.find = ""
	one := &targetPage{IsSite: true, OfApp: true}
	page.One = one
	var read *report.Filtered
	var tagged bool
	page.Reason, err = d.readWithTimeout(ctx, v, func(ctx context.Context) (err error) {
		read, tagged, err = d.readApp(ctx, v, visits <= mostTagged)
		return err
	})
	if err != nil {
		return err
	}
	told := []report.Numbers{{Uniques: report.Unknown, NewVisitors: report.Unknown, Pv: report.Unknown, Exact: true}}
	if page.Reason == "" {
		if visits <= mostTagged {
			told, err = d.readChange(ctx, v)
		}
		v.filtered = read
		numbers, wrong := d.reader.Numbers(ctx, v.look())
		if err := cmp.Or(err, wrong); err != nil {
			return err
		}
		told[0], one.NumbersFrom = numbers.Rows[0], v.source("numbers", numbers.SQL)
	} else {
		v.chart, v.filtered = charts[1], &report.Filtered{} // without numbers of visitors, the chart shows page views
	}
	if told[0].Hot = hot; page.Cut {
		told[0].Hot = report.Unknown
	}
	one.Tiles = v.tiles(told)
	switch {
	case tagged:
		if one.Tags, err = d.tagPanels(ctx, v); err != nil {
			return err
		}
	case visits > mostTagged:
		page.NoTags = v.say("app.tagged", "count", mostTagged)
	case page.Reason == "":
		page.NoTags = v.say("app.not-tagged")
	}
	if err := d.chart(ctx, v, one); err != nil {
		return err
	}
	if page.Reason != "" {
		one.Chart.Shows = nil
	} else if err := d.events(ctx, v, one); err != nil {
		return err
	}
	return d.pages(ctx, v, one)
}

// readApp reads the visitors of all sites of an app together. If tags is true, and the tags of all visitors in the range are
// recorded, read also contains the tags, and tagged is true.
func (d *Dashboard) readApp(ctx context.Context, v view, tags bool) (read *report.Filtered, tagged bool, err error) {
	look := v.filterLook()
	if tags && len(look.Names) > 0 {
		read, err = d.reader.Filter(ctx, look, "numbers", "days", "tags", "events", "since")
		if err == nil && read.Since == 0 {
			return read, true, nil
		}
	}
	read, err = d.reader.Filter(ctx, look, "numbers", "days", "events")
	return read, false, err
}

// sumsOf returns the number of sites, and the sums of their page views (hot) and visits. It leaves out the pseudo-site of events.
func sumsOf(sites []report.SiteBetween) (of int, hot, visits int64) {
	for _, s := range sites {
		if s.Site != visit.EventSite {
			of, hot, visits = of+1, hot+s.Hot, visits+s.Pv
		}
	}
	return of, hot, visits
}

// readChange reads the numbers that show the change from earlier days. The first element of told is empty: the caller stores the
// numbers of the range there. The last element has the numbers of the earlier days. If only some days of the range can be
// compared, an element between them has the numbers of these days. If no change can be shown, or if reading takes too long, told
// has only the first element.
func (d *Dashboard) readChange(ctx context.Context, v view) (told []report.Numbers, err error) {
	look, in := v.look(), v.stretch()
	if told = make([]report.Numbers, 1); !in.changes() {
		return told, nil
	}
	reason, err := (&Dashboard{d.reader, d.panelTimeout / 4}).readWithTimeout(ctx, v, func(ctx context.Context) error {
		for _, days := range []visit.Range{in.Compared, in.Compared.Earlier(v.daysBefore())} {
			if look.In = days; days == in.In {
				continue
			}
			read, err := d.reader.Numbers(ctx, look)
			if err != nil {
				return err
			}
			told = append(told, read.Rows...)
		}
		return nil
	})
	if reason != "" {
		told = told[:1]
	}
	return told, err
}

// readSites reads the sites of an app. It sets v.since and v.countedSince to the first day on which any of them was counted.
func (d *Dashboard) readSites(ctx context.Context, v *view) (report.Panel[report.SiteBetween], error) {
	sites, err := d.reader.SitesBetween(ctx, v.sitesLook())
	for _, s := range sites.Rows {
		if v.since == 0 || s.FirstDay > 0 && s.FirstDay < v.since {
			v.since, v.countedSince = s.FirstDay, s.FirstDay
		}
	}
	return sites, err
}

func (d *Dashboard) appPage(ctx context.Context, v view) (*appPage, error) {
	sites, err := d.readSites(ctx, &v)
	if err != nil {
		return nil, err
	}
	page := &appPage{frame: v.frame(), Heading: v.heading(), Cut: len(sites.Rows) == report.DeepestTop}
	if err := d.readAllSites(ctx, v, sites.Rows, page); err != nil {
		return nil, err
	}
	first := v.copyWith(func(o *view) { o.skip = 0 })
	page.Range = first.rangeBar()
	if v.app.Shared == nil {
		page.InPages = v.app.Root + "/embed?app=" + v.app.Name
	}
	page.Sites = list{Kind: "sites", Columns: v.siteColumns(v.sitesLook().Before > 0), From: v.source("sites", sites.SQL)}
	until, err := d.addImportedSites(ctx, v, &sites)
	slices.SortStableFunc(sites.Rows, v.order)
	page.Sites.Part = v.part(len(sites.Rows))
	for _, s := range sites.Rows[min(v.skip, len(sites.Rows)):min(v.skip+listedRows, len(sites.Rows))] {
		c, compared := countedFrom(s.FirstDay, v.app.Today), v.compares(s)
		changed := changeOf(v.app.words(), s.UniquesCompared, s.UniquesBefore, compared)
		if !compared && s.FirstDay > 0 {
			changed = change{Way: "same", Text: v.say("app.since", "day", c.formatFirstDay(v.app.words()))}
		}
		page.Sites.add(v, row{Name: v.nameOf(s.Site), Link: v.withTarget(s.Site, "").link(), Stored: s.Site,
			Until: until[s.Site]}, map[string]any{
			"": c.spark(v.app.words(), s.Last30Days, "visitors"), "today": s.Today, "uniques": s.Uniques, byChange: changed,
			"pv": s.Pv, "hot": s.Hot})
	}
	return page, err
}

// compares reports whether the list of sites shows how a site's visitors changed from the earlier days.
func (v view) compares(s report.SiteBetween) bool {
	return countedFrom(s.FirstDay, v.app.Today).clip(v.days, v.daysBefore()).changes()
}

func (v view) siteColumns(compared bool) (columns []column) {
	first := v.copyWith(func(o *view) { o.skip = 0 })
	for _, c := range []struct{ sort, label, means, class string }{
		{"site", "app.site", "", ""}, {"", "ranges.30d", "app.of-each-day", "n wide"}, {"today", "ranges.today", "app.today", "n"},
		{"uniques", "numbers.visitors", "means.visitors", "n"}, {byChange, "numbers.change", "means.change", "n change"},
		{"pv", "numbers.visits", "means.visits", "n wide"}, {"hot", "numbers.views", "means.views", "n wide"},
	} {
		if c.sort == byChange && !compared {
			continue
		}
		to := column{Label: v.say(c.label), Sort: c.sort, Chosen: c.sort == v.sort, Class: c.class}
		if c.means != "" {
			to.Means = v.say(c.means)
		}
		if c.sort != "" {
			to.Link = first.copyWith(func(o *view) { o.sort = c.sort }).link()
		}
		columns = append(columns, to)
	}
	return columns
}

// order compares two sites to sort them: by name ascending, or by a number descending. The pseudo-site of events comes last.
func (v view) order(a, b report.SiteBetween) int {
	switch {
	case a.Site == visit.EventSite:
		return 1
	case b.Site == visit.EventSite:
		return -1
	}
	switch v.sort {
	case "site":
		return cmp.Compare(v.nameOf(a.Site), v.nameOf(b.Site))
	case "today":
		return cmp.Compare(b.Today, a.Today)
	case "uniques":
		return cmp.Compare(b.Uniques, a.Uniques)
	case "hot":
		return cmp.Compare(b.Hot, a.Hot)
	case "change":
		return cmp.Compare(growth(b.UniquesCompared, b.UniquesBefore, v.compares(b)), growth(a.UniquesCompared, a.UniquesBefore, v.compares(a)))
	}
	return cmp.Compare(b.Pv, a.Pv)
}

// growth returns the relative change from before to now, by which callers sort in descending order. Without a comparison, it
// returns -Inf, so that the row comes last.
func growth(now, before int64, compared bool) float64 {
	if !compared {
		return math.Inf(-1)
	}
	return float64(now-before) / float64(max(before, 1))
}
