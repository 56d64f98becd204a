package reports

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// questions are paths of reports, in the API and on the dashboard, with what is drawn at random in
// braces: a page as often as it is visited, any site, a visitor of a page, or so many days.
var questions = []string{
	"/api/apps/{app}/sites",
	"/api/apps/{app}/pages?order=pv&limit=20&{30 days}",
	"/api/apps/{app}/pages?site={any}&order=hot&limit=20&{30 days}",
	"/api/apps/{app}/pages?site={any}&order=uri&limit=100&{30 days}",
	"/api/apps/{app}/pages?order=pv&limit=1000",
	"/api/apps/{app}/days?uri=http://{page}&{60 days}",
	"/api/apps/{app}/visitors?uri=http://{page}&{day}",
	"/api/apps/{app}/ranks?uri=http://{page}&ip={visitor}",
	"/api/apps/{app}/uniques?uri=http://{page}&{days}",
	"/api/apps/{app}/uniques?site={any}&{days}",
	"/api/apps/{app}/uniques?prefix={site}/&{days}",
	"/",
}

func init() {
	for _, span := range []string{"today", "7d", "30d", "90d", "all"} {
		questions = append(questions, "/dash/{app}?range="+span, "/dash/{app}/{any}?range="+span, "/dash/{app}/{site}?page=/{path}&range="+span)
	}
}

// draw puts what is drawn into a question.
func (w *world) draw(random *rand.Rand, question string) string {
	came := w.came[random.IntN(len(w.came))]
	site, path, _ := strings.Cut(came.Uri, "/")
	between := func(from, to int32) string { return fmt.Sprintf("from=%d&to=%d", from, to) }
	day, _ := w.randomDays(random, 1)
	return strings.NewReplacer(
		"{app}", w.app, "{any}", w.randomSite(random), "{page}", came.Uri, "{site}", site, "{path}", path, "{visitor}", came.Ip.String(),
		"{30 days}", between(w.randomDays(random, 30)), "{60 days}", between(w.randomDays(random, 60)), "{days}", between(w.anyDays(random)),
		"{day}", fmt.Sprintf("day=%d", day),
	).Replace(question)
}
