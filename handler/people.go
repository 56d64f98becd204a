package handler

import (
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/labstack/echo/v4"

	"footfall/counter/app"
	"footfall/intake"
)

// people handles /people. GET looks up the person for an id, and PUT links many ids to persons.
func (s *service) people(c echo.Context) error {
	r := c.Request()
	f, err := readQuery(r.URL.RawQuery)
	if err != nil {
		return err
	}
	if r.Method == http.MethodPut {
		return s.putPeople(c, &f)
	}
	if !f.id.isSet && f.parseErr == nil {
		f.parseErr = invalid("id", "it is missing: send your own id for the visitor")
	}
	found, err := s.findPeople(c, &f, []string{f.id.value})
	if err == nil && found[0].Fault != nil {
		err = found[0].Fault
	}
	if err != nil {
		return err
	}
	return respond(c, http.StatusOK, appendPerson(nil, f.id.value, &found[0]))
}

// lookUpPeople handles /people/lookup, which returns the persons for many ids.
func (s *service) lookUpPeople(c echo.Context) error {
	f, err := readBody(c.Request(), c.Response(), manyPeople)
	if err != nil {
		return err
	}
	found, err := s.findPeople(c, &f, f.list)
	if err != nil {
		return err
	}
	out := appendList([]byte(`{"people":[`), len(found), func(out []byte, i int) []byte {
		if found[i].Fault != nil {
			return append(out, errorBody(found[i].Fault.Error())...)
		}
		return appendPerson(out, f.list[i], &found[i])
	})
	return respond(c, http.StatusOK, append(out, "]}"...))
}

func (s *service) findPeople(c echo.Context, f *fields, ids []string) ([]app.Person, error) {
	cell, err := s.Cells.Of(f.app.value)
	if err != nil {
		return nil, err
	}
	people, err := cell.Counter.AuthorizeFindingPeople(c.Request().Context(),
		s.request(c, &fields{app: f.app, ip: field{isSet: true}, parseErr: f.parseErr}))
	if err != nil {
		return nil, err
	}
	return people.Find(c.Request().Context(), ids)
}

// appendPerson appends a JSON object with an id, the person that the id is linked to, and the person's tags. If the id is not
// linked to a person, the object has no field person.
func appendPerson(out []byte, id string, w *app.Person) []byte {
	answer := struct {
		ID     string            `json:"id"`
		Person netip.Addr        `json:"person,omitzero"`
		Tags   map[string]string `json:"tags"`
	}{id, w.Person, map[string]string{}}
	for _, t := range w.Tags {
		answer.Tags[t.Name] = t.Value
	}
	body, _ := json.Marshal(answer) // cannot fail for strings
	return append(out, body...)
}

// putPeople links many ids to persons. It checks the app, the key and the headers before it reads the body.
func (s *service) putPeople(c echo.Context, f *fields) error {
	r := c.Request()
	cell, err := s.Cells.Of(f.app.value)
	if err != nil {
		return err
	}
	people, err := cell.Counter.AuthorizePuttingPeople(r.Context(), s.request(c,
		&fields{app: f.app, ip: field{isSet: true}, parseErr: f.parseErr}))
	if err != nil {
		return err
	}
	call := intake.Call{Turns: cell.Turns}
	if err := readKind(c, &call); err != nil {
		return err
	}
	faults, err := s.desk.PutPeople(r.Context(), call, people)
	if err != nil {
		return err
	}
	out := appendList(append(make([]byte, 0, 16*len(faults)), `{"people":[`...), len(faults), func(out []byte, i int) []byte {
		if faults[i] != "" {
			return append(out, errorBody(faults[i])...)
		}
		return append(out, `{"ok":true}`...)
	})
	return respond(c, http.StatusOK, append(out, "]}"...))
}
