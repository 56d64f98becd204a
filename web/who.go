package web

import (
	"context"
	"net/netip"
	"strconv"
	"strings"

	"footfall/report"
	"footfall/visit"
)

type whoPage struct {
	frame
	Heading heading
	Range   rangeBar
	Back    string
	Rows    []whoRow
	Nobody  string // key of the text to show if there are no rows
	Gone    bool   // the rows of the visitors on the range's first day are deleted
	Hashes  bool   // some visitors in Rows are stored as hashes
	First   string
	More    string // link to the next rows; "" if there are none
	Source  source
}

type whoRow struct {
	report.VisitorOfDay
	Begins bool // the first row of its day: the title of the day is above this row
	New    bool
}

const whoRows = 100

func (d *Dashboard) visitorPage(ctx context.Context, v view) (Page, error) {
	after, err := readAfter(v.after)
	if err != nil {
		return Page{}, err
	}
	look := v.look()
	look.After, look.N = after, whoRows
	came, err := d.reader.WhoCame(ctx, look)
	if err != nil {
		return Page{}, err
	}
	first := v.copyWith(func(o *view) { o.after = "" })
	source := first.source("who", came.SQL)
	begins := v.look().In.From
	// For all days, check whether the visitors on the page's own first day are kept. On the site's first day, the page may have
	// had no visitors. CountVisitors would then return Kept even if later visitors are deleted.
	if v.span == "all" {
		if begins, err = d.reader.FirstDay(ctx, v.app.Name, v.target()); err != nil {
			return Page{}, err
		}
	}
	began, err := d.reader.CountVisitors(ctx, v.app.Name, v.target(), begins)
	if err != nil {
		return Page{}, err
	}
	page := whoPage{frame: v.frame(), Heading: v.heading(), Range: first.rangeBar(), Source: source, Gone: !began.Kept,
		Back: v.copyWith(func(o *view) { o.showsVisitors, o.after = false, "" }).link()}
	page.Heading.Compared, page.Range.Compares = "", nil
	if page.Nobody = "who.nobody"; v.after != "" {
		page.Nobody += "-more"
	}
	if page.Gone {
		page.Nobody += "-kept"
	}
	for i, c := range came.Rows {
		page.Hashes = page.Hashes || visit.IsHash(c.Visitor)
		page.Rows = append(page.Rows, whoRow{c, i == 0 || c.Day != came.Rows[i-1].Day, c.FirstDay == c.Day})
	}
	if v.after != "" {
		page.First = first.link()
	}
	if n := len(came.Rows); n == whoRows {
		last := came.Rows[n-1]
		page.More = first.copyWith(func(o *view) { o.after = strconv.Itoa(int(last.Day)) + "," + last.Visitor.String() }).link()
	}
	return render("who", page), nil
}

func readAfter(text string) (after report.Cursor, err error) {
	if text == "" {
		return after, nil
	}
	day, visitor, _ := strings.Cut(text, ",")
	n, wrong := strconv.ParseInt(day, 10, 32)
	after.Day = int32(n) //nolint:gosec // parsed with 32 bits
	if after.Visitor, err = netip.ParseAddr(visitor); err != nil || wrong != nil || n < 1 || after.Visitor.Zone() != "" {
		return after, visit.Errorf(visit.Invalid, "after", "%.64q is not a position in a list: follow the link below the list", text)
	}
	return after, nil
}
