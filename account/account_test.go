package account

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
	"footfall/visit"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const good = "seven trombones"

// newAccounts returns accounts with an owner, Olga, and the number of hashed passwords.
func newAccounts(t *testing.T) (s *Accounts, hashes *atomic.Int64) {
	t.Helper()
	s, hashes = Open(dbtest.Open(t, dbtest.New(t), db.Options{})), new(atomic.Int64)
	slow := s.hash
	s.hash = func(password, salt []byte) []byte { hashes.Add(1); return slow(password, salt) }
	start, err := s.NewStart(t.Context())
	require.NoError(t, err)
	_, err = s.Follow(t.Context(), start, "Olga", good, "a test")
	require.NoError(t, err)
	return s, hashes
}

// An unknown name costs the same work as a wrong password, so that the response time reveals nothing.
func TestEachSignInIsTheSameWork(t *testing.T) {
	t.Parallel()
	s, hashes := newAccounts(t)
	_, _, err := s.Add(t.Context(), "Ann", Rights{}) // has no password yet
	require.NoError(t, err)
	for _, try := range [][2]string{{"Olga", "wrong"}, {"nobody", "wrong"}, {"Ann", "wrong"}, {"Ann", ""}, {"", ""}, {"Оlga", good},
		{"x\x00", "\xff"},
		{"Olga", strings.Repeat("x", 2000)}, {"Olga", good}} {
		before := hashes.Load()
		session, err := s.SignIn(t.Context(), try[0], try[1], "a test")
		if try == [2]string{"Olga", good} {
			require.NoError(t, err)
			require.NotEmpty(t, session)
		} else {
			require.ErrorIs(t, err, errWrongSignIn, try[0])
		}
		assert.EqualValues(t, 1, hashes.Load()-before, "%q", try)
	}
}

// The number of passwords hashed at once is bounded, and known browsers do not wait for strangers.
func TestPasswordsWaitForAPlace(t *testing.T) {
	t.Parallel()
	s := Open(nil)
	var now, most atomic.Int64
	s.hash = func(_, salt []byte) []byte {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		return hashOfPassword([]byte("x"), salt)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := s.checkPassword(context.Background(), "", good)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	assert.LessOrEqual(t, most.Load(), int64(hashesAtOnce))
	s.hashSlots <- struct{}{}
	_, err := s.ForDevice().checkPassword(t.Context(), "", good)
	require.NoError(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	_, err = s.checkPassword(over, "", good)
	var verr *visit.Error
	require.ErrorAs(t, err, &verr)
	assert.Equal(t, visit.Unavailable, verr.Kind)
}

// If several callers follow links to the first account at once, only one gets it.
func TestFirstAccountIsOne(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.New(t), db.Options{})
	made := atomic.Int64{}
	var all sync.WaitGroup
	for i := range 6 {
		s := Open(d) // an instance each
		start, err := s.NewStart(t.Context())
		require.NoError(t, err)
		all.Go(func() {
			_, err := s.Follow(context.Background(), start, "Olga "+string(rune('a'+i)), good, "a test")
			if err == nil {
				made.Add(1)
			} else {
				assert.ErrorIs(t, err, errNoLink)
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 1, made.Load())
	start, err := Open(d).NewStart(t.Context())
	require.NoError(t, err)
	assert.Empty(t, start)
}

// A link works only once, even for concurrent callers, and names stay unique.
func TestLinksAreUsedOnce(t *testing.T) {
	t.Parallel()
	s, _ := newAccounts(t)
	_, link, err := s.Add(t.Context(), "", Rights{})
	require.NoError(t, err)
	_, other, err := s.Add(t.Context(), "", Rights{})
	require.NoError(t, err)
	used, named := atomic.Int64{}, atomic.Int64{}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if _, err := s.Follow(context.Background(), link, "Ann", good, "a test"); err == nil {
				used.Add(1)
				named.Add(1)
			}
		})
	}
	all.Go(func() {
		if _, err := s.Follow(context.Background(), other, "ann", good, "a test"); err == nil {
			named.Add(1)
		}
	})
	all.Wait()
	assert.LessOrEqual(t, used.Load(), int64(1))
	assert.EqualValues(t, 1, named.Load())
}

// An owner who has not followed their link yet does not count as another owner. Neither a proxy's header nor the
// first link makes an account without notice.
func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	s, _ := newAccounts(t)
	ctx := t.Context()
	olga, err := s.Find(ctx, "Olga")
	require.NoError(t, err)
	owner, member := true, false
	ann, link, err := s.Add(ctx, "Ann", Rights{Owner: &owner})
	require.NoError(t, err)
	require.ErrorContains(t, s.Remove(ctx, olga.ID), "the only owner")
	require.ErrorContains(t, s.Set(ctx, olga.ID, Rights{Owner: &member}), "the only owner")
	_, err = s.Follow(ctx, link, "", good, "a test")
	require.NoError(t, err)
	require.NoError(t, s.Remove(ctx, olga.ID))
	require.ErrorContains(t, s.Remove(ctx, ann), "the only owner")
	jane, err := s.FindOrAdd(ctx, "Jane") // by a proxy, without a password
	require.NoError(t, err)
	require.NoError(t, s.Set(ctx, jane.ID, Rights{Owner: &owner}))
	require.NoError(t, s.Remove(ctx, ann))
	_, err = s.NewLink(ctx, jane.ID)
	require.NoError(t, err)
	require.ErrorContains(t, s.Remove(ctx, jane.ID), "the only owner", "also while she has not followed it")
	require.ErrorContains(t, s.Set(ctx, jane.ID, Rights{Owner: &member}), "the only owner")

	_, err = s.NewLink(ctx, olga.ID)
	refused, _ := errors.AsType[*visit.Error](err)
	require.NotNil(t, refused, err)
	assert.Equal(t, visit.NotFound, refused.Kind)
	for range 2 {
		max, err := s.FindOrAdd(ctx, "Max")
		require.NoError(t, err)
		assert.False(t, max.IsOwner())
	}
	conn, err := s.db.Connect(ctx)
	require.NoError(t, err)
	defer func() { assert.NoError(t, conn.Close(context.WithoutCancel(ctx))) }()
	noted := dbtest.Column[string](t, conn, `SELECT who || ' | ' || was || ' | ' || is_now FROM changes ORDER BY id`)
	assert.Equal(t, []string{"account Olga |  | Olga: everything", "shell |  | Ann: everything", "account Ann |  | Ann: another password",
		"shell | Olga: everything | ", "account Jane |  | Jane: nothing", "shell | Jane: nothing | Jane: everything",
		"shell | Ann: everything | ", "shell |  | Jane: a link", "account Max |  | Max: nothing"}, noted)
}

// A new password ends all sessions, except the session of the browser that set it, and invalidates the account's link.
func TestPasswordEndsSessions(t *testing.T) {
	t.Parallel()
	s, _ := newAccounts(t)
	ctx := t.Context()
	other, err := s.SignIn(ctx, "olga", good, "another")
	require.NoError(t, err)
	a, err := s.FindBySession(ctx, other)
	require.NoError(t, err)
	all, err := s.Sessions(ctx, a.ID)
	require.NoError(t, err)
	require.Len(t, all, 2)
	_, err = s.SetPassword(ctx, a, "wrong", "eight trombones", "this")
	require.ErrorContains(t, err, "not your password")
	_, err = s.SetPassword(ctx, a, good, "short", "this")
	require.ErrorContains(t, err, "fewer than 10")
	// SetPassword with the old password fails if a link has replaced the password in the meantime.
	link, err := s.NewLink(ctx, a.ID)
	require.NoError(t, err)
	late, reset := *s, sync.Once{}
	late.hash = func(password, salt []byte) []byte {
		reset.Do(func() {
			_, err := s.ForDevice().Follow(ctx, link, "", "nine trombones", "the owner's") // in the other place
			assert.NoError(t, err)
		})
		return s.hash(password, salt)
	}
	_, err = late.SetPassword(ctx, a, good, "ten trombones", "this")
	require.ErrorIs(t, err, errNotYours)
	other, err = s.SignIn(ctx, "olga", "nine trombones", "another")
	require.NoError(t, err)
	link, err = s.NewLink(ctx, a.ID)
	require.NoError(t, err)
	session, err := s.SetPassword(ctx, a, "nine trombones", "eight trombones", "this")
	require.NoError(t, err)
	_, err = s.Follow(ctx, link, "", "six trombones!", "a thief's")
	require.ErrorIs(t, err, errNoLink)
	gone, err := s.FindBySession(ctx, other)
	require.NoError(t, err)
	assert.Nil(t, gone)
	a, err = s.FindBySession(ctx, session)
	require.NoError(t, err)
	require.True(t, a.IsOwner())
	require.NoError(t, s.EndSessions(ctx, a.ID, a.Session))
	a, err = s.FindBySession(ctx, session)
	require.NoError(t, err)
	require.NoError(t, s.EndSessions(ctx, a.ID, 0))
	a, err = s.FindBySession(ctx, session)
	require.NoError(t, err)
	assert.Nil(t, a)
	assert.False(t, a.MayLook("demo") || a.MayChange("demo") || a.IsOwner(), "nobody")
}

// BenchmarkPassword measures the time of hashing a password, which docs/security.md mentions.
func BenchmarkPassword(b *testing.B) {
	for b.Loop() {
		hashOfPassword([]byte(good), make([]byte, saltBytes))
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for typed, folded := range map[string]string{"Olga": "olga", " Ann  Smith ": "ann smith", "ann@blog.example": "ann@blog.example",
		"ＡＮＮ": "ann", "Bjo\u0308rn": "bj\u00f6rn", "李 Wei": "李 wei",
		"Оксана": "оксана", "田中さん": "田中さん", "O'Neil-2": "o'neil-2"} {
		_, got, err := readName(typed)
		assert.NoError(t, err, typed)
		assert.Equal(t, folded, got, typed)
	}
	for _, wrong := range []string{"", " ", "12", "a\u202eb", "a\x00b", "a\u200bb", "а\u0062", "a\nb", "\xff", strings.Repeat("a", 101),
		"αnn", "ann\u2066"} {
		_, _, err := readName(wrong)
		assert.Error(t, err, "%q", wrong)
	}
}
