package admin

import (
	"context"
	"slices"
	"strings"

	"footfall/counter/app"
	"footfall/db"
	"footfall/visit"
)

// AddSites adds sites to an app's list, and returns the new list, even if the error is ErrInstancesBehind.
func (a *Admin) AddSites(ctx context.Context, name string, sites []string) (listed []string, err error) {
	return a.changeSites(ctx, name, sites, func(row *db.App, given []string) ([]string, error) {
		if len(row.Sites) == 0 {
			return nil, visit.Errorf(visit.Invalid, "site",
				"app %s counts any site; with a list of sites, it would count only the listed ones: if you want that, "+
					"list all of them with app set %[1]s --site …", name)
		}
		return append(slices.Clone(row.Sites), given...), nil // Apply removes duplicates
	})
}

// RemoveSites removes sites from an app's list. The numbers counted for these sites stay. It returns the new list, even if the
// error is ErrInstancesBehind.
func (a *Admin) RemoveSites(ctx context.Context, name string, sites []string) (listed []string, err error) {
	return a.changeSites(ctx, name, sites, func(row *db.App, given []string) ([]string, error) {
		for _, site := range given {
			if !slices.Contains(row.Sites, site) {
				return nil, visit.Errorf(visit.NotFound, "site", "app %s does not list %s, but %s", name, visit.Shown(site),
					strings.Join(ShownSites(row.Sites), ", "))
			}
		}
		rest := slices.DeleteFunc(slices.Clone(row.Sites), func(site string) bool { return slices.Contains(given, site) })
		if len(rest) == 0 {
			return nil, visit.Errorf(visit.Invalid, "site",
				"app %s would no longer list any site: add another one first, or let anyone count "+
					"any site with app set %[1]s --access open --site ''", name)
		}
		return rest, nil
	})
}

// changeSites parses sites, passes them to the function list, and replaces the app's list of sites by the result.
func (a *Admin) changeSites(ctx context.Context, name string, sites []string, list func(row *db.App, given []string) ([]string, error),
) (listed []string, err error) {
	err = a.change(ctx, "change the sites of app ", name, func(q queries, row *db.App) error {
		was, given := *row, *row
		if err := (app.Settings{Sites: sites}).Apply(&given, a.secret); err != nil { // parses the sites
			return err
		}
		all, err := list(row, given.Sites)
		if err != nil {
			return err
		}
		if err := (app.Settings{Sites: all}).Apply(row, a.secret); err != nil {
			return err
		}
		if err := a.checkListed(ctx, &was, row); err != nil {
			return err
		}
		listed = row.Sites
		return setApp(ctx, q, &was, row)
	})
	return listed, err
}

// checkDropped rejects a new list that leaves out sites of the old list. An operator who only wants to add a site may write a
// list with just this site. The operator would notice late that the other sites are no longer counted.
func checkDropped(was, row *db.App) error {
	if len(row.Sites) == 0 { // the app counts any site
		return nil
	}
	dropped := slices.DeleteFunc(slices.Clone(was.Sites), func(site string) bool {
		return slices.Contains(row.Sites, site) || app.ListsSite(row, site)
	})
	if len(dropped) == 0 {
		return nil
	}
	return visit.Errorf(visit.Invalid, "site", "app %s counts %s, which this list leaves out: app site add %[1]s adds sites to the list, and "+
		"app site remove %[1]s removes some", row.Name, strings.Join(ShownSites(dropped), ", "))
}

// checkListed rejects new sites for which a.listed returns true. The error does not name the other app, because the caller may
// have no right to see it.
func (a *Admin) checkListed(ctx context.Context, was, row *db.App) error {
	for _, site := range row.Sites {
		if a.listed == nil || slices.Contains(was.Sites, site) {
			continue
		}
		if elsewhere, err := a.listed(ctx, site); err != nil {
			return err
		} else if elsewhere {
			return visit.Errorf(visit.Forbidden, "site", "%s is listed by another app: an owner can list it here, too", visit.Shown(site))
		}
	}
	return nil
}

// ShownSites returns sites in readable form.
func ShownSites(sites []string) (shown []string) {
	for _, site := range sites {
		shown = append(shown, visit.Shown(site))
	}
	return shown
}
