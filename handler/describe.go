package handler

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"

	"footfall/report"
)

//go:embed openapi.json
var written []byte

// openAPI is the description of all calls. What all reports have in common is not written in
// openapi.json, nor is what they take, which they know.
var openAPI = sync.OnceValue(func() []byte {
	var all map[string]any
	_ = json.Unmarshal(written, &all) // which the tests read, too
	paths, of := all["paths"].(map[string]any), all["x-reports"].(map[string]any)
	for _, k := range report.Reports {
		paths["/api/apps/{app}/"+k.Name] = map[string]any{"get": describeOne(k, of[k.Name].(map[string]any))}
	}
	delete(all, "x-reports")
	body, _ := json.Marshal(all)
	return body
})

type object = map[string]any

func refer(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

func describeOne(k report.Report, of object) object {
	parameters := []any{refer("parameters", "app")}
	for _, name := range slices.Concat(k.Takes, []string{"format", "ifNoneMatch"}) {
		switch {
		case slices.Contains(k.Repeats, name):
			name += "s"
		case name == "name":
			name = "tagName"
		case name == "limit" && k.Whole():
			name = "whole"
		}
		parameters = append(parameters, refer("parameters", name))
	}
	headers := object{"ETag": refer("headers", "ETag")}
	if slices.Contains(k.Takes, "after") {
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
	for status, name := range map[string]string{
		"304": "NotModified", "400": "Invalid", "401": "BadKey", "403": "Forbidden", "404": "NotFound",
		"429": "TooMany", "503": "Unavailable",
	} {
		responses[status] = refer("responses", name)
	}
	return object{
		"tags": []any{"reports"}, "operationId": k.Name, "summary": of["summary"], "description": of["description"],
		"parameters": parameters, "security": []any{object{"key": []any{}}, object{}}, "responses": responses,
	}
}

// describeRows describes a list whose columns are each a name and a type.
func describeRows(list string, columns []string) object {
	types := object{"day": refer("schemas", "Day")}
	for _, name := range []string{"string", "integer", "boolean"} {
		types[name], types[name+"s"] = object{"type": name}, object{"type": "array", "items": object{"type": name}}
	}
	types["known"] = object{"type": []any{"integer", "null"}, "description": "null: not known, under a filter."}
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
