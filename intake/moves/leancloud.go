package moves

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"footfall/admin"
	"footfall/visit"
)

// fromLeanCloud is the value of --from for exports of LeanCloud's class Counter.
const fromLeanCloud = "leancloud"

const mostSum = 1 << 60 // if a sum exceeds this value, it is set to this value, which is larger than any valid offset

// leanTotals contains the totals in an export of LeanCloud, for one site and its pages.
type leanTotals struct {
	site            string
	records         int64
	pages           []admin.Offset
	siteHot, siteUV int64
	siteHasLines    bool
}

// leanCloud reads an export of LeanCloud's class Counter, and returns its totals as offsets. Each line is a record about
// one path of the site or about the whole site.
func (h *History) leanCloud(ctx context.Context, site string) ([]admin.Offset, error) {
	if len(h.Files) != 1 || h.Skip {
		return nil, fault("give one file of LeanCloud, and leave out --skip: its totals become offsets, all or none")
	}
	if site == "" {
		return nil, visit.Errorf(visit.Invalid, "site", "it is missing: LeanCloud's export has only paths; give their host with --site")
	}
	var err error
	if site, err = visit.ParseSite(site); err != nil {
		return nil, err
	}
	h.LeftOut, h.lean = map[string]int64{}, leanTotals{site: site}
	if err := h.file(ctx, h.Files[0], nil); err != nil {
		return nil, err
	}
	t := &h.lean
	switch {
	case h.Wrong > 0:
		return nil, h.refused(visit.Errorf(visit.Invalid, "", "Nothing was imported"))
	case t.records == 0:
		return nil, fault("there is no record: is it an export of LeanCloud's class Counter?")
	case t.siteUV > t.siteHot:
		return nil, fault("site-uv, %d, is above site-pv, %d: correct them in the file. Nothing was imported", t.siteUV, t.siteHot)
	case t.siteHasLines:
		t.pages = append(t.pages, admin.Offset{URI: site, Hot: t.siteHot, UV: t.siteUV, PV: t.siteUV})
	}
	return t.pages, nil
}

// leanCloudLines adds the totals in a file to h.lean.
func (h *History) leanCloudLines(name string, from io.Reader) error {
	var record struct {
		URL, Target *string
		Time        *json.Number
	}
	return h.json(name, from, func() any { record.URL, record.Target, record.Time = nil, nil, nil; return &record }, func(line int) error {
		h.lean.records++
		key := record.URL
		if key == nil {
			key = record.Target
		}
		if key == nil {
			return h.wrong(name, line, "url", fault("it is missing, and so is target"))
		}
		if record.Time == nil {
			return h.wrong(name, line, "time", fault("it is missing"))
		}
		n, err := strconv.ParseUint(record.Time.String(), 10, 50)
		if err != nil {
			return h.wrong(name, line, "time", fault("%.64s is not a number of visits", *record.Time))
		}
		hot := int64(n) //nolint:gosec // at most 50 bits
		switch t := &h.lean; {
		case *key == "site-pv":
			t.siteHot, t.siteHasLines = min(t.siteHot+hot, mostSum), true
		case *key == "site-uv":
			t.siteUV, t.siteHasLines = min(t.siteUV+hot, mostSum), true
		case !strings.HasPrefix(*key, "/"):
			return h.wrong(name, line, "url", fault("%.64q is not a path like /hello/, site-pv or site-uv", *key))
		default:
			t.pages = append(t.pages, admin.Offset{URI: t.site + *key, Hot: hot, Line: line, Add: true})
		}
		return nil
	})
}
