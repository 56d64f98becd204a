package tag

import (
	"net/netip"
	"net/url"
	"strings"

	"footfall/visit"
)

// markNames are the query parameters in a page's address that state where a visit comes from. The last parameter
// contains the campaign. The others contain the source: the first of them with a usable value is used.
var markNames = [...]string{"utm_source", "source", "ref", "utm_campaign"}

// marks contains the values of the query parameters in markNames. A missing parameter has the value "".
type marks [len(markNames)]string

func (m *marks) sources() []string { return m[:len(m)-1] }

func (m *marks) campaign() string { return m[len(m)-1] }

// readMarks reads the parameters in markNames from the query of a page's address. If a parameter occurs several
// times, its first nonempty value is used.
func readMarks(uri string) (m marks) {
	uri, _, _ = strings.Cut(uri, "#")
	_, query, _ := strings.Cut(uri, "?")
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		name = strings.TrimPrefix(name, "amp;") // remains of &amp;, if the address was escaped twice as HTML
		for i := range m {
			if m[i] == "" && strings.EqualFold(name, markNames[i]) {
				m[i], _ = url.QueryUnescape(value) // invalid values are ignored
			}
		}
	}
	return m
}

// sourceOf returns the source of a visit. This is the source in a query parameter of the page's address. If there is
// none, it is the host of the referrer. The visit's own site is never a source.
func sourceOf(m *marks, referrer, site string) string {
	for _, text := range m.sources() {
		source := ""
		if strings.Contains(text, "://") {
			source = HostOf(text)
		} else if source = Value(text); strings.Contains(source, ".") {
			source = strings.TrimPrefix(source, "www.")
		}
		if source != "" && source != bare(site) {
			return Value(serviceOf(source))
		}
	}
	if _, rest, _ := strings.Cut(referrer, "://"); strings.HasPrefix(rest, site+"/") {
		return "" // a shortcut for most visits in logs: the code below has the same result, but takes ten times as long
	}
	if host := HostOf(referrer); host != "" && host != bare(site) {
		return Value(serviceOf(host))
	}
	return ""
}

// MarkedHost returns the source of a visit, as stated by the query parameters in markNames, if this source is a host.
// Otherwise it returns "".
func MarkedHost(uri string) string {
	marks := readMarks(uri)
	for _, text := range marks.sources() {
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		if host := HostOf(text); host != "" {
			return host
		}
	}
	return ""
}

// HostOf returns the host of a page's address without port and www. If the address is that of an Android app, it
// returns the name of the app. It returns "" for IP addresses, and for names of machines without a domain, because
// these names mean nothing to the readers of reports.
func HostOf(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return ""
	}
	if end := strings.IndexAny(rest, `/\?#`); end >= 0 {
		rest = rest[:end]
	}
	if strings.EqualFold(scheme, "android-app") {
		scheme = "http" // so that Normalize accepts it: the name of an app has the form of a host
	}
	target, err := visit.Normalize(scheme+"://"+rest, nil)
	if err != nil {
		return ""
	}
	host := bare(target.Site)
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") || strings.HasPrefix(host, "[") {
		return ""
	}
	return host
}

// bare returns a site without its port and without the prefix www.
func bare(site string) string {
	if colon := strings.LastIndexByte(site, ':'); colon > strings.LastIndexByte(site, ']') {
		site = site[:colon]
	}
	return strings.TrimPrefix(strings.TrimSuffix(site, "."), "www.")
}

// serviceOf returns the name of the service to which a source belongs. If the domains of several services match, it
// returns the service with the longest domain. If there is no service, it returns the source unchanged.
func serviceOf(source string) string {
	if service := services[source]; service != "" {
		return service
	}
	if name, rest, _ := strings.Cut(source, "."); isEnding(rest) && everywhere[name] {
		return name
	}
	for host := source; ; {
		_, parent, found := strings.Cut(host, ".")
		if !found {
			return source
		}
		if service := services["."+parent]; service != "" {
			return service
		}
		host = parent
	}
}

// isEnding reports whether a domain is one that services use after their name in a country, like com, de, co.uk or
// com.tr.
func isEnding(host string) bool {
	first, second, both := strings.Cut(host, ".")
	if both {
		return len(second) == 2 && (first == "co" || first == "com" || first == "ne")
	}
	return len(first) == 2 || first == "com" || first == "net" || first == "org"
}

// everywhere lists the services that have domains in many countries.
var everywhere = map[string]bool{"google": true, "yandex": true, "yahoo": true, "bing": true, "ecosia": true}
