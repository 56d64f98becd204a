package handler

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"footfall/account"
	"footfall/admin"
	"footfall/counter/app"
	"footfall/visit"
)

// accounts handles /api/accounts: GET lists all accounts, and POST adds an account.
func (m *adminAPI) accounts(c echo.Context, by changer) error {
	accounts := m.Accounts.WithAuthor(by.Author())
	if c.Request().Method == http.MethodPost {
		name := strings.Join(by.given["name"], " ")
		delete(by.given, "name")
		rights, err := rightsOf(by.given, nil)
		if err != nil {
			return err
		}
		id, token, err := accounts.Add(c.Request().Context(), name, rights)
		return m.writeResult(c, http.StatusCreated, err, func() (any, error) { return object{"id": id, "url": m.startLink(c, token)}, nil })
	}
	all, err := accounts.List(c.Request().Context())
	list := []object{}
	for _, e := range all {
		list = append(list, object{"id": e.ID, "name": e.Name, "owner": e.Owner, "look": e.AppsWith(account.Look),
			"change": e.AppsWith(account.Change), "used": e.Used, "link_until": e.LinkUntil})
	}
	return m.writeResult(c, http.StatusOK, err, func() (any, error) { return object{"accounts": list}, nil })
}

// account handles /api/accounts/ID, which changes or removes an account.
func (m *adminAPI) account(c echo.Context, by changer) error {
	accounts := m.Accounts.WithAuthor(by.Author())
	ctx, id := c.Request().Context(), pathParam(c, "one")
	of, err := accounts.Find(ctx, "#"+id)
	if err != nil {
		return err
	}
	if c.Request().Method == http.MethodDelete {
		return m.writeResult(c, http.StatusOK, accounts.Remove(ctx, of.ID), func() (any, error) { return object{"removed": of.ID}, nil })
	}
	rights, err := rightsOf(by.given, of.Apps)
	if err != nil {
		return err
	}
	return m.writeResult(c, http.StatusOK, accounts.Set(ctx, of.ID, rights), func() (any, error) { return object{"id": of.ID}, nil })
}

// accountLink handles /api/accounts/ID/link, which creates a link for choosing a new password.
func (m *adminAPI) accountLink(c echo.Context, by changer) error {
	accounts := m.Accounts.WithAuthor(by.Author())
	of, err := accounts.Find(c.Request().Context(), "#"+pathParam(c, "one"))
	if err != nil {
		return err
	}
	token, err := accounts.NewLink(c.Request().Context(), of.ID)
	return m.writeResult(c, http.StatusCreated, err, func() (any, error) { return object{"id": of.ID, "url": m.startLink(c, token)}, nil })
}

func (s *service) startLink(c echo.Context, token string) string {
	return s.origin(c.Request()) + "/start/" + token
}

// rightsOf parses the fields owner, look and change of a request. had contains the account's current rights. If the request has
// the list look, the account loses the right look to apps that are not in this list. The same is true for change.
func rightsOf(given admin.InputValues, had map[string]account.Right) (r account.Rights, err error) {
	if owner, is := given["owner"]; is {
		said := strings.Join(owner, " ")
		if said != "true" && said != "false" {
			return r, visit.Errorf(visit.Invalid, "owner", "%.64q is not possible: write true or false", said)
		}
		r.Owner = ptrTo(said == "true")
	}
	r.Apps = map[string]account.Right{}
	for name, right := range had {
		if _, is := given[string(right)]; is {
			r.Apps[name] = account.None
		}
	}
	for _, right := range []account.Right{account.Look, account.Change} {
		for _, name := range given[string(right)] {
			if app.CheckName(name) != nil {
				return r, visit.Errorf(visit.Invalid, string(right), "%.64q is not the name of an app", name)
			}
			r.Apps[name] = right
		}
	}
	for name := range given {
		if !slices.Contains([]string{"owner", "look", "change"}, name) {
			return r, visit.Errorf(visit.Invalid, name, "an account has no such field: leave it out")
		}
	}
	return r, nil
}
