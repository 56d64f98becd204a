package handler

import (
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/report"
)

//go:embed openapi.json
var openAPISource []byte

// openAPI returns the OpenAPI description of all calls. It reads openapi.json, and adds the reports and the administration API
// (describeChanges). The parameters of a report are from report.Reports, and its texts from x-reports in openapi.json.
var openAPI = sync.OnceValue(func() []byte {
	var all map[string]any
	_ = json.Unmarshal(openAPISource, &all) // cannot fail: tests parse openapi.json
	paths, of := all["paths"].(map[string]any), all["x-reports"].(map[string]any)
	for _, k := range report.Reports {
		paths["/api/apps/{app}/"+k.Name] = map[string]any{"get": describeOne(k, of[k.Name].(map[string]any))}
	}
	delete(all, "x-reports")
	describeChanges(paths)
	body, _ := json.Marshal(all)
	return body
})

type object = map[string]any

// refer returns a reference to an OpenAPI component. The suffix Parameter keeps the names of parameters and schemas distinct,
// because client generators create a type for each component.
func refer(kind, name string) object {
	if kind == "parameters" {
		name += "Parameter"
	}
	return object{"$ref": "#/components/" + kind + "/" + name}
}

func describeOne(k report.Report, of object) object {
	parameters := []any{refer("parameters", "app")}
	for _, name := range slices.Concat(k.Parameters, []string{"format", "ifNoneMatch"}) {
		switch {
		case slices.Contains(k.Repeats, name):
			name += "s"
		case name == "name":
			name = "tagName"
		case name == "limit" && k.AllowsAllRows():
			name = "whole"
		}
		parameters = append(parameters, refer("parameters", name))
	}
	headers := object{"ETag": refer("headers", "ETag")}
	if slices.Contains(k.Parameters, "after") {
		headers["Link"] = refer("headers", "Link")
	}
	var schema object
	if columns, is := of["columns"].(string); is {
		schema = describeRows(of["list"].(string), strings.Fields(columns))
	} else {
		schema = refer("schemas", of["schema"].(string))
	}
	responses := object{
		"200": object{"description": of["summary"], "headers": headers, "content": object{
			"application/json": object{"schema": schema}, "text/csv": object{"schema": object{"type": "string"}, "example": of["csv"]},
		}},
	}
	responses["304"] = refer("responses", "NotModified")
	describeRefusals(responses)
	return object{
		"tags": []any{"reports"}, "operationId": k.Name, "summary": of["summary"], "description": of["description"],
		"parameters": parameters, "security": []any{object{"key": []any{}}, object{}}, "responses": responses,
	}
}

func describeRefusals(responses object) {
	for status, name := range map[string]string{"400": "Invalid", "401": "BadKey", "403": "Forbidden", "404": "NotFound", "429": "TooMany",
		"503": "Unavailable"} {
		responses[status] = refer("responses", name)
	}
}

// describeRows returns the schema of a report that lists rows. Each element of columns has the form name:type.
func describeRows(list string, columns []string) object {
	types := object{"day": refer("schemas", "Day")}
	for _, name := range []string{"string", "integer", "boolean"} {
		types[name], types[name+"s"] = object{"type": name}, object{"type": "array", "items": object{"type": name}}
	}
	types["known"] = object{"type": []any{"integer", "null"}, "description": "null: not available under a filter."}
	properties, names := object{}, []any{}
	for _, column := range columns {
		name, is, _ := strings.Cut(column, ":")
		properties[name], names = types[is], append(names, name)
	}
	rows := object{"type": "object", "additionalProperties": false, "required": names, "properties": properties}
	return object{"type": "object", "additionalProperties": false, "required": []any{list}, "properties": object{
		list: object{"type": "array", "items": rows}, "next": refer("schemas", "Next"),
	}}
}

func describe(c echo.Context) error {
	h := c.Response().Header()
	h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	return send(c, "application/json", "no-cache", openAPI(), false)
}

// describeApps describes the calls of /api/apps, including the fields cell and away, which only services with cells use.
func describeApps(paths, named, one object) {
	text := object{"type": "string"}
	away := object{"type": "array", "items": text, "description": "In a service with cells: the names of the cells that " +
		"cannot be reached. Their apps are missing in the list."}
	all := object{"type": "object", "properties": object{"apps": object{"type": "array", "items": one}, "away": away}}
	adding := maps.Clone(named)
	adding["cell"] = object{"type": "string", "description": "In a service with cells: the cell for the app. Default: the " +
		"cell with the fewest apps."}
	paths["/api/apps"] = object{
		"get": describeChange("apps", "List all apps", nil, all),
		"post": describeChange("addApp", "Add an app with a name, a tz and other settings",
			object{"type": "object", "additionalProperties": false, "properties": adding}, one),
	}
}

// describeChanges describes the administration API. The descriptions of an app's settings are derived from
// app.AllSettings, and those of its keys, links, notes and so on from admin.ObjectKinds.
func describeChanges(paths object) {
	settings := object{}
	for _, s := range app.AllSettings {
		schema := object{"description": "See footfall app set --" + s.Name + "."}
		switch {
		case s.Many:
			schema["type"], schema["items"] = "array", object{"type": "string"}
		case s.Name == "respect-dnt":
			schema["type"] = "boolean"
		case s.Choices != nil:
			schema["type"], schema["enum"] = "string", s.Choices
		case s.Name == "tz":
			schema["type"] = "string"
		case !strings.HasPrefix(s.Name, "max-"): // limits (max-…) have no type, because they accept a number or the word default
			schema["type"] = "integer"
		}
		settings[s.Column()] = schema
	}
	named := object{"name": object{"type": "string"}}
	maps.Copy(named, settings)
	one := object{"type": "object", "additionalProperties": false, "properties": named}
	describeApps(paths, named, one)
	paths["/api/apps/{app}"] = object{
		"get": describeChange("app", "An app with its settings", nil, one, "app"),
		"patch": describeChange("setApp", "Change settings of an app; other settings stay unchanged",
			object{"type": "object", "properties": settings}, one, "app"),
		"delete": describeChange("deleteApp", "Delete an app and all of its data, without confirmation", nil,
			object{"type": "object"}, "app"),
	}
	takes := func(field string) object {
		return object{"type": "object", "properties": object{field: object{"type": "string"}}, "required": []any{field},
			"additionalProperties": false}
	}
	paths["/api/apps/{app}/visitors/erase"] = object{"post": describeChange("eraseVisitor",
		"Erase a visitor (an address or an id) from all stored data, without confirmation; sums and the ranks of others stay "+
			"unchanged",
		takes("visitor"), object{"type": "object"}, "app")}
	paths["/api/apps/{app}/pages/delete"] = object{"post": describeChange("deletePage",
		"Delete a page: its numbers move to the page (deleted) of its site, without confirmation",
		takes("uri"), object{"type": "object"}, "app")}
	for _, thing := range admin.ObjectKinds {
		describeThing(paths, thing, "/api/apps/{app}/", "an app", "app")
	}
	describeThing(paths, *admin.FindObjectKind("keys"), "/api/", "all apps")
	names := object{"type": "array", "items": object{"type": "string"}}
	rights := object{"type": "object", "properties": object{"owner": object{"type": "boolean"}, "look": names, "change": names}}
	invited := object{"type": "object", "properties": object{"name": object{"type": "string"}, "owner": object{"type": "boolean"},
		"look": names, "change": names}}
	answer := object{"type": "object"}
	paths["/api/accounts"] = object{
		"get":  describeChange("accounts", "List all accounts, with the apps that each may view or change", nil, answer),
		"post": describeChange("addAccount", "Add an account, and return a link for choosing its password", invited, answer),
	}
	paths["/api/accounts/{one}"] = object{
		"patch": describeChange("setAccount",
			"Change the rights of an account; a list replaces the previous list", rights, answer, "one"),
		"delete": describeChange("removeAccount", "Remove an account, and end its sessions", nil, answer, "one"),
	}
	paths["/api/accounts/{one}/link"] = object{
		"post": describeChange("addAccountLink", "Create a link for choosing a new password", nil, answer, "one"),
	}
}

func describeThing(paths object, thing admin.ObjectKind, below, of string, parameters ...string) {
	row, given, needed := object{}, object{}, []any{}
	for _, column := range thing.Columns {
		row[column] = object{}
	}
	for _, f := range thing.Fields {
		given[f.Name] = object{"type": "string"}
		switch {
		case f.Choices != nil:
			given[f.Name] = object{"type": "array", "items": object{"type": "string", "enum": f.Choices}}
		case f.Is:
			given[f.Name] = object{"type": "boolean"}
		case thing.Name == "offsets" && f.Name != "uri":
			given[f.Name] = object{"type": "integer"}
		}
		if !f.Optional {
			needed = append(needed, f.Name)
		}
	}
	id, list := "All"+thing.Name, object{"type": "array", "items": object{"type": "object", "properties": row}}
	if len(parameters) > 0 {
		id = "App" + thing.Name
	}
	told := object{"type": "object", "properties": object{thing.Name: list}}
	paths[below+thing.Name] = object{
		"get": describeChange("list"+id, "List the "+thing.Name+" of "+of, nil, told, parameters...),
		"post": describeChange("add"+id, "Add one to the "+thing.Name+" of "+of+"; a secret in the response is shown only once",
			object{"type": "object", "properties": given, "required": needed, "additionalProperties": false}, object{"type": "object"},
			parameters...),
	}
	paths[below+thing.Name+"/{one}"] = object{"delete": describeChange("remove"+id, "Remove one of the "+thing.Name+" of "+of+
		", as identified in the list", nil, object{"type": "object"}, append(parameters, "one")...)}
}

func describeChange(id, summary string, given, told object, parameters ...string) object {
	body := func(schema object) object { return object{"application/json": object{"schema": schema}} }
	success, responses := "200", object{}
	describeRefusals(responses)
	operation := object{"tags": []any{"changes"}, "operationId": id, "summary": summary, "security": []any{object{"key": []any{}}},
		"responses": responses}
	if given != nil {
		operation["requestBody"] = object{"required": true, "content": body(given)}
		responses["413"], responses["415"] = refer("responses", "TooLarge"), refer("responses", "NoJSON")
	}
	if strings.HasPrefix(id, "add") {
		success = "201"
	}
	responses[success] = object{"description": "Done.", "content": body(told)}
	responses["202"] = object{"description": "Done, but some instance has not confirmed the change yet.", "content": body(told)}
	of := []any{}
	for _, name := range parameters {
		if name == "app" {
			of = append(of, refer("parameters", name))
			continue
		}
		of = append(of, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	operation["parameters"] = of
	return operation
}
