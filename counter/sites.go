package counter

import (
	"fmt"
	"footfall/visit"
	"strings"
)

// sites are those that an app counts.
type sites struct {
	exact map[string]bool
	below map[string]bool // hosts with their ports, and a dot before: all of their subdomains
}

// subdomains begins what stands for every subdomain of a host, but not for the host itself.
const subdomains = "*."

func newSites(list []string) sites {
	s := sites{exact: map[string]bool{}, below: map[string]bool{}}
	for _, site := range list {
		if host, wild := strings.CutPrefix(site, subdomains); wild {
			s.below["."+host] = true
		} else {
			s.exact[site] = true
		}
	}
	return s
}

func (s sites) empty() bool { return len(s.exact) == 0 && len(s.below) == 0 }

// have reports whether a site, in canonical form, is among them.
func (s sites) have(site string) bool {
	if s.exact[site] {
		return true
	}
	if len(s.below) == 0 {
		return false
	}
	for at := range len(site) {
		if site[at] == '.' && at > 0 && s.below[site[at:]] {
			return true
		}
	}
	return false
}

// readSite reads what --site names: a host, or a host and a port, or all subdomains of one.
func readSite(raw string) (string, error) {
	if host, wild := strings.CutPrefix(raw, subdomains); wild {
		return readSubdomains(raw, host)
	}
	site, ok := siteOf(raw)
	if !ok {
		return "", fmt.Errorf("site: %.128q is no site: write a host like example.com, a host and a port like localhost:3000, or *.example.com for every subdomain", raw)
	}
	return site, nil
}

func readSubdomains(raw, host string) (string, error) {
	site, ok := siteOf("a." + host) // so that a number, which would be an address, is read as a name
	below, named := strings.CutPrefix(site, "a.")
	name, _, _ := strings.Cut(below, ":")
	if !ok || !named || strings.Trim(name, ".") == "" {
		return "", fmt.Errorf("site: %.128q is no site: write *.example.com for every subdomain of example.com", raw)
	}
	if !strings.Contains(name, ".") && name != "localhost" {
		return "", fmt.Errorf("site: %.128q would count anybody's domains: write more of it, like *.example.%s", raw, name)
	}
	return subdomains + below, nil
}

// siteOf is the canonical form of a host, or of a host and a port.
func siteOf(raw string) (site string, ok bool) {
	scheme := "http://"
	if strings.HasSuffix(raw, ":80") {
		scheme = "https://" // where 80 is not the port that is left out
	}
	target, err := visit.Normalize(scheme+raw, nil)
	return target.Site, err == nil && target.Page == target.Site+"/" && !strings.ContainsAny(raw, "/\\?#@*")
}

// siteOfOrigin is the site of the page that a browser says it comes from; "" for one that is of no site.
func siteOfOrigin(origin string) string {
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
