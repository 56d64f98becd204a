package visit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// Target is the page that a visit counts, and the page's site, in canonical form. Page always starts with Site followed by
// "/". Site and Page are printable ASCII. A "%" in Page is always the start of an escaped byte, with upper-case digits.
type Target struct {
	Site, Page string
}

const targetMaxBytes = 2048

// Normalize returns the target that a URI counts. keepQuery lists the query parameters that the app
// keeps, in the app's order. Every error is an *Error about the field "uri".
//
// Normalize reads http and https URIs as the WHATWG URL standard does, with these rules of its own:
//
//   - A URI begins with "http://" or "https://", in upper or lower case, followed by a host.
//     "http:host", "http:/host", "http:///host" and "//host" are refused. Spaces around the URI are
//     ignored, as in the standard.
//   - Control characters (C0, DEL, C1) are refused, while the standard drops some of them. NUL and
//     invalid UTF-8 after decoding are refused as well. These rules apply to the whole URI, because
//     the parts that the app keeps must not decide whether a URI is countable.
//   - Escapes of unreserved characters are decoded. Other escapes stay, in upper case, so that %2F
//     remains different from "/". A "%" that does not begin an escape is written %25,
//     because it could form an escape with characters that are decoded after it.
//   - The query keeps only the parameters in keepQuery: see appendTargetQuery.
//   - The fragment is left out unless it is a route, which begins with "/" or "!".
//   - In the paths /(other) and /(deleted) the brackets are escaped, because the pages with these
//     names hold the sums of other pages.
//   - The scheme, user-info and the scheme's default port are not part of a target. Any other port
//     is part of the target.
//
// Normalize is idempotent: the page of a target with a scheme in front gives the same target again.
// Either scheme works, except for two ports: a site that ends in ":80" needs https, and a site that
// ends in ":443" needs http.
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

	var space [256]byte // most pages fit, so that only the result is allocated
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

// Reserved targets, whose numbers are the sums of other targets. The pages are given without their site. No URI leads
// to a reserved target.
const (
	OtherPage   = "/(other)"   // pages beyond the app's limit
	OtherSite   = "(other)"    // sites beyond the app's limit
	DeletedPage = "/(deleted)" // pages that were deleted
)

// EventSite is the site whose pages are an app's events. No URI leads to a page of this site.
const EventSite = "(events)"

// EventTarget returns the target that an event counts. The event is a name, perhaps followed by a path for the
// event's object. The path is parsed like the path of a page. Every error is an *Error about the field "event".
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

// eventHost is the placeholder for a host while the path of an event is parsed.
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

// cutTargetScheme returns the part after "http://" or "https://", and the scheme's default port. The rest is empty if
// the URI has neither prefix.
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
		path = path[1:] // the slash
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
			out = append(out, '/') // a path that ends with . or .. means a folder
		}
	}
	return out
}

// appendTargetQuery appends "?" and the parameters of the query that the app keeps, if there are any:
//
//   - They are in the order of keep. A repeated name counts once, an empty name is ignored.
//   - A repeated parameter keeps all of its values, in order.
//   - A parameter without "=" is written with an empty value ("a" as "a="), because forms,
//     browsers and servers do not distinguish the two.
//   - Names are compared after decoding and written as the app lists them, so that ids[] and
//     ids%5B%5D are the same parameter. A "+" stays a "+": only some servers read it as a space.
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
// leads to such a target, so users type it as reports show it.
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

// ParseTarget parses a page or a site. A URI gives its page. Without http:// or https://, a host is a site, and a host
// with a path is a page, as in reports. keepQuery lists the query parameters that the app keeps. Every error is an
// *Error about the field "uri".
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

// CheckStored returns an error unless a target is in the stored form, for any query parameters that the app may have
// kept.
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
		return Errorf(Invalid, "uri", "%.128q is not a page or a site as Footfall writes it", target)
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

// normalizeTyped is Normalize for text that may have no scheme. It adds http:// or https://, so that a site in
// canonical form keeps its port.
func normalizeTyped(text string, keepQuery []string) (Target, error) {
	// After a slash, the scheme is part of a path: example.com/https://other.example.
	if scheme, _, found := strings.Cut(text, "://"); found && !strings.Contains(scheme, "/") {
		return Normalize(text, keepQuery)
	}
	host, _, _ := strings.Cut(strings.Trim(text, " "), "/")
	if strings.ContainsAny(host, "@\\?#") {
		return Target{}, targetError("its host has characters that a host cannot have: write it like example.com/page or http://example.com/page")
	}
	if strings.HasSuffix(host, ":80") { // with http, the default port would be removed
		return Normalize("https://"+text, keepQuery)
	}
	return Normalize("http://"+text, keepQuery)
}
