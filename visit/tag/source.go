package tag

import (
	"net/netip"
	"net/url"
	"strings"

	"footfall/visit"
)

// markNames are the query parameters in a page's address that describe where a visit came from. The last parameter
// contains the campaign. The other parameters contain the source, and the first usable value counts.
var markNames = [...]string{"utm_source", "source", "ref", "utm_campaign"}

// marks has the value of each query parameter in markNames, or "".
type marks [len(markNames)]string

func (m *marks) sources() []string { return m[:len(m)-1] }

func (m *marks) campaign() string { return m[len(m)-1] }

// readMarks reads the parameters in markNames from the query of a page's address. If a parameter is repeated, its
// first value counts.
func readMarks(uri string) (m marks) {
	uri, _, _ = strings.Cut(uri, "#")
	_, query, _ := strings.Cut(uri, "?")
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		name = strings.TrimPrefix(name, "amp;") // an & that was escaped as HTML once too often
		for i := range m {
			if m[i] == "" && strings.EqualFold(name, markNames[i]) {
				m[i], _ = url.QueryUnescape(value) // invalid values are ignored
			}
		}
	}
	return m
}

// sourceOf returns the source of a visit. This is the source that a query parameter of the page's address contains,
// or else the host of the referrer. A page of the same site is not a source.
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
		return "" // most visits in logs end here; the code below would return the same, but takes ten times as long
	}
	if host := HostOf(referrer); host != "" && host != bare(site) {
		return Value(serviceOf(host))
	}
	return ""
}

// MarkedHost returns the host in the query parameters that contain the source of a visit (markNames), or "".
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

// HostOf returns the host of a page's address, without port and www, or the name of an Android app. It returns ""
// for IP addresses, and for names of machines without a domain, because these have no meaning for readers.
func HostOf(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return ""
	}
	if end := strings.IndexAny(rest, `/\?#`); end >= 0 {
		rest = rest[:end]
	}
	if strings.EqualFold(scheme, "android-app") {
		scheme = "http" // names of apps are reversed hosts
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

// serviceOf returns the name of the service that a source belongs to. If there is none, it returns the source
// unchanged. A host belongs to the service with the longest matching domain.
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

// isEnding reports whether a host looks like the end of a service's domain for a country: com, de, co.uk, com.tr.
func isEnding(host string) bool {
	first, second, both := strings.Cut(host, ".")
	if both {
		return len(second) == 2 && (first == "co" || first == "com" || first == "ne")
	}
	return len(first) == 2 || first == "com" || first == "net" || first == "org"
}

// everywhere lists the services that have domains in many countries.
var everywhere = map[string]bool{"google": true, "yandex": true, "yahoo": true, "bing": true, "ecosia": true}
