package tag

import (
	"net/netip"
	"net/url"
	"strings"

	"footfall/visit"
)

// markNames are the parameters by which the address of a page says who has led to it: of those that
// name a source, the first that says anything counts.
var markNames = [...]string{"utm_source", "source", "ref", "utm_campaign"}

// marks are the values of markNames.
type marks [len(markNames)]string

func (m *marks) sources() []string { return m[:len(m)-1] }

func (m *marks) campaign() string { return m[len(m)-1] }

// readMarks reads the marks in the query of a page's address. Of a parameter that comes twice, the
// first is read.
func readMarks(uri string) (m marks) {
	uri, _, _ = strings.Cut(uri, "#")
	_, query, _ := strings.Cut(uri, "?")
	for query != "" {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, value, _ := strings.Cut(pair, "=")
		name = strings.TrimPrefix(name, "amp;") // of an & that was escaped as HTML, once too often
		for i := range m {
			if m[i] == "" && strings.EqualFold(name, markNames[i]) {
				m[i], _ = url.QueryUnescape(value) // what cannot be read says nothing
			}
		}
	}
	return m
}

// sourceOf returns where a visit comes from: what the page's address says, or else the host of the
// page before. A page of the same site is no source.
func sourceOf(m *marks, referrer, site string) string {
	for _, text := range m.sources() {
		source := ""
		if strings.Contains(text, "://") {
			source = HostOf(text)
		} else if source = Value(text); strings.Contains(source, ".") {
			source = strings.TrimPrefix(source, "www.")
		}
		if source != "" && source != bare(site) {
			return Value(grouped(source))
		}
	}
	if _, rest, _ := strings.Cut(referrer, "://"); strings.HasPrefix(rest, site+"/") {
		return "" // as most of those that logs have; the next line would find out, too, in ten times as long
	}
	if host := HostOf(referrer); host != "" && host != bare(site) {
		return Value(grouped(host))
	}
	return ""
}

// MarkedHost returns the host that the query of a page's address names as the source; "": none.
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

// HostOf returns the host of a page's address, without a port and www, or the name of an Android
// app; "" if it says nothing to people, as addresses and names of machines do not.
func HostOf(address string) string {
	scheme, rest, found := strings.Cut(address, "://")
	if !found {
		return ""
	}
	if end := strings.IndexAny(rest, `/\?#`); end >= 0 {
		rest = rest[:end]
	}
	if strings.EqualFold(scheme, "android-app") {
		scheme = "http" // names of apps are hosts backwards
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

// bare returns a site without its port and www.
func bare(site string) string {
	if colon := strings.LastIndexByte(site, ':'); colon > strings.LastIndexByte(site, ']') {
		site = site[:colon]
	}
	return strings.TrimPrefix(strings.TrimSuffix(site, "."), "www.")
}

// grouped returns the name of the service that a source belongs to, or else the source: a host
// belongs to the service of the longest domain that it is in.
func grouped(source string) string {
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

// isEnding reports whether a host can be one that a service has in a country: com, de, co.uk,
// com.tr.
func isEnding(host string) bool {
	first, second, both := strings.Cut(host, ".")
	if both {
		return len(second) == 2 && (first == "co" || first == "com" || first == "ne")
	}
	return len(first) == 2 || first == "com" || first == "net" || first == "org"
}

// everywhere are the services with a domain in many countries.
var everywhere = map[string]bool{"google": true, "yandex": true, "yahoo": true, "bing": true, "ecosia": true}
