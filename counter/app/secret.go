package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"footfall/db"
)

// Secret is the key of the hashes that stand for visitors. It is kept outside the database, so that
// somebody who has the tables alone cannot try addresses against the hashes. Empty: none.
type Secret []byte

// SecretBytes is the least length of a Secret.
const SecretBytes = 32

// id tells a secret from others and reveals nothing else about it.
func (s Secret) id() []byte {
	if len(s) == 0 {
		return nil
	}
	return s.sum("id")[:8]
}

func (s Secret) sum(parts ...string) []byte {
	mac := hmac.New(sha256.New, s)
	for _, part := range parts {
		var length [4]byte                                       // in front, so that different lists of parts never give the same text
		binary.BigEndian.PutUint32(length[:], uint32(len(part))) //nolint:gosec // parts are short
		mac.Write(length[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// checkSecret checks that the visitors of an app are hashed with this secret, if with any.
func checkSecret(row *db.App, secret Secret) error {
	if row.Visitor == ByAddress || bytes.Equal(row.SecretID, secret.id()) {
		return nil
	}
	return fmt.Errorf("visitors of app %s are hashed with a secret that this instance does not have: "+
		"start it with the --secret-file that the app was made with", row.Name)
}
