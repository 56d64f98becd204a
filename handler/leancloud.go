package handler

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/counter/app"
	"footfall/handler/routing"
	"footfall/visit"
)

// leancloud serves pages whose theme (blog template) counts visits in a database of the service LeanCloud, in records of the
// class Counter. The key of a record is a path of the requesting site, or siteHot or siteUV for the site itself. The id of a
// record is its key in base64url. So Footfall derives the key from the id, and stores no records.
type leancloud struct{ *service }

const (
	recordClass = "Counter"
	recordPath  = "/1.1/classes/" + recordClass
	siteHot     = "site-pv" // key of the record with the site's page views, which Footfall calls hot
	siteUV      = "site-uv" // key of the record with the site's unique visitors (uv)

	mostRecords = 100 // maximum number of records that one query may request
	mostInBatch = 10
	// leanHeaders are the headers that themes send. Those with X-LC- identify an app of LeanCloud, and are ignored.
	leanHeaders = echo.HeaderContentType + ", X-LC-Id, X-LC-Key, X-LC-Sign, X-LC-Session"
)

func (l *leancloud) routes() []route {
	serve := func(handle func(*themePage) error) echo.HandlerFunc {
		return func(c echo.Context) error {
			if c.Request().Method == http.MethodOptions {
				return l.allow(c, "", pageMethods+", PUT", leanHeaders)
			}
			p, err := l.page(c)
			if err == nil {
				err = handle(p)
			}
			if err == nil {
				return nil
			}
			status, told := l.statusOf(c, err)
			return respond(c, status, leanError(status, told.Message()))
		}
	}
	return []route{
		{"/1.1/classes/:class", getPostOptions, serve((*themePage).records)},
		{"/1.1/classes/:class/:id", []string{http.MethodPut, http.MethodOptions}, serve((*themePage).increment)},
		{"/1.1/batch", postOptions, serve((*themePage).batch)},
	}
}

func leanError(status int, message string) []byte {
	text, _ := json.Marshal(message) // cannot fail for a string
	return fmt.Appendf(nil, `{"code":%d,"error":%s}`, status, text)
}

// themePage is a request from a page whose theme uses LeanCloud (see leancloud), and the app that counts the page's site.
type themePage struct {
	echo.Context
	*leancloud
	origin, site string
	app          string // name of the app that counts the site
	cell         *routing.Cell
}

// page finds the app that counts the site of the requesting page.
func (l *leancloud) page(c echo.Context) (p *themePage, err error) {
	h := c.Request().Header
	p = &themePage{Context: c, leancloud: l, origin: h.Get(echo.HeaderOrigin)}
	if p.origin == "" && h.Get("Sec-Fetch-Site") == "same-origin" { // browsers omit Origin in same-origin GETs
		p.origin = originOf(h.Get("Referer"))
	}
	if p.site = app.SiteOfOrigin(p.origin); p.site == "" {
		return nil, visit.Errorf(visit.Forbidden, "origin",
			"it is missing: these calls are only for pages, and browsers always send it")
	}
	p.app, err = l.Cells.AppOf(c.Request().Context(), p.origin+"/", l.Busuanzi)
	l.letRead(c, p.app)
	if err == nil {
		p.cell, err = l.Cells.Of(p.app)
	}
	return p, err
}

// records handles GET, which returns records, and POST, which creates a record.
func (p *themePage) records() error {
	if class := p.Param("class"); class != recordClass {
		return visit.Errorf(visit.NotFound, "", "there is no class %.64q: themes use the class %s", class, recordClass)
	}
	if p.Request().Method == http.MethodPost {
		return p.add()
	}
	member, keys, err := readWhere(p.QueryParam("where"))
	if err != nil {
		return err
	}
	ctx := p.Request().Context()
	register, err := p.cell.Counter.Register(ctx)
	if err != nil {
		return err
	}
	if of := register.Apps[p.app]; of == nil || !of.AllowsBadges(false) {
		return visit.Errorf(visit.BadKey, "", "app %s shows no numbers in pages: its operator can set --public-counts %s", p.app, app.PublicRead)
	}
	uris := make([]string, len(keys))
	for i, key := range keys {
		uris[i] = p.origin + key
		if isOfSite(key) {
			uris[i] = p.origin + "/"
		}
	}
	ask := p.request(p, &fields{app: field{value: p.app}})
	ask.Key, ask.HasNoVisitor = "", true
	counted, _, err := p.cell.Counter.CountsForPages(ctx, ask, uris)
	if err != nil {
		return err
	}
	out := []byte(`{"results":[`)
	out = appendList(out, len(keys), func(out []byte, i int) []byte {
		n := counted[i].Page.Hot
		switch keys[i] {
		case siteHot:
			n = counted[i].Site.Hot
		case siteUV:
			n = counted[i].Site.UV
		}
		name, _ := json.Marshal(keys[i]) // cannot fail for a string
		return fmt.Appendf(out, `{"objectId":%q,%q:%s,"time":%d}`, idOf(keys[i]), member, name, n)
	})
	return respond(p, http.StatusOK, append(out, "]}"...))
}

// add handles a request to create a record. A theme sends it if it found no record for its page. The record's field time is a
// number of visits. If it is 1, add counts a visit to the page.
func (p *themePage) add() error {
	key, count, title, err := readRecord(p.body())
	if err == nil && count {
		err = p.count(title, key)
	}
	if err != nil {
		return err
	}
	return respond(p, http.StatusCreated, fmt.Appendf(nil, `{"objectId":%q,"createdAt":%q}`, idOf(key), moment()))
}

// increment handles a PUT that increments a record: it counts a visit to the record's page.
func (p *themePage) increment() error {
	key, err := incremented("/1.1/classes/"+p.Param("class")+"/"+p.Param("id"), p.body())
	if err == nil {
		err = p.count("", key)
	}
	if err != nil {
		return err
	}
	return respond(p, http.StatusOK, fmt.Appendf(nil, `{"objectId":%q,"updatedAt":%q}`, idOf(key), moment()))
}

// batch handles several requests that were sent in one body. It counts a single visit for them, because they belong to one page
// view.
func (p *themePage) batch() error {
	var sent struct {
		Requests []struct {
			Method, Path string
			Body         json.RawMessage
		} `json:"requests"`
	}
	if err := readStrictly(p.body(), &sent); err != nil {
		return invalid("requests", `send {"requests":[{"method":"PUT","path":"%s/…","body":{…}}]}`, recordPath)
	}
	if len(sent.Requests) == 0 || len(sent.Requests) > mostInBatch {
		return invalid("requests", "there are %d: send 1 to %d", len(sent.Requests), mostInBatch)
	}
	var counting []string
	title, at := "", moment()
	out := []byte{'['}
	for i, r := range sent.Requests {
		key, counts, err := "", true, error(nil)
		switch {
		case r.Method == http.MethodPut:
			key, err = incremented(r.Path, r.Body)
		case r.Method == http.MethodPost && r.Path == recordPath:
			key, counts, title, err = readRecord(r.Body)
		default:
			err = invalid("method", "request %d is neither a PUT of a record nor a POST to %s", i+1, recordPath)
		}
		if err != nil {
			return err
		}
		if counts {
			counting = append(counting, key)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"success":{"objectId":%q,"createdAt":%q,"updatedAt":%[2]q}}`, idOf(key), at)
	}
	if err := p.count(title, counting...); err != nil {
		return err
	}
	return respond(p, http.StatusOK, append(out, ']'))
}

// count counts one page view for the records with these keys, unless all keys are siteUV. It counts the page whose path is one of
// the keys. If no key is a path, it counts the page in the Referer. If the Referer has no path or is from another site, it counts
// the site's page (other). Browsers send no path to another origin, unless the page's referrer policy permits this.
func (p *themePage) count(title string, keys ...string) error {
	page, visited := "", false
	for _, key := range keys {
		visited = visited || key != siteUV
		if isOfSite(key) || key == page {
			continue
		}
		if page != "" {
			return invalid("requests", "they are about two pages: send only the requests of one page view in a batch")
		}
		page = key
	}
	if !visited {
		return nil
	}
	f := fields{app: field{value: p.app}, uri: field{value: p.origin + page}, title: field{value: title}}
	if page == "" {
		referer := p.Request().Header.Get("Referer")
		if from, err := visit.Normalize(referer, nil); err == nil && from.Site == p.site && from.Page != p.site+"/" {
			f.uri.value = referer
		} else {
			f.uri.value = ""
		}
	}
	ask := p.request(p, &f)
	ask.Key, ask.OtherPageSite = "", p.site
	a, err := p.cell.Counter.Visit(p.Request().Context(), ask)
	if a.Skipped != "" {
		p.Response().Header().Set(skippedHeader, string(a.Skipped))
	}
	return err
}

func (p *themePage) body() []byte {
	// The error is ignored, because an incomplete body is later rejected as invalid.
	sent, _ := io.ReadAll(http.MaxBytesReader(p.Response(), p.Request().Body, mostInBatch*oneVisit.most))
	return sent
}

func moment() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// readStrictly reads a JSON object and rejects unknown members.
func readStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return invalid("body", "something follows the JSON object")
	}
	return nil
}

// keyField is the part of a record that contains its key. A theme uses either url or target.
type keyField struct {
	URL    json.RawMessage `json:"url"`
	Target json.RawMessage `json:"target"`
}

// one returns the member that is set: url or target. It rejects a record with both members, or with neither.
func (k *keyField) one() (name string, value json.RawMessage, err error) {
	if (k.URL == nil) == (k.Target == nil) {
		return "", nil, invalid("url", "give either url or target")
	}
	if k.URL != nil {
		return "url", k.URL, nil
	}
	return "target", k.Target, nil
}

// readWhere parses a query for one record, {"url":"/a/"}, or for several records, {"url":{"$in":["/a/"]}}.
func readWhere(text string) (member string, keys []string, err error) {
	var where keyField
	wrong := invalid("where",
		`it is not a valid query: send {"url":"/path/"} or {"url":{"$in":["/path/",…]}}, or target instead of url`)
	if readStrictly([]byte(text), &where) != nil {
		return "", nil, wrong
	}
	member, value, err := where.one()
	if err != nil {
		return "", nil, err
	}
	var one string
	var several struct {
		In []string `json:"$in"`
	}
	switch {
	case json.Unmarshal(value, &one) == nil && value[0] == '"':
		keys = []string{one}
	case readStrictly(value, &several) != nil || several.In == nil:
		return "", nil, wrong
	case len(several.In) > mostRecords:
		return "", nil, invalid("where", "it names %d paths: name at most %d", len(several.In), mostRecords)
	default:
		keys = several.In
	}
	for _, key := range keys {
		if err := checkRecord(key); err != nil {
			return "", nil, err
		}
	}
	return member, keys, nil
}

// readRecord parses a new record. count is true if the record's time (number of visits) is 1.
func readRecord(text []byte) (key string, count bool, title string, err error) {
	var sent struct {
		keyField
		Title string
		Time  *float64
	}
	if readStrictly(text, &sent) != nil {
		return "", false, "", invalid("body", `send {"url":"/path/","title":"…","time":1}`)
	}
	_, value, err := sent.one()
	if err == nil && json.Unmarshal(value, &key) != nil {
		err = invalid("url", "it is not a string")
	}
	if err == nil {
		err = checkRecord(key)
	}
	if err == nil && (sent.Time == nil || *sent.Time != 0 && *sent.Time != 1) {
		err = invalid("time", "send 1, which counts a visit, or 0")
	}
	if err != nil {
		return "", false, "", err
	}
	return key, *sent.Time == 1, sent.Title, nil
}

// incremented returns the key of the record that the URL path identifies. It checks that the body increments the record's field
// time by 1.
func incremented(path string, text []byte) (key string, err error) {
	id, is := strings.CutPrefix(path, recordPath+"/")
	decoded, err := base64.RawURLEncoding.DecodeString(id)
	if key = string(decoded); !is || err != nil || checkRecord(key) != nil {
		return "", visit.Errorf(visit.NotFound, "", "there is no object %.64q", path)
	}
	var sent struct {
		Time struct {
			Op     string `json:"__op"`
			Amount float64
		}
	}
	if readStrictly(text, &sent) != nil || sent.Time.Op != "Increment" || sent.Time.Amount != 1 {
		return "", invalid("time", `send {"time":{"__op":"Increment","amount":1}}`)
	}
	return key, nil
}

func idOf(key string) string { return base64.RawURLEncoding.EncodeToString([]byte(key)) }

func isOfSite(key string) bool { return key == siteHot || key == siteUV }

// checkRecord returns an error unless a record's key is a path, siteHot or siteUV.
func checkRecord(key string) error {
	if isOfSite(key) {
		return nil
	}
	if !strings.HasPrefix(key, "/") {
		return invalid("url", "%.64q is not a path like /hello/, %s or %s", key, siteHot, siteUV)
	}
	_, err := visit.Normalize("http://x"+key, nil)
	return err
}
