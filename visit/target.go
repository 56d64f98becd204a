package visit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Target is the page for which a visit counts, and the site of this page. Both are in canonical form and printable
// ASCII. Page always starts with Site followed by "/". Every "%" in Page starts an escaped byte with upper-case
// digits.
type Target struct {
	Site, Page string
}

const targetMaxBytes = 2048

// Normalize returns the target for which a visit to a URI counts. keepQuery lists the query parameters that the app
// keeps, in the order of the app's settings. Every error is an *Error about the field "uri".
//
// Normalize reads http and https URIs as the WHATWG URL standard does, with these rules of its own:
//
//   - A URI begins with "http://" or "https://", in upper or lower case, followed by a host.
//     "http:host", "http:/host", "http:///host" and "//host" are refused. Spaces around the URI are
//     ignored, as in the standard.
//   - Control characters (C0, DEL, C1) are refused, while the standard drops some of them. Escapes of NUL and of
//     invalid UTF-8 are refused as well. These rules also apply to the parts of a URI that the app does not keep. So
//     an app's settings do not affect whether a URI is accepted.
//   - Escapes of unreserved characters are decoded. Other escapes stay, in upper case, so that %2F remains different
//     from "/". A "%" that is not part of an escape is written %25. Otherwise it could form an escape together with
//     decoded characters after it.
//   - The query keeps only the parameters in keepQuery: see appendTargetQuery.
//   - The fragment is left out unless it is a route, which begins with "/" or "!".
//   - In the paths /(other) and /(deleted) the brackets are escaped. Without the escapes, these names are reserved
//     for pages that hold the sums of other pages.
//   - The scheme, user-info and the scheme's default port are not part of a target. Any other port
//     is part of the target.
//
// Normalize is idempotent: if a scheme is added to the page of a target, the result has the same target. Either
// scheme works, except for two ports: a site that ends in ":80" needs https, and a site that ends in ":443" needs
// http.
func Normalize(raw string, keepQuery []string) (Target, error) {
	uri := strings.Trim(raw, " ")
	if problem := targetTextProblem(uri); problem != "" {
		return Target{}, targetError(problem)
	}
	rest, defaultPort := cutTargetScheme(uri)
	if rest == "" {
		return Target{}, targetError("it does not begin with http:// or https:// and a host: write it like http://example.com/page")
	}
	rest, fragment, _ := strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	authority, path := rest, ""
	if slash := strings.IndexAny(rest, `/\`); slash >= 0 {
		authority, path = rest[:slash], rest[slash:]
	}

	var space [256]byte // most pages fit into it, so that only the result needs an allocation
	page, problem := appendTargetSite(space[:0], authority, defaultPort)
	if problem != "" {
		return Target{}, targetError(problem)
	}
	siteLength := len(page)
	page = appendTargetPath(page, path)
	if query != "" {
		page = appendTargetQuery(page, query, keepQuery)
	}
	if fragment != "" && (fragment[0] == '/' || fragment[0] == '!') {
		page = appendCanonical(append(page, '#'), fragment, plainInFragment)
	}
	page = escapeReserved(page, siteLength)
	if len(page) > targetMaxBytes {
		return Target{}, targetError("its canonical form is longer than 2,048 bytes: shorten its path, or keep fewer query parameters")
	}
	canonical := string(page)
	if site := canonical[:siteLength]; site == OtherSite || site == EventSite {
		return Target{}, targetError(hostInvalid)
	}
	return Target{Site: canonical[:siteLength], Page: canonical}, nil
}

// Reserved targets. Their numbers are the sums of other targets, and no URI leads to them. The pages are written
// without their site.
const (
	OtherPage   = "/(other)"   // sums up pages beyond the app's limit of new pages
	OtherSite   = "(other)"    // sums up sites beyond this limit
	DeletedPage = "/(deleted)" // sums up deleted pages
)

// EventSite is the site of an app's events. Each event is a page of this site. No URI leads to these pages.
const EventSite = "(events)"

// EventTarget returns the target for which an event counts. The event is a name. It may be followed by a path, which
// is parsed like the path of a page. Every error is an *Error about the field "event".
func EventTarget(event string) (Target, error) {
	name, path, hasPath := strings.Cut(event, "/")
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != "" {
		return Target{}, Errorf(Invalid, "event", "%.64q is not the name of an event: write a-z, 0-9, _, . and -, 64 at most", name)
	}
	if !hasPath {
		return Target{Site: EventSite, Page: EventSite + "/" + name}, nil
	}
	read, err := Normalize("http://"+eventHost+"/"+path, nil)
	if err != nil {
		return Target{}, InField("event", err)
	}
	page := EventSite + "/" + name + strings.TrimPrefix(read.Page, eventHost)
	if len(page) > targetMaxBytes {
		return Target{}, Errorf(Invalid, "event", "it is longer than 2,048 bytes: shorten its path")
	}
	return Target{Site: EventSite, Page: page}, nil
}

// eventHost is a host that is put before the path of an event, so that Normalize can parse the path.
const eventHost = "x"

func escapeReserved(page []byte, siteLength int) []byte {
	if path := string(page[siteLength:]); path == OtherPage || path == DeletedPage {
		return append(page[:siteLength], "/%28"+strings.Trim(path, "/()")+"%29"...)
	}
	return page
}

func targetError(problem string) error {
	return &Error{Kind: Invalid, Field: "uri", Text: Text{Format: problem}}
}

// cutTargetScheme cuts off "http://" or "https://". It returns the rest of the URI and the default port of the
// scheme. If the URI starts with neither, the rest is empty.
func cutTargetScheme(uri string) (rest, defaultPort string) {
	const plain, secure = "http://", "https://"
	switch {
	case len(uri) > len(plain) && strings.EqualFold(uri[:len(plain)], plain):
		return uri[len(plain):], "80"
	case len(uri) > len(secure) && strings.EqualFold(uri[:len(secure)], secure):
		return uri[len(secure):], "443"
	}
	return "", ""
}

func appendTargetSite(out []byte, authority, defaultPort string) (site []byte, problem string) {
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		authority = authority[at+1:] // user-info is everything before the last "@"
	}
	host, port := authority, ""
	from := 0
	if strings.HasPrefix(authority, "[") {
		from = strings.IndexByte(authority, ']') + 1 // skip the colons of an IPv6 host
	}
	if colon := strings.IndexByte(authority[from:], ':'); colon >= 0 {
		host, port = authority[:from+colon], authority[from+colon+1:]
	}
	if host == "" {
		return nil, "it has no host: write it like http://example.com/page"
	}
	out, problem = appendTargetHost(out, host)
	if problem != "" {
		return nil, problem
	}
	if strings.Trim(port, "0123456789") != "" {
		return nil, "its port is not a number: write a number from 0 to 65535, or leave it out"
	}
	if port == "" {
		return out, ""
	}
	// Leading zeros have no meaning, but "000" is port 0.
	port = cmp.Or(strings.TrimLeft(port, "0"), "0")
	if len(port) > 5 || len(port) == 5 && port > "65535" {
		return nil, "its port is above 65535: write a number from 0 to 65535, or leave it out"
	}
	if port != defaultPort {
		out = append(append(out, ':'), port...)
	}
	return out, ""
}

// appendTargetPath appends the canonical path to out. An empty path becomes "/", and a backslash is read as a slash.
// The segments . and .. are resolved after decoding, so that %2e counts as a dot.
func appendTargetPath(out []byte, path string) []byte {
	if path == "" {
		return append(out, '/')
	}
	start := len(out)
	for path != "" {
		path = path[1:] // skip the slash
		end := strings.IndexAny(path, `/\`)
		if end < 0 {
			end = len(path)
		}
		slash := len(out)
		out = appendCanonical(append(out, '/'), path[:end], plainInPath)
		path = path[end:]

		segment := out[slash+1:]
		climbs := string(segment) == ".."
		if !climbs && string(segment) != "." {
			continue
		}
		out = out[:slash]
		if climbs {
			out = out[:start+max(bytes.LastIndexByte(out[start:], '/'), 0)]
		}
		if path == "" {
			out = append(out, '/') // a path that ends with . or .. means a folder, so it gets a slash at the end
		}
	}
	return out
}

// appendTargetQuery appends "?" and those parameters of the query that the app keeps. If there are none, it appends
// nothing. The parameters have this form:
//
//   - They are in the order of keep. A repeated name counts once, an empty name is ignored.
//   - A repeated parameter keeps all of its values, in order.
//   - A parameter without "=" is written with an empty value ("a" as "a="), because forms,
//     browsers and servers do not distinguish the two.
//   - Names are compared after decoding, and written as in the app's list, so that ids[] and ids%5B%5D are the same
//     parameter. A "+" stays a "+": only some servers read it as a space.
func appendTargetQuery(out []byte, query string, keep []string) []byte {
	separator := byte('?')
	for i, name := range keep {
		if name == "" || slices.Contains(keep[:i], name) {
			continue
		}
		for rest := query; rest != ""; {
			var parameter string
			parameter, rest, _ = strings.Cut(rest, "&")
			written, value, _ := strings.Cut(parameter, "=")
			if !decodesTo(written, name) {
				continue
			}
			out = append(out, separator)
			out = appendEscaped(out, name, plainInName)
			out = append(out, '=')
			out = appendCanonical(out, value, plainInQuery)
			separator = '&'
		}
	}
	return out
}

// isReserved reports whether a target is an event, or a target whose numbers are the sums of other targets. No URI
// leads to these targets, so users type them as they are shown in reports.
func isReserved(target string) bool {
	site, path, isPage := strings.Cut(target, "/")
	sum := "/"+path == OtherPage || "/"+path == DeletedPage
	switch site {
	case OtherSite:
		return !isPage || sum
	case EventSite:
		event, err := EventTarget(path)
		return !isPage || sum || err == nil && event.Page == target
	}
	read, err := normalizeTyped(site, nil)
	return err == nil && read.Site == site && isPage && sum
}

// ParseTarget parses a page or a site. A text with a scheme is the URI of a page. Without a scheme, a host alone is a
// site, and a host with a path is a page, as in reports. keepQuery lists the query parameters that the app keeps.
// Every error is an *Error about the field "uri".
func ParseTarget(text string, keepQuery []string) (string, error) {
	if isReserved(text) {
		return text, nil
	}
	target, err := normalizeTyped(text, keepQuery)
	if err != nil {
		return "", err
	}
	if !strings.Contains(text, "/") {
		return target.Site, nil
	}
	return target.Page, nil
}

// CheckStored returns an error unless a target is in the form in which targets are stored. The target may have any
// query parameters, because its app may have kept them.
func CheckStored(target string) error {
	site, deletion, isDeleting := strings.Cut(target, DeletedPage+" ") // a page whose deletion was interrupted has a number after DeletedPage
	if isDeleting && strings.Trim(deletion, "0123456789") == "" {
		target = site
	}
	if isReserved(target) {
		return nil
	}
	uri, _, _ := strings.Cut(target, "#")
	_, query, _ := strings.Cut(uri, "?")
	var keep []string
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		keep = append(keep, string(appendDecoded(nil, name)))
	}
	if read, err := ParseTarget(target, keep); err != nil || read != target {
		return Errorf(Invalid, "uri", "%.128q is not a page or a site in the form in which Footfall stores it", target)
	}
	return nil
}

// ParseSite parses a site: a host, a host and a port, or the URI of its home page. Every error is an *Error about the
// field "site".
func ParseSite(text string) (string, error) {
	if text == OtherSite || text == EventSite {
		return text, nil
	}
	target, err := normalizeTyped(text, nil)
	switch {
	case err != nil:
		return "", InField("site", err)
	case target.Page != target.Site+"/" || strings.ContainsAny(text, "?#@"):
		return "", Errorf(Invalid, "site", "%.128q is not a site: write a host like example.com, or a host and a port like localhost:3000", text)
	}
	return target.Site, nil
}

// normalizeTyped is Normalize for text that may have no scheme. If there is none, it adds http:// or https://. It
// chooses the scheme so that a port at the end of a site is kept.
func normalizeTyped(text string, keepQuery []string) (Target, error) {
	// A scheme after a slash is part of a path, as in example.com/https://other.example.
	if scheme, _, found := strings.Cut(text, "://"); found && !strings.Contains(scheme, "/") {
		return Normalize(text, keepQuery)
	}
	host, _, _ := strings.Cut(strings.Trim(text, " "), "/")
	if strings.ContainsAny(host, "@\\?#") {
		return Target{}, targetError("its host has characters that a host cannot have: write it like example.com/page or http://example.com/page")
	}
	if strings.HasSuffix(host, ":80") { // with http, Normalize would remove :80
		return Normalize("https://"+text, keepQuery)
	}
	return Normalize("http://"+text, keepQuery)
}
