package desk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/account"
)

// Password is that of all accounts of a desk.
const Password = "seven trombones"

// Owner is the name of the first account of a desk.
const Owner = "Olga"

// SignIn makes an account that may do something, after that of Owner, and returns what a browser keeps
// that is signed in to it.
func (d *Desk) SignIn(t testing.TB, name string, r account.Rights) (session string) {
	t.Helper()
	all := account.Open(d.DB)
	start, err := all.NewStart(t.Context())
	require.NoError(t, err)
	if start != "" {
		session, err = all.Follow(t.Context(), start, Owner, Password, "a test")
		require.NoError(t, err)
	}
	if name == Owner {
		if session == "" {
			session, err = all.SignIn(t.Context(), Owner, Password, "a test")
			require.NoError(t, err)
		}
		return session
	}
	_, link, err := all.Add(t.Context(), name, r)
	require.NoError(t, err)
	session, err = all.Follow(t.Context(), link, "", Password, "a test")
	require.NoError(t, err)
	return session
}

// Looks are the rights of an account that may look at some apps.
func Looks(apps ...string) account.Rights {
	r := account.Rights{Apps: map[string]account.Right{}}
	for _, app := range apps {
		r.Apps[app] = account.Look
	}
	return r
}
