package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"footfall/db"
	"footfall/visit"
)

// shared returns a sentence for each two apps that list the same site: the first such site, and which app counts a page that
// names no app.
func (f *facts) shared() []string {
	apps := slices.DeleteFunc(slices.Clone(f.lists), func(a db.App) bool { return a.Cell != nil || a.DeletedAt != nil })
	slices.SortFunc(apps, func(a, b db.App) int { return cmp.Compare(a.ID, b.ID) })
	sentences := []string{}
	for i := range apps {
		for j := range apps[:i] {
			if site := sharedBy(apps[j].Sites, apps[i].Sites); site != "" {
				sentences = append(sentences, fmt.Sprintf("the apps %s and %s both list %s: pages that name no app, like those made for "+
					"busuanzi, count for %[1]s, unless `serve --busuanzi` names the other", apps[j].Name, apps[i].Name, visit.Shown(site)))
			}
		}
	}
	return sentences
}

// sharedBy returns the first entry of a list that means a site of another one; "": there is none.
func sharedBy(others, list []string) string {
	is := map[string]bool{}
	var patterns []string
	for _, other := range others {
		if is[other] = true; strings.HasPrefix(other, visit.Subdomains) {
			patterns = append(patterns, other)
		}
	}
	for _, site := range list {
		among := patterns
		if strings.HasPrefix(site, visit.Subdomains) {
			among = others
		}
		if is[site] || slices.ContainsFunc(among, func(other string) bool { return visit.Overlap(other, site) }) {
			return site
		}
	}
	return ""
}
