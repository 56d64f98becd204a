package account

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/trustelem/zxcvbn/frequency"
	"golang.org/x/crypto/argon2"
	"golang.org/x/text/secure/precis"

	"footfall/visit"
)

// Passwords are hashed by argon2id with 19 MiB, the minimum in OWASP's list, and with more passes than OWASP recommends. Hashing
// a password takes about 65 ms of one core (BenchmarkPassword).
const (
	hashMemory   = 19 << 10 // memory in KiB
	hashPasses   = 8
	hashLanes    = 1
	hashBytes    = 32
	saltBytes    = 16
	hashesAtOnce = 1                // concurrent hashes for known browsers, and as many for others; few, to keep counting fast
	waitForPlace = 10 * time.Second // time limit of the wait for a hashing slot
)

const (
	leastPassword   = 10   // minimum length in characters
	longestPassword = 1000 // maximum length in bytes
	mostCommon      = 10_000
)

func hashOfPassword(password, salt []byte) []byte {
	return argon2.IDKey(password, salt, hashPasses, hashMemory, hashLanes, hashBytes)
}

var base = base64.RawStdEncoding

// encode formats a password's hash as the text to store. The text includes the salt and all parameters of the hash function.
func encode(salt, hash []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashPasses, hashLanes,
		base.EncodeToString(salt), base.EncodeToString(hash))
}

// limitHashing calls f, which hashes a password. Hashing takes much memory, so s.hashSlots limits the number of concurrent calls.
// Further calls wait, and fail after waitForPlace.
func (s *Accounts) limitHashing(ctx context.Context, f func() []byte) ([]byte, error) {
	wait, cancel := context.WithTimeout(ctx, waitForPlace)
	defer cancel()
	select {
	case s.hashSlots <- struct{}{}:
		defer func() { <-s.hashSlots }()
		return f(), nil
	case <-wait.Done():
		return nil, visit.Errorf(visit.Unavailable, "", "too many people are signing in right now: try again")
	}
}

// checkPassword reports whether a password matches the stored hash. If stored is "", no password matches, but the call takes
// the same time, so that it does not reveal whether the account exists.
func (s *Accounts) checkPassword(ctx context.Context, stored, password string) (bool, error) {
	typed, err := precis.OpaqueString.String(password)
	if err != nil || len(password) > longestPassword {
		typed, stored = "", "" // newPassword accepts no such password, so no stored hash matches
	}
	var version, memory, passes, lanes int
	rest := ""
	if stored == "" {
		stored = encode(make([]byte, saltBytes), make([]byte, hashBytes)) // a hash that matches no password
	}
	_, err = fmt.Sscanf(stored, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &memory, &passes, &lanes, &rest)
	saltText, hashText, _ := strings.Cut(rest, "$")
	salt, saltErr := base.DecodeString(saltText)
	want, hashErr := base.DecodeString(hashText)
	if err != nil || saltErr != nil || hashErr != nil || version != argon2.Version || len(want) == 0 {
		return false, fmt.Errorf("a stored password cannot be read: %.30q", stored)
	}
	got, err := s.limitHashing(ctx, func() []byte {
		if memory == hashMemory && passes == hashPasses && lanes == hashLanes && len(want) == hashBytes {
			return s.hash([]byte(typed), salt)
		}
		return argon2.IDKey([]byte(typed), salt, uint32(passes), uint32(memory), uint8(lanes), uint32(len(want))) //nolint:gosec // as stored
	})
	return subtle.ConstantTimeCompare(got, want) == 1, err
}

// newPassword returns the hash of a new password. It rejects passwords that are easy to guess.
func (s *Accounts) newPassword(ctx context.Context, name, password string) (stored string, err error) {
	typed, err := precis.OpaqueString.String(password)
	switch {
	case utf8.RuneCountInString(password) < leastPassword:
		return "", visit.Errorf(visit.Invalid, "password", "it has fewer than %d characters: use a longer one, such as several words",
			leastPassword)
	case len(password) > longestPassword:
		return "", visit.Errorf(visit.Invalid, "password", "it is longer than %d bytes: write a shorter one", longestPassword)
	case err != nil:
		return "", visit.Errorf(visit.Invalid, "password", "it has characters that cannot be typed: remove them")
	case commonPasswords()[strings.ToLower(typed)]:
		return "", visit.Errorf(visit.Invalid, "password",
			"it is one of the 10,000 most common passwords, which attackers try first: choose another password")
	case strings.EqualFold(typed, strings.TrimSpace(name)):
		return "", visit.Errorf(visit.Invalid, "password", "it is your name, which attackers try first: choose another password")
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // returns no error: a failure ends the process
	hash, err := s.limitHashing(ctx, func() []byte { return s.hash([]byte(typed), salt) })
	return encode(salt, hash), err
}

// commonPasswords returns the most common passwords, in lower case, but only those that have at least the minimum length.
var commonPasswords = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for _, password := range frequency.FrequencyLists["passwords"][:mostCommon] {
		if len(password) >= leastPassword {
			all[strings.ToLower(password)] = true
		}
	}
	return all
})
