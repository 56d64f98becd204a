package status

import (
	"cmp"
	"fmt"
	"slices"

	"footfall/db"
	"footfall/visit"
)

// shared returns a sentence for each pair of apps whose lists of sites overlap. The sentence names the first site in both
// lists. It also names the app for which visits to this site count if a page does not specify the app.
func (f *facts) shared() []string {
	apps := slices.DeleteFunc(slices.Clone(f.lists), func(a db.App) bool { return a.Cell != nil || a.DeletedAt != nil })
	slices.SortFunc(apps, func(a, b db.App) int { return cmp.Compare(a.ID, b.ID) })
	sentences := []string{}
	for i := range apps {
		for j := range apps[:i] {
			if site := firstOverlap(apps[j].Sites, apps[i].Sites); site != "" {
				sentences = append(sentences, fmt.Sprintf("the apps %s and %s both list %s: pages that do not specify an app, such as "+
					"pages made for busuanzi, count for %[1]s, unless `serve --busuanzi` specifies %[2]s", apps[j].Name, apps[i].Name, visit.Shown(site)))
			}
		}
	}
	return sentences
}

// firstOverlap returns the first entry of list that overlaps with an entry of others, or "".
func firstOverlap(others, list []string) string {
	for _, site := range list {
		if slices.ContainsFunc(others, func(other string) bool { return visit.Overlap(other, site) }) {
			return site
		}
	}
	return ""
}
