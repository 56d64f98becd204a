package web

// arrange puts each panel into the left or right column, so that the two columns have about the same height. It estimates heights
// in table rows. A browser with too little room shows the panels in one column. A panel stays in its column if a reader unfolds
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
	mix, returns, firsts := 1, 1, 1 // heights in table rows; a folded panel is one row high
	if !page.IsSite {
		mix, returns, firsts = panelRows, len(page.Returns)+panelRows, len(page.Latest)+len(page.Round)+panelRows
	}
	page.Sides = map[string]string{"mix": side(mix), "returns": side(returns), "firsts": side(firsts)}
}

// panelRows is the height of an empty panel (title, head and foot), in table rows.
const panelRows = 4
