package desk

import (
	"encoding/base64"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/argon2"

	"footfall/account"
)

// Password is the password of every account that SignIn adds.
const Password = "seven trombones"

// Owner is the name of the first account that SignIn adds. This account may change everything.
const Owner = "Olga"

// light returns a hash of Password in the form in which accounts are stored. To save time in tests, the hash has weak
// parameters: computing it takes a thousandth of the usual time. Tests of package account cover the real hashing.
var light = sync.OnceValue(func() string {
	base, salt := base64.RawStdEncoding, make([]byte, 16)
	hash := argon2.IDKey([]byte(Password), salt, 1, 8, 1, 32)
	return fmt.Sprintf("$argon2id$v=%d$m=8,t=1,p=1$%s$%s", argon2.Version, base.EncodeToString(salt), base.EncodeToString(hash))
})

// SignIn returns the session cookie of a browser that is signed in to the account with this name. If there is no
// account yet, SignIn first adds the account of Owner. If name is not Owner, SignIn also adds an account with this
// name and the rights r.
func (d *Desk) SignIn(t testing.TB, name string, r account.Rights) (session string) {
	t.Helper()
	all := account.Open(d.DB)
	d.Exec(t, `
		INSERT INTO accounts (owner, name, folded, password)
		SELECT true, $1, lower($1), $2
		WHERE NOT EXISTS (SELECT FROM accounts)`, Owner, light())
	if name != Owner {
		id, _, err := all.Add(t.Context(), name, r)
		require.NoError(t, err)
		d.Exec(t, `WITH followed AS (DELETE FROM account_links WHERE account_id = $1) UPDATE accounts SET password = $2 WHERE id = $1`,
			id, light())
	}
	session, err := all.SignIn(t.Context(), name, Password, "a test")
	require.NoError(t, err)
	return session
}

// Looks returns account rights to view these apps, and nothing else.
func Looks(apps ...string) account.Rights {
	r := account.Rights{Apps: map[string]account.Right{}}
	for _, app := range apps {
		r.Apps[app] = account.Look
	}
	return r
}
