package db_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"footfall/db"
	"footfall/db/dbtest"
)

// Who writes people has copied a row of the period before, then holds those that lead there; who uses
// one of these holds it, and copies the first. One of both begins again, and nobody is told of it.
func TestPeopleAreWrittenBesideTheirCopies(t *testing.T) {
	t.Parallel()
	url, conn := fixture(t)
	exec(t, conn, `INSERT INTO apps (name, visitor, secret_id) VALUES ('people', 'id', '12345678')`)
	exec(t, conn, `INSERT INTO people (app_id, period, height, id, person)
		SELECT 2, 1 - people_period(), r.*
		FROM (VALUES (0, inet 'fd00::1', inet 'fd00::2'), (1, 'fd00::2', 'fd00::3'), (2, 'fd00::3', NULL)) AS r`)
	d := dbtest.Open(t, dbtest.With(t, url, "deadlock_timeout", "10ms"), db.Options{}) // which finds the circle, and gives way
	uses := dbtest.Open(t, dbtest.With(t, url, "deadlock_timeout", "1h"), db.Options{})
	person, tries := netip.MustParseAddr("fd00::3"), 0
	for round := 0; tries < 2; round++ { // a circle as good as always
		require.Less(t, round, 20, "nobody ever met the other's lock")
		exec(t, conn, `DELETE FROM people WHERE period = people_period()`)
		tries = 0
		var used <-chan error
		require.NoError(t, d.PutPeople(t.Context(), 2, []netip.Addr{person}, func(_ map[netip.Addr]*db.PersonRow, lead func() error) error {
			if tries++; tries == 1 {
				used = async(t, func() error {
					_, err := uses.FindPeople(t.Context(), []db.AppID{{App: 2, ID: netip.MustParseAddr("fd00::1")}})
					return err
				})
				dbtest.AwaitWaiting(t, conn, 1)
			}
			return lead()
		}))
		require.NoError(t, receive(t, used, "the way of the id"))
	}
}
