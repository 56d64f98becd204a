package web

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"strings"

	"footfall/report"
	"footfall/report/draw"
	"footfall/visit"
	"footfall/web/words"
)

type targetPage struct {
	frame
	actionPanels
	Heading     heading
	Range       rangeBar
	Nobody      bool   // no visit in the range
	Never       bool   // no visit was counted or imported at any time
	Alone       bool   // only imported numbers: Footfall had not counted the target by the end of the range
	Told        *list  // list of pages with imported numbers; nil if there are none
	Outside     string // why no day of the range can have numbers; "" if some day can
	Tiles       []tile
	NumbersFrom source
	AllTime     *report.Totals // all-time totals; nil if they include no offsets (numbers from elsewhere)
	AllTimeFrom source
	Chips       []chip
	KeepMore    string // first day that can be filtered, and how to keep data longer; "" if all days can be
	Erased      int64
	OnlySums    bool   // for some days, only sums are available: imported sums, or sums for the values of one tag
	Only        string // link to the site, filtered by visitors of this page; "" if the target is not a page
	InPages     string // link to the page with the script tag; "" if the target is no site, or under a shared link
	Who         string // link to the list of visitors; "" if the reader may not see the list
	Chart       chart
	NoteAt      string // link to add a note to the day; "" for several days, or if the reader may not change the app
	Tags        []*list
	New, Back   int64  // new and returning visitors
	Pages       *list  // pages of a site; nil if the page does not list them
	Numbers     string // link from a page with all rows of a list to the page with numbers; "" on the latter
	IsSite      bool
	OfEvents    bool
	OfApp       bool // the numbers are of all sites together
	Returns     []report.Returned

	Returned, MostReturned int64 // Returned is the sum of Visitors in Returns, MostReturned the largest

	Sides       map[string]string // column (left or right) of the panels mix, returns and firsts
	ReturnsFrom source
	Latest      []latest
	Round       []report.FirstVisit
	FirstsFrom  source
}

type heading struct {
	l            *words.Language
	Here         string // number of visitors on the site now, in words; "" if not shown
	Name, Stored string
	Title        string // the page's own title; "" if unknown
	Open         string // link that opens the counted site or page itself; "" if there is no such link
	Range        string // the days of the range, in words
	Since        string // when counting started, in words; "" if that was before the range
	Filtered     string // first day that can be filtered, in words; "" if the page does not show this day
	Compared     string // the compared days, or why none are compared; "" if the page shows neither
	Zone         string
	Today        bool // the range includes today
}

type tile struct {
	Name, Means string
	Number      string
	Change      change
	Before      string
	Full        string // the two compared numbers, in words; "" if Number is one of the two
}

type search struct {
	Part   string // search text: a part of paths or titles, or ""
	Action string
	Keeps  [][2]string
	All    string // link from the found pages to all pages; "" if nothing was searched
}

type option struct {
	Label, Link string
	Chosen      bool
	Key         string // keyboard shortcut, or ""; in a legend: new, back, before, others or none
}

// outside returns the reason why no day of the range can have numbers. It returns "" if some day can have numbers, or if the site
// was never counted.
func (v view) outside() string {
	switch {
	case v.taggedSince > v.app.Today || v.taggedSince > 0 && v.stretch().In == none:
		return v.keepMore()
	case v.stretch().In != none && v.uncounted(v.stretch().In):
		return v.say("history.none")
	case v.since == 0 || v.stretch().In != none:
		return ""
	case v.days.From > v.app.Today:
		return v.say("target.not-yet")
	}
	return v.say("target.began", "day", v.app.words().LongDay(v.since))
}

func (d *Dashboard) targetPage(ctx context.Context, v view) (*targetPage, error) {
	asked := v.copyWith(func(o *view) { o.skip = 0 })
	page := &targetPage{
		frame: v.frame(), Heading: v.heading(), Range: asked.rangeBar(), IsSite: v.path == "",
		OfEvents: v.ofEvents(), Nobody: true, Never: v.since == 0, Outside: sentence(v.app.words(), v.outside()), Numbers: asked.toNumbers(),
	}
	action, _, _ := strings.Cut(v.link(), "?")
	page.Chips, page.KeepMore, page.Erased, page.OnlySums = v.chips(), sentence(v.app.words(), v.keepMore()), v.erased, v.onlySums()
	page.NoteAt = v.linkToAddNote()
	if v.path != "" && !v.ofEvents() {
		page.Only = v.toggleCondition(pageCondition(v.path)).link()
	} else if !page.Never && !v.ofEvents() {
		page.Range.Filter = &search{Action: action, Keeps: asked.hiddenFields()}
	}
	if page.Never || page.Outside != "" {
		return page, nil
	}
	if v.fullPanel == "told" {
		return page, d.readImportedPages(ctx, v, page)
	}
	numbers, err := d.reader.Numbers(ctx, v.look())
	if err != nil {
		return nil, err
	}
	page.NumbersFrom = v.source("numbers", numbers.SQL)
	if len(numbers.Rows) == 0 || v.site != "" && v.stretch().In.To < v.countedSince {
		return page, d.fillImportedOnly(ctx, v, page)
	}
	if err := d.head(ctx, v, &page.Heading); err != nil {
		return nil, err
	}
	if v.fullPanel == "pages" {
		return page, d.pages(ctx, v, page)
	}
	if page.Tags, err = d.tagPanels(ctx, v); v.fullPanel != "" || err != nil {
		return page, err
	}
	page.Range.Hint = suggestions(page.Tags)
	now := numbers.Rows[0]
	page.Nobody = now.Pv == 0
	if v.app.Shared == nil && v.path == "" && !v.ofEvents() {
		page.InPages = v.app.Root + "/embed?app=" + v.app.Name
	}
	if v.app.Names && !v.ofEvents() {
		page.Who = v.copyWith(func(o *view) { o.showsVisitors, o.find, o.value, o.where = true, "", "", nil }).link()
	}
	page.New, page.Back = now.NewVisitors, max(now.Uniques-now.NewVisitors, 0)
	parts := []func(context.Context, view, *targetPage) error{d.chart, d.readImportedPages, d.events, d.goals, d.pages, d.onePage, d.visitors}
	if len(v.where) > 0 || v.ofEvents() {
		parts = parts[:6]
	} else if err := d.allTime(ctx, v, page); err != nil {
		return nil, err
	}
	page.setTiles(v, numbers.Rows) // before the parts, because the chart by hour changes the tiles
	for _, part := range parts {
		if err := part(ctx, v, page); err != nil {
			return nil, err
		}
	}
	return page, nil
}

func (d *Dashboard) pages(ctx context.Context, v view, page *targetPage) error {
	if !page.IsSite || v.onlySums() {
		return nil
	}
	found, all, err := d.readListedPages(ctx, v)
	if err != nil {
		return err
	}
	l, title, none := v.app.words(), "pages.title", "pages.none"
	p := &list{ID: "pages", Class: "main", Kind: "pages", Columns: append([]column{{Label: v.say("pages.page")}}, v.pageColumns()...),
		Columned: v.linkToColumns("pages")}
	panel := "pages"
	if v.ofEvents() {
		p.Columns[0].Label, title, none = v.say("did.name"), "did.events", "chart.nothing"
	}
	switch p.Title = v.say(title); {
	case v.value != "":
		panel, none = "tag-pages", "pages.brought-nobody"
		p.Title = l.HTML("pages.brought", "source", isolated(tagName(l, v.fromBy, v.value)))
	case v.find != "":
		panel, none = "search", "pages.none-found"
		p.Title = l.HTML("pages.found", "part", isolated(v.find))
	}
	if v.site != "" && !v.ofEvents() && len(v.where) == 0 {
		p.Find = v.pageSearch()
	}
	p.From = v.source(panel, found.SQL)
	switch first, label := v.copyWith(func(o *view) { o.skip = 0 }), ""; {
	case v.fullPanel != "":
		p.Part, p.Links = v.part(all), []option{{Label: v.say("layout.skip"), Link: first.toNumbers()}}
	case all > report.DeepestTop:
		label = v.say("parts.all-more", "count", report.DeepestTop)
		fallthrough
	case all > firstPages:
		label = cmp.Or(label, v.say("parts.all", "count", all))
		p.Links = []option{{Label: label, Link: v.copyWith(func(o *view) { o.fullPanel = "pages" }).link()}}
	}
	if brings := v.linkToBroughtPages(); brings != "" {
		p.Notes = append(p.Notes, l.HTML("pages.brings", "pages", brings))
	}
	most := int64(0) // the largest number in the list has a bar of full length
	for _, p := range found.Rows {
		most = max(most, v.barOf(p))
	}
	for _, of := range found.Rows {
		if row, shown := v.pageRow(of, most); shown {
			p.add(v, row, map[string]any{"": of.Uniques, "hot": of.Hot, "pv": of.PV, "uv": of.NewVisitors,
				byChange: changeOf(l, of.UniquesCompared, of.UniquesBefore, v.stretch().changes())})
		}
	}
	if page.Pages = p; len(p.Rows) == 0 {
		p.Reason = v.say(none)
	}
	return nil
}

// pageSearch returns the form to search for pages by a part of their path or title.
func (v view) pageSearch() *search {
	action, _, _ := strings.Cut(v.link(), "?")
	form := &search{Part: v.find, Action: action, Keeps: v.hiddenFields("find", "skip", "value")}
	if v.find != "" || v.value != "" {
		form.All = v.copyWith(func(o *view) { o.skip, o.find, o.value = 0, "", "" }).link()
	}
	return form
}

// pageRow returns the row of a page. shown is false for events, because the list of all sites' pages omits them.
func (v view) pageRow(p report.Page, most int64) (_ row, shown bool) {
	site, path := v.site, strings.TrimPrefix(p.URI, v.site)
	if v.site == "" {
		if site, path, _ = strings.Cut(p.URI, "/"); site == visit.EventSite {
			return row{}, false
		}
		path = "/" + path
	}
	link := v.withTarget(site, path).copyWith(func(o *view) { o.sortedBy = orders[0] })
	if len(v.where) > 0 {
		link = v.toggleCondition(pageCondition(path))
	}
	made := row{Name: v.pageName(p.URI), Link: link.link(), Stored: p.URI, Calls: p.Title, Bar: bar("rank", v.barOf(p), most)}
	return made.choose(slices.Contains(v.where, pageCondition(path))), true
}

// visitors reads the panels about returning visitors and first visits.
func (d *Dashboard) visitors(ctx context.Context, v view, page *targetPage) error {
	returns, err := d.reader.ReturnedAfter(ctx, v.look())
	if err != nil {
		return err
	}
	page.ReturnsFrom = v.source("returns", returns.SQL)
	for _, r := range returns.Rows {
		page.Returned, page.MostReturned = page.Returned+r.Visitors, max(page.MostReturned, r.Visitors)
	}
	page.Returns = returns.Rows
	first, err := d.reader.FirstVisits(ctx, v.look())
	if err != nil {
		return err
	}
	page.FirstsFrom = v.source("first-visits", first.SQL)
	for _, f := range first.Rows {
		switch last := len(page.Latest) - 1; {
		case f.IsRound:
			page.Round = append(page.Round, f)
		case last >= 0 && page.Latest[last].FirstDay == f.FirstDay && page.Latest[last].From == f.Rank+1:
			page.Latest[last].From = f.Rank
		default:
			page.Latest = append(page.Latest, latest{f.Rank, f.Rank, f.FirstDay})
		}
	}
	return nil
}

// latest is a group of visitors whose first visit was on the same day. Their ranks are From to To.
type latest struct {
	From, To int64
	FirstDay int32
}

// bar and mix return drawings that contain only numbers, so they need no escaping.
func bar(class string, part, whole int64) template.HTML {
	return template.HTML(draw.Share(class, part, whole)) //nolint:gosec // see above
}

func mix(fresh, back int64) template.HTML {
	return template.HTML(draw.Parts(fresh, back)) //nolint:gosec // see above
}
