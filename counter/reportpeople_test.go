package counter_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/visit/tag"
)

func (in *instance) known(t *testing.T, target, name string) []string {
	t.Helper()
	return in.Table(t, `SELECT * FROM report.people('demo', '`+target+`', '`+name+`')`)
}

// All visitors of a target are told by what is said now of the persons for whom they stand, in
// whichever period that was said, and whether they have visited as themselves or as the person.
func TestReportPeople(t *testing.T) {
	in := newLinked(t)
	assert.Equal(t, []string{"25-34 4\n", "(none) 3\n"}, in.known(t, "a", "age"), "user:42 and three ids visited as themselves")
	assert.Equal(t, []string{"25-34 4\n", "(none) 3\n"}, in.known(t, "a/", "age"))
	in.has(t, "moved", tag.Tag{Name: "age", Value: "35-44"})
	assert.Equal(t, []string{"25-34 4\n", "35-44 2\n", "(none) 1\n"}, in.known(t, "a", "age"), "user:7 and moved, which stood for user:42")
	assert.Equal(t, []string{"pro 4\n", "(none) 3\n"}, in.known(t, "a", "plan"))
	assert.Equal(t, []string{"(none) 7\n"}, in.known(t, "a", "country"))
	in.link(t, "user:42", "user:7")
	assert.Equal(t, []string{"35-44 6\n", "(none) 1\n"}, in.known(t, "a", "age"), "three steps, over the person who was")
	in.by(t, "later", page)
	in.link(t, "later", "device:x")
	assert.Equal(t, []string{"35-44 7\n", "(none) 1\n"}, in.known(t, "a", "age"), "four steps")
	in.by(t, "latest", page)
	in.link(t, "latest", "user:7")
	in.has(t, "later", tag.Tag{Name: "plan", Value: "pro"}, tag.Tag{Name: "age", Value: "18-24"})
	assert.Equal(t, []string{"18-24 8\n", "(none) 1\n"}, in.known(t, "a", "age"))
	assert.Equal(t, in.known(t, "a", "age"), in.known(t, "a/", "age"))

	require.NoError(t, <-in.erases("new"))
	assert.Equal(t, []string{"18-24 8\n", "(none) 1\n"}, in.known(t, "a", "age"), "an erased visitor is one of uv")
	require.NoError(t, <-in.erases("user:7"))
	assert.Equal(t, []string{"(none) 9\n"}, in.known(t, "a", "age"))
	assert.Empty(t, in.known(t, "elsewhere", "age"))
	_, err := in.Tables().Exec(t.Context(), `SELECT * FROM report.people('demo', 'a', 'size')`)
	assert.ErrorContains(t, err, "app demo has no tag size")
}
