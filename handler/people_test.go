package handler

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
)

// peopleEdge is an edge with an app that has people, and the headers of somebody who may say and ask
// who is who.
func peopleEdge(t *testing.T) (e *edge, headers []string) {
	t.Helper()
	e = newEdge(t)
	e.administer(func(ctx context.Context, a *admin.Admin) error {
		return a.AddApp(ctx, "blog", app.Settings{Sites: []string{"blog.example"}, Visitor: ptr("id"), Tags: []string{"default", "age", "plan", "a", "b", "c", "d", "e", "f", "g"}})
	})
	return e, []string{"Authorization", "Bearer " + e.key("blog", app.ScopeAssert, app.ScopeRead)}
}

// put says something of ids, and returns what each is answered: ok, or what is wrong.
func (e *edge) put(body string, headers ...string) (said []string) {
	e.t.Helper()
	a := e.askWith(body, http.MethodPut, "/people?app=blog", headers...)
	require.Equal(e.t, http.StatusOK, a.status, a.body)
	var answer struct {
		People []struct {
			OK    bool
			Error string
		}
	}
	require.NoError(e.t, json.Unmarshal([]byte(a.body), &answer))
	for _, one := range answer.People {
		require.NotEqual(e.t, one.OK, one.Error != "", a.body)
		said = append(said, strings.TrimPrefix(one.Error, "is: "))
		if one.OK {
			said[len(said)-1] = "ok"
		}
	}
	return said
}

// Whoever may say who is who does, whoever may ask sees it.
func TestPeople(t *testing.T) {
	t.Parallel()
	e, headers := peopleEdge(t)
	said := e.put(`{"id":"cookie:abc","is":"user:42"}
{"id":"user:42","tags":{"age":"25-34","plan":" Pro "}}

{"id":"device:1","is":"cookie:abc","tags":{"age":"35-44","plan":"pro"}}`, append(inLines, headers...)...)
	assert.Equal(t, []string{"ok", "ok", "ok"}, said)
	a := e.askWith(`{"app":"blog","ids":["device:1","cookie:abc","user:42","nobody","","`+strings.Repeat("x", 300)+`"]}`, http.MethodPost, "/people/lookup", append(inArray, headers...)...)
	require.Equal(t, http.StatusOK, a.status, a.body)
	var answer struct{ People []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(a.body), &answer))
	person := answer.People[0]["person"]
	assert.Regexp(t, "^fd", person)
	tags := map[string]any{"age": "35-44", "plan": "pro"}
	assert.Equal(t, []map[string]any{
		{"id": "device:1", "person": person, "tags": tags}, {"id": "cookie:abc", "person": person, "tags": tags}, {"id": "user:42", "person": person, "tags": tags},
		{"id": "nobody", "tags": map[string]any{}},
		{"error": "id: it is missing: give the id by which you know the visitor"}, {"error": "id: it is longer than 256 bytes: shorten it, or send a hash of it"},
	}, answer.People)

	assert.JSONEq(t, `{"id":"cookie:abc","person":"`+person.(string)+`","tags":{"age":"35-44","plan":"pro"}}`, e.ask(http.MethodGet, "/people?app=blog&id=cookie:abc", headers...).body)
	assert.JSONEq(t, `{"id":"nobody","tags":{}}`, e.ask(http.MethodGet, "/people?app=blog&id=nobody", headers...).body)
	assert.Equal(t, []string{"ok"}, e.put(`[{"id":"cookie:abc","tags":{}}]`, append(inArray, headers...)...))
	assert.JSONEq(t, `{"id":"user:42","person":"`+person.(string)+`","tags":{}}`, e.ask(http.MethodGet, "/people?app=blog&id=user:42", headers...).body)
}
