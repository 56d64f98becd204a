package admin

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"footfall/counter/app"
	"footfall/visit"
	"footfall/webhook"
)

// ObjectKind describes one kind of object that belongs to an app, such as keys. The dashboard and the API use its fields and
// functions to list, add and remove these objects.
type ObjectKind struct {
	Name, One string  // the plural, which is also used in URLs, and the singular
	Fields    []Field // the inputs for adding an object
	Columns   []string
	// Lost describes the irreversible effect of removing an object. It is "" if the object can be added again.
	Lost string

	List   func(ctx context.Context, a *Admin, app string) ([][]any, error) // the first column identifies a row
	Add    func(ctx context.Context, a *Admin, app string, g InputValues) (AddedObject, error)
	Remove func(ctx context.Context, a *Admin, app, id string) error
}

// Field is an input for adding an object. Errors about a field begin with the field's name.
type Field struct {
	Name     string
	Help     string   // the flag or argument on the command line whose help explains this field
	Choices  []string // possible values, of which several can be chosen; nil: free text
	Is       bool     // the value is true or false
	Optional bool
}

// InputValues has the input values for a new object, by field name.
type InputValues map[string][]string

func (g InputValues) one(name string) string { return strings.Join(g[name], "\n") }

// number parses a number. It returns usual if the field is empty.
func (g InputValues) number(name string, usual int64) (int64, error) {
	if g.one(name) == "" {
		return usual, nil
	}
	n, err := strconv.ParseInt(g.one(name), 10, 64)
	if err != nil {
		return 0, visit.Errorf(visit.Invalid, name, "%.64q is not a number", g.one(name))
	}
	return n, nil
}

// AddedObject is an added object, including secrets that are shown only once.
type AddedObject map[string]any

// ObjectKinds lists all kinds of objects that belong to an app.
var ObjectKinds = []ObjectKind{
	{
		Name: "hosts", One: "host", Columns: []string{"host"}, Fields: []Field{{Name: "site", Help: "app site add <host>"}},
		List: func(ctx context.Context, a *Admin, app string) (rows [][]any, err error) {
			row, err := a.AppNamed(ctx, app)
			for _, site := range row.Sites {
				rows = append(rows, []any{site})
			}
			return rows, err
		},
		Add: func(ctx context.Context, a *Admin, app string, g InputValues) (AddedObject, error) {
			hosts, err := a.AddSites(ctx, app, g["site"])
			return AddedObject{"hosts": hosts}, err
		},
		Remove: func(ctx context.Context, a *Admin, app, id string) error {
			_, err := a.RemoveSites(ctx, app, []string{id})
			return err
		},
	},
	{
		Name: "keys", One: "key", Columns: []string{"key", "scope", "made", "used", "revoked"},
		Lost:   "Programs that use this key will be refused.",
		Fields: []Field{{Name: "scope", Help: "app key add --scope", Choices: strings.Split(scopeNames(), ", ")}},
		List:   listOf((*Admin).Keys, func(k KeysListRow) []any { return []any{k.Name, k.Scopes, k.CreatedAt, k.UsedAt, k.RevokedAt} }),
		Add: func(ctx context.Context, a *Admin, of string, g InputValues) (AddedObject, error) {
			var scopes []app.Scope
			for _, scope := range g["scope"] {
				scopes = append(scopes, app.Scope(scope))
			}
			key, err := a.AddKey(ctx, of, scopes)
			return AddedObject{"key": app.KeyName(key), "secret": key}, err
		},
		Remove: func(ctx context.Context, a *Admin, app, id string) error { return a.RevokeKey(ctx, app, id) },
	},
	{
		Name: "links", One: "link", Columns: []string{"link", "site", "made", "until", "revoked"},
		Lost: "This link will never show anything again.",
		Fields: []Field{{Name: "site", Help: "app share add --site", Optional: true},
			{Name: "until", Help: "app share add --until", Optional: true}},
		List: listOf((*Admin).Shares, func(s SharesListRow) []any {
			return []any{s.Name, s.Site, s.CreatedAt, visit.DayText(s.LastDay), s.RevokedAt}
		}),
		Add: func(ctx context.Context, a *Admin, app string, g InputValues) (AddedObject, error) {
			token, until, err := a.AddShare(ctx, app, g.one("site"), g.one("until"))
			name, _, _ := strings.Cut(token, "_")
			return AddedObject{"link": name, "until": visit.DayText(until), "secret": token}, err
		},
		Remove: func(ctx context.Context, a *Admin, app, id string) error { return a.RevokeShare(ctx, app, id) },
	},
	{
		Name: "notes", One: "note", Columns: []string{"number", "day", "site", "text"},
		Fields: []Field{{Name: "day", Help: "app note add <day>"}, {Name: "text", Help: "app note add <text>"},
			{Name: "site", Help: "app note add --site", Optional: true}},
		List: listOf((*Admin).Notes, func(n NotesListRow) []any { return []any{n.ID, visit.DayText(n.DayID), n.Site, n.Text} }),
		Add: func(ctx context.Context, a *Admin, app string, g InputValues) (AddedObject, error) {
			n, err := a.AddNote(ctx, app, g.one("day"), g.one("text"), g.one("site"))
			return AddedObject{"number": n.ID, "day": visit.DayText(n.DayID)}, err
		},
		Remove: byNumber((*Admin).RemoveNote),
	},
	{
		Name: "webhooks", One: "webhook",
		Columns: []string{"number", "target", "url", "private", "waiting", "next_try", "answers"},
		Lost:    "Calls waiting for this webhook will not be made.",
		Fields: []Field{{Name: "url", Help: "app webhook add <url>"}, {Name: "site", Help: "app webhook add --site", Optional: true},
			{Name: "uri", Help: "app webhook add --uri", Optional: true},
			{Name: "private", Help: "app webhook add --private", Is: true, Optional: true}},
		List: listOf((*Admin).Webhooks, func(w WebhooksListRow) []any {
			return []any{w.ID, w.Uri, w.Url, w.Private, w.Waiting, waits(w), w.Answers}
		}),
		Add: func(ctx context.Context, a *Admin, app string, g InputValues) (AddedObject, error) {
			id, target, key, err := a.AddWebhook(ctx, app, g.one("site"), g.one("uri"), g.one("url"), g.one("private") == "true")
			return AddedObject{"number": id, "target": target, "secret": webhook.KeyText(key)}, err
		},
		Remove: byNumber((*Admin).RemoveWebhook),
	},
	{
		Name: "offsets", One: "offset", Columns: []string{"uri", "hot", "pv", "uv"},
		Fields: []Field{{Name: "uri", Help: "offset <uri>"}, {Name: "hot", Help: "offset set --hot"},
			{Name: "pv", Help: "offset set --pv", Optional: true}, {Name: "uv", Help: "offset set --uv", Optional: true}},
		List: listOf((*Admin).Offsets, func(o Offset) []any { return []any{o.URI, o.Hot, o.PV, o.UV} }),
		Add: func(ctx context.Context, a *Admin, app string, g InputValues) (AddedObject, error) {
			hot, wrong := g.number("hot", 0)
			uv, err := g.number("uv", 0)
			wrong = cmp.Or(wrong, err)
			pv, err := g.number("pv", uv)
			if wrong = cmp.Or(wrong, err); wrong != nil {
				return nil, wrong
			}
			done, err := a.SetOffsets(ctx, app, []Offset{{URI: g.one("uri"), Hot: hot, PV: pv, UV: uv}}, false)
			return AddedObject{"added": done.Added, "changed": done.Changed}, err
		},
		Remove: func(ctx context.Context, a *Admin, app, id string) error {
			_, err := a.RemoveOffset(ctx, app, id)
			return err
		},
	},
}

// FindObjectKind returns the kind of object with this name, or nil.
func FindObjectKind(name string) *ObjectKind {
	for i := range ObjectKinds {
		if ObjectKinds[i].Name == name {
			return &ObjectKinds[i]
		}
	}
	return nil
}

func waits(w WebhooksListRow) any {
	if w.Waiting == 0 {
		return nil
	}
	return w.TryAt
}

// listOf returns a function that lists objects as rows.
func listOf[T any](list func(*Admin, context.Context, string) ([]T, error), columns func(T) []any,
) func(context.Context, *Admin, string) ([][]any, error) {
	return func(ctx context.Context, a *Admin, app string) (rows [][]any, err error) {
		all, err := list(a, ctx, app)
		for _, one := range all {
			rows = append(rows, columns(one))
		}
		return rows, err
	}
}

// byNumber returns a function that parses an ID and removes the object with this ID.
func byNumber[T any](remove func(*Admin, context.Context, string, int32) (T, error)) func(context.Context, *Admin, string, string) error {
	return func(ctx context.Context, a *Admin, app, id string) error {
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			return visit.Errorf(visit.NotFound, "number", "%.64q is not a number: look at the list", id)
		}
		_, err = remove(a, ctx, app, int32(n)) //nolint:gosec // parsed with 32 bits
		return err
	}
}

// Check returns an error if a required field is missing, a field is unknown, or a boolean field has another value than true or
// false.
func (t *ObjectKind) Check(g InputValues) error {
	for name := range g {
		if !slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Name == name }) {
			return visit.Errorf(visit.Invalid, name, "a %s has no such field: leave it out", t.One)
		}
	}
	for _, f := range t.Fields {
		if !f.Optional && g.one(f.Name) == "" {
			return visit.Errorf(visit.Invalid, f.Name, "it is missing")
		}
		if f.Is && !slices.Contains([]string{"", "true", "false"}, g.one(f.Name)) {
			return visit.Errorf(visit.Invalid, f.Name, "%.64q is not possible: write true or false", g.one(f.Name))
		}
	}
	return nil
}
