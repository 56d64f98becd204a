package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"footfall/admin"
	"footfall/counter"
	"footfall/counter/app"
	"footfall/handler/routing"
	"footfall/visit"
)

// adminAPI serves the administration API: apps, accounts, and the objects of apps (admin.ObjectKinds), such as keys and links.
type adminAPI struct{ *service }

var (
	getPostNoHead    = []string{http.MethodGet, http.MethodPost}
	getPatchOrDelete = []string{http.MethodGet, http.MethodPatch, http.MethodDelete}
	deleteOnly       = []string{http.MethodDelete}
)

func (m *adminAPI) routes() []route {
	table := []route{
		{"/api/apps", getPostNoHead, inColumns(m.withChanger(m.apps))},
		{"/api/apps/:app", getPatchOrDelete, inColumns(m.withChanger(m.app))},
		{"/api/apps/:app/visitors/erase", postOnly, m.withKey(m.erasing("visitor", func(ctx context.Context, a *admin.Admin, app, who string) error {
			_, err := a.EraseVisitor(ctx, app, who)
			return err
		}))},
		{"/api/apps/:app/pages/delete", postOnly, m.withKey(m.erasing("uri", func(ctx context.Context, a *admin.Admin, app, uri string) error {
			return a.DeletePage(ctx, app, uri)
		}))},
		{"/api/keys", getPostNoHead, m.withChanger(m.thingList(admin.FindObjectKind("keys")))},
		{"/api/keys/:one", deleteOnly, m.withChanger(m.remove(admin.FindObjectKind("keys")))},
	}
	for i := range admin.ObjectKinds {
		thing := &admin.ObjectKinds[i]
		table = append(table,
			route{"/api/apps/:app/" + thing.Name, getPostNoHead, m.withChanger(m.thingList(thing))},
			route{"/api/apps/:app/" + thing.Name + "/:one", deleteOnly, m.withChanger(m.remove(thing))})
	}
	return append(table, route{"/api/accounts", getPostNoHead, m.withChanger(m.accounts)},
		route{"/api/accounts/:one", []string{http.MethodPatch, http.MethodDelete}, m.withChanger(m.account)},
		route{"/api/accounts/:one/link", postOnly, m.withKey(m.accountLink)})
}

// changer is the Admin that carries out a request, with the rights of the request's key.
type changer struct {
	*admin.Admin
	app        string // the app in the path; "": the path names no app
	hasAllApps bool   // the key may change all apps
	given      admin.InputValues
}

// withChanger returns a handler that checks the request's key and then calls handle. For POST and PATCH, it also reads the fields
// in the body, and passes them as by.given.
func (m *adminAPI) withChanger(handle func(c echo.Context, by changer) error) echo.HandlerFunc {
	return m.withKey(func(c echo.Context, by changer) (err error) {
		if slices.Contains([]string{http.MethodPost, http.MethodPatch}, c.Request().Method) {
			if by.given, err = readGiven(c); err != nil {
				return err
			}
		}
		return handle(c, by)
	})
}

// withKey is like withChanger, but does not read the body.
func (m *adminAPI) withKey(handle func(c echo.Context, by changer) error) echo.HandlerFunc {
	return func(c echo.Context) error {
		name := pathParam(c, "app")
		a, ofAll, err := m.changer(c, name)
		if err != nil {
			return err
		}
		return handle(c, changer{a, name, ofAll, nil})
	}
}

// changer returns the Admin for an app ("": all apps), if the request's key permits changes. The key needs the scope admin, for
// this app or for all apps. ofAll reports whether the key is for all apps.
func (m *adminAPI) changer(c echo.Context, name string) (a *admin.Admin, ofAll bool, err error) {
	r := c.Request()
	ask := counter.Request{App: name, Key: bearer(r.Header), Peer: m.peer(r)}
	cell := m.Cells.Home()
	if name == "" {
		kind := visit.Forbidden
		if ask.Key == "" {
			kind = visit.BadKey
		}
		err = visit.Errorf(kind, "key", "this needs a key for all apps: `footfall key add --scope admin` creates one")
	} else if cell, err = m.Cells.Of(name); err != nil {
		return nil, false, err
	} else if err = cell.Counter.AuthorizeAdmin(r.Context(), ask); err == nil {
		return m.adminFor(cell, "key "+app.KeyName(ask.Key), func(app string) bool { return app == name }), false, nil
	}
	refused, is := errors.AsType[*visit.Error](err)
	if ask.Key == "" || !is || !slices.Contains([]visit.Kind{visit.BadKey, visit.Forbidden, visit.NotFound}, refused.Kind) {
		return nil, false, err
	}
	of, failed := m.Cells.Home().Admin.KeyOfAll(r.Context(), ask.Key)
	if failed != nil {
		return nil, false, visit.Unanswered(failed)
	}
	if of == "" { // the key is wrong: TryKey limits how many keys an address can guess
		return nil, false, cmp.Or(m.Cells.Home().Counter.TryKey(ask.Peer), err)
	}
	return cell.Admin.WithAuthor("key " + of), true, nil
}

// apps handles /api/apps: GET lists all apps, and POST adds an app.
func (m *adminAPI) apps(c echo.Context, by changer) error {
	ctx := c.Request().Context()
	if c.Request().Method == http.MethodPost {
		name := strings.Join(by.given["name"], "\n")
		in := strings.Join(by.given["cell"], "\n")
		delete(by.given, "name")
		delete(by.given, "cell")
		settings, err := settingsOf(by.given)
		if err == nil && settings.TZ == nil {
			err = visit.Errorf(visit.Invalid, "tz",
				"it is missing: name the app's time zone, like Europe/Berlin; it cannot change after the first visit")
		}
		if err != nil {
			return err
		}
		if settings.Visitor == nil {
			hashed := app.ByHash
			settings.Visitor = &hashed
		}
		cell, err := m.Cells.ForNew(ctx, name, in)
		if err != nil {
			return err
		}
		a := cell.Admin.WithAuthor(by.Author())
		return m.writeResult(c, http.StatusCreated, a.AddApp(ctx, name, settings), func() (any, error) { return appJSON(ctx, a, name) })
	}
	apps, away, err := m.appsOfAll(ctx)
	list := object{"apps": []object{}}
	for i := range apps {
		list["apps"] = append(list["apps"].([]object), app.ToJSON(&apps[i]))
	}
	if len(away) > 0 {
		list["away"] = away
	}
	return m.writeResult(c, http.StatusOK, err, func() (any, error) { return list, nil })
}

// app handles /api/apps/NAME, which returns, changes or deletes an app.
func (m *adminAPI) app(c echo.Context, by changer) error {
	name := by.app
	ctx := c.Request().Context()
	switch c.Request().Method {
	case http.MethodPatch:
		settings, err := settingsOf(by.given)
		if err != nil {
			return err
		}
		err = by.SetApp(extendDeadline(c), name, settings)
		return m.writeResult(c, http.StatusOK, err, func() (any, error) { return appJSON(ctx, by.Admin, name) })
	case http.MethodDelete:
		return m.writeResult(c, http.StatusOK, by.DeleteApp(extendDeadline(c), name), func() (any, error) { return object{"deleted": name}, nil })
	}
	is, err := appJSON(ctx, by.Admin, name)
	return m.writeResult(c, http.StatusOK, err, func() (any, error) { return is, nil })
}

// extendDeadline extends the deadline for a response to an hour. The returned context is not canceled if the caller disconnects.
func extendDeadline(c echo.Context) context.Context {
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(time.Hour)) // echo's response writer supports it
	return context.WithoutCancel(c.Request().Context())
}

// appsOfAll returns the apps of all cells, sorted by name, and the names of unreachable cells.
func (s *service) appsOfAll(ctx context.Context) (apps []admin.AppRow, away []string, err error) {
	here, away := s.Cells.All()
	of := make([][]admin.AppRow, len(here))
	failed, err := s.forEachCell(ctx, here, func(ctx context.Context, i int, cell *routing.Cell) (err error) {
		of[i], err = cell.Admin.Apps(ctx)
		of[i] = slices.DeleteFunc(of[i], func(row admin.AppRow) bool { return !s.Cells.Has(cell, row.Name) })
		return err
	})
	apps = slices.Concat(of...)
	slices.SortFunc(apps, func(a, b admin.AppRow) int { return cmp.Compare(a.Name, b.Name) })
	return apps, append(away, failed...), err
}

func appJSON(ctx context.Context, a *admin.Admin, name string) (object, error) {
	row, err := a.AppNamed(ctx, name)
	return app.ToJSON(&row), err
}

// thingList returns a handler for one kind of object (see admin.ObjectKinds), such as keys: GET lists them, POST adds one.
func (m *adminAPI) thingList(thing *admin.ObjectKind) func(echo.Context, changer) error {
	return func(c echo.Context, by changer) error {
		ctx := c.Request().Context()
		if c.Request().Method == http.MethodPost {
			made, err := addThing(ctx, by.Admin, thing, by.app, by.hasAllApps, by.given)
			if token, is := made["secret"].(string); is && thing.Name == "links" {
				made["url"] = m.origin(c.Request()) + "/share/" + token
			}
			return m.writeResult(c, http.StatusCreated, err, func() (any, error) { return made, nil })
		}
		rows, err := thing.List(ctx, by.Admin, by.app)
		list := []object{}
		for _, row := range rows {
			one := object{}
			for i, column := range thing.Columns {
				one[column] = row[i]
			}
			list = append(list, one)
		}
		return m.writeResult(c, http.StatusOK, err, func() (any, error) { return object{thing.Name: list}, nil })
	}
}

// onlyForAllApps maps a field to the value that only owners and keys for all apps may set. A key with the scope admin can change
// apps. A private webhook can call addresses in the service's own network.
var onlyForAllApps = map[string]string{"scope": string(app.ScopeAdmin), "private": "true"}

func addThing(ctx context.Context, a *admin.Admin, thing *admin.ObjectKind, name string, ofAll bool, given admin.InputValues,
) (admin.AddedObject, error) {
	if err := thing.Check(given); err != nil {
		return nil, err
	}
	for field, value := range onlyForAllApps {
		if !ofAll && slices.Contains(given[field], value) {
			return nil, visit.Errorf(visit.Forbidden, field, "only owners and keys for all apps can set %s", value)
		}
	}
	return thing.Add(ctx, a, name, given)
}

func (m *adminAPI) remove(thing *admin.ObjectKind) func(echo.Context, changer) error {
	return func(c echo.Context, by changer) error {
		one := pathParam(c, "one")
		err := thing.Remove(c.Request().Context(), by.Admin, by.app, one)
		return m.writeResult(c, http.StatusOK, err, func() (any, error) { return object{"removed": one}, nil })
	}
}

// erasing returns a handler that erases a visitor or a page of an app with the function lose. It requires no confirmation,
// because a program sends the request intentionally. The body contains the visitor or page, so that no URL contains it.
func (m *adminAPI) erasing(
	field string, lose func(ctx context.Context, a *admin.Admin, app, what string) error,
) func(echo.Context, changer) error {
	return func(c echo.Context, by changer) error {
		err := runLong(c, by.RunErasing, by.app, func(ctx context.Context, a *admin.Admin) error {
			given, err := readGiven(c)
			if err == nil && (len(given) != 1 || len(given[field]) != 1) {
				err = invalid(field, "send only this field, with a single string")
			}
			if err != nil {
				return err
			}
			return lose(ctx, a, by.app, given[field][0])
		})
		return m.writeResult(c, http.StatusOK, err, func() (any, error) { return object{}, nil })
	}
}

// writeResult returns err if a request has failed. Otherwise it responds with the result of makeResult as JSON. The status is 202
// if the change is stored, but some instance of the service has not confirmed it yet.
func (m *adminAPI) writeResult(c echo.Context, status int, err error, makeResult func() (any, error)) error {
	if admin.IsBehind(err) {
		status, err = http.StatusAccepted, nil
	}
	var verr *visit.Error
	if err != nil && c.Request().Method == http.MethodGet && !errors.As(err, &verr) {
		return visit.Unanswered(err)
	}
	if err != nil {
		return err
	}
	is, err := makeResult()
	if err != nil {
		return err
	}
	body, err := json.Marshal(is)
	if err != nil {
		return err
	}
	return respond(c, status, body)
}

// settingsOf parses the app settings in given, which maps their JSON names to values. It removes them from given, and returns all
// errors at once.
func settingsOf(given admin.InputValues) (s app.Settings, err error) {
	var parts []error
	for _, setting := range app.AllSettings {
		if typed, is := given[setting.Column()]; is {
			if err := setting.Parse(&s, typed); err != nil {
				parts = append(parts, err)
			}
			delete(given, setting.Column())
		}
	}
	for name := range given {
		parts = append(parts, visit.Errorf(visit.Invalid, "", "%.64q is not a setting: leave it out", name))
	}
	return s, visit.Join(parts...)
}

// inColumns returns a handler that calls handle. If handle returns an error about a setting, the returned handler replaces the
// setting's name in this error with its JSON name.
func inColumns(handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := handle(c)
		verr, is := errors.AsType[*visit.Error](err)
		if !is {
			return err
		}
		return verr.Rename(func(field string) string {
			for _, s := range app.AllSettings {
				if s.Name == field {
					return s.Column()
				}
			}
			return field
		})
	}
}

const mostGiven = 1 << 20 // maximum size of a request body in bytes; enough for 10,000 hosts

// readGiven reads a JSON object whose values are strings, numbers, booleans or lists of them.
func readGiven(c echo.Context) (admin.InputValues, error) {
	r := c.Request()
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, echo.NewHTTPError(http.StatusUnsupportedMediaType, "body: send JSON, with Content-Type: application/json")
	}
	sent, err := io.ReadAll(http.MaxBytesReader(c.Response(), r.Body, mostGiven))
	if err != nil {
		return nil, bodyError(err, mostGiven)
	}
	d := json.NewDecoder(bytes.NewReader(sent))
	d.UseNumber()
	wrong := invalid("body", "it is not a JSON object of strings, numbers, true, false and lists of strings, each given once")
	if open, _ := d.Token(); open != json.Delim('{') {
		return nil, wrong
	}
	given := admin.InputValues{}
	for d.More() {
		key, _ := d.Token()
		name, _ := key.(string)
		var value any
		if _, twice := given[name]; twice || d.Decode(&value) != nil {
			return nil, wrong
		}
		list, is := value.([]any)
		if !is {
			list = []any{value}
		}
		given[name] = []string{}
		for _, one := range list {
			text, is := textOf(one)
			if !is {
				return nil, invalid(name, "it is not a string, a number, true, false or a list of strings")
			}
			given[name] = append(given[name], text)
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, wrong
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, invalid("body", "something follows the JSON object: remove it")
	}
	return given, nil
}

func textOf(value any) (text string, is bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return map[bool]string{true: "true", false: "false"}[v], true
	}
	return "", false
}
