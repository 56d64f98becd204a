package web

// arrange puts each panel into the shorter of two columns, so that the columns have about the same height. It estimates heights
// in table rows. A browser shows the two columns if there is room, or else one. Panels keep their column if a reader unfolds
// details.
func (page *targetPage) arrange() {
	var left, right int
	side := func(rows int) string {
		if right < left {
			right += rows
			return "right"
		}
		left += rows
		return "left"
	}
	others := len(page.Tags) > 0 || page.Goals != nil || page.Events != nil || !page.OfEvents && !page.OfApp
	if p := page.Pages; p != nil {
		if p.Side = "full"; page.Numbers == "" && len(p.Columns) <= 4 && others {
			p.Side = side(len(p.Rows) + panelRows)
		}
	}
	for _, p := range page.Tags {
		if p.Side = "full"; page.Numbers == "" {
			p.Side = side(len(p.Rows) + panelRows)
		}
	}
	for _, did := range []*list{page.Goals, page.Events} {
		if did != nil {
			did.Side = side(len(did.Rows) + panelRows)
		}
	}
	mix, returns, firsts := 1, 1, 1 // heights in rows; a folded panel has one row
	if !page.IsSite {
		mix, returns, firsts = panelRows, len(page.Returns)+panelRows, len(page.Latest)+len(page.Round)+panelRows
	}
	page.Sides = map[string]string{"mix": side(mix), "returns": side(returns), "firsts": side(firsts)}
}

// panelRows is the height of a panel without rows (title, head and foot), in rows.
const panelRows = 4
