package app

import (
	"strings"

	"footfall/db"
	"footfall/visit"
)

// sites are the sites that an app counts.
type sites struct {
	exact      map[string]bool
	subdomains map[string]bool // hosts with a dot in front, such as ".localhost:3000": all their subdomains are counted
}

func newSites(list []string) sites {
	s := sites{exact: map[string]bool{}, subdomains: map[string]bool{}}
	for _, site := range list {
		if host, wild := strings.CutPrefix(site, visit.Subdomains); wild {
			s.subdomains["."+host] = true
		} else {
			s.exact[site] = true
		}
	}
	return s
}

func (s sites) empty() bool { return len(s.exact) == 0 && len(s.subdomains) == 0 }

// contains reports whether a site, in canonical form, is included.
func (s sites) contains(site string) bool {
	if s.exact[site] {
		return true
	}
	if len(s.subdomains) == 0 {
		return false
	}
	for at := range len(site) {
		if site[at] == '.' && at > 0 && s.subdomains[site[at:]] {
			return true
		}
	}
	return false
}

// readSite reads an entry of the setting site: a site as visit.ParseSite reads it, or *.host for all subdomains of a
// host.
func readSite(raw string) (string, error) {
	if host, wild := strings.CutPrefix(raw, visit.Subdomains); wild {
		return readSubdomains(raw, host)
	}
	site, err := visit.ParseSite(raw)
	if err != nil || !visit.IsListable(site) {
		return "", visit.Errorf(visit.Invalid, "site",
			"%.128q is not a site: write a host like example.com, a host and a port like localhost:3000, or *.example.com for every subdomain", raw)
	}
	return site, nil
}

// CheckSites returns an error unless each site in a list is in the form that readSite returns.
func CheckSites(list []string) error {
	for _, site := range list {
		if read, err := readSite(site); err != nil || read != site {
			return visit.Errorf(visit.Invalid, "site", "%.128q is not a site as Footfall writes it: remove it from the export", site)
		}
	}
	return nil
}

func readSubdomains(raw, host string) (string, error) {
	site, err := visit.ParseSite("a." + host) // with the label "a.", a host that looks like an address is not parsed as one
	below, named := strings.CutPrefix(site, "a.")
	name, _, _ := strings.Cut(below, ":")
	if err != nil || !named || strings.Contains(host, "/") || !visit.IsListable(site) {
		return "", visit.Errorf(visit.Invalid, "site", "%.128q is not a site: write *.example.com for every subdomain of example.com", raw)
	}
	if !strings.Contains(name, ".") && name != "localhost" {
		return "", visit.Errorf(visit.Invalid, "site",
			"%.128q would count anyone's domains: be more specific, like *.example.%s", raw, name)
	}
	return visit.Subdomains + below, nil
}

// SiteOfOrigin returns the site of an Origin header, or "" if the origin is not a site.
func SiteOfOrigin(origin string) string {
	_, host, _ := strings.Cut(origin, "://")
	if strings.ContainsAny(host, "/\\?#@") || strings.Contains(origin, " ") {
		return "" // an origin has no path, not even a slash
	}
	target, err := visit.Normalize(origin, nil)
	if err != nil {
		return ""
	}
	return target.Site
}

// AllowsOrigin reports whether the app counts the site of an Origin header.
func (a *App) AllowsOrigin(origin string) bool {
	site := SiteOfOrigin(origin)
	return site != "" && a.Counts(site)
}

// Target reads a URI, and returns an error if the app does not count its site.
func (a *App) Target(uri string) (visit.Target, error) {
	if uri == "" {
		return visit.Target{}, visit.Errorf(visit.Invalid, "uri", "it is missing: give the address of the page, http://…")
	}
	t, err := visit.Normalize(uri, a.KeepQuery)
	if err == nil && !a.Counts(t.Site) {
		err = visit.Errorf(visit.Forbidden, "uri", "app %s does not count the site %s: its operator can add it (app site add)", a.Name, t.Site)
	}
	return t, err
}

// Lists reports whether the app lists a site, in canonical form.
func (a *App) Lists(site string) bool { return a.sites.contains(site) }

// CountsSite reports whether an app counts a site, in canonical form.
func CountsSite(row *db.App, site string) bool {
	listed := newSites(row.Sites)
	return row.Access == AccessOpen && listed.empty() || listed.contains(site)
}

// ListsSite reports whether an app lists a site, in canonical form.
func ListsSite(row *db.App, site string) bool { return newSites(row.Sites).contains(site) }
