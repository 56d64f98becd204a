package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An app goes from one database to another by a file, and by standard output and input; what is refused
// leaves no file, and no app.
func TestAppExportAndLoad(t *testing.T) {
	t.Parallel()
	appGoes(t, withDemo(t), withDemo(t))
}

// appGoes tries it from one database to another, and back.
func appGoes(t *testing.T, from, to string) {
	t.Helper()
	dir := t.TempDir()
	secret, other := filepath.Join(dir, "secret"), filepath.Join(dir, "other")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("s", 40)), 0o600))
	require.NoError(t, os.WriteFile(other, []byte(strings.Repeat("o", 40)), 0o600))
	ours := "--secret-file=" + secret
	well(t, "app", "add", "blog", "--visitor=hashed", "--site=blog.example", from, ours)
	log := filepath.Join(dir, "access.log")
	require.NoError(t, os.WriteFile(log, []byte("blog.example 192.0.2.1 - - ["+time.Now().Format("02/Jan/2006:15:04:05 -0700")+
		"] \"GET / HTTP/1.1\" 200 7\n"), 0o600))
	well(t, "import", log, "--app=blog", from, ours)
	totals := well(t, "report", "days", "blog.example", "--app=blog", from)

	file := filepath.Join(dir, "blog.zip")
	r := footfall(t, "app", "export", "blog", file, from, ours)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stderr, "It has no visitors: it is for other tools")
	assert.Contains(t, footfall(t, "app", "load", file, to, ours).stderr, "was exported without visitors")
	assert.Contains(t, footfall(t, "app", "export", "blog", file, "--visitors", from, ours).stderr, "there is such a file")
	none := filepath.Join(dir, "none.zip")
	assert.Contains(t, footfall(t, "app", "export", "none", none, from, ours).stderr, "none")
	assert.NoFileExists(t, none, "nothing half done")

	zip := footfall(t, "app", "export", "blog", "-", "--visitors", from, ours)
	require.Zero(t, zip.code, zip.stderr)
	r = footfallWith(t, []string{"TMPDIR=" + dir}, zip.stdout, "app", "load", "-", to, ours)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, "loaded app blog, as it was at ")
	assert.NotContains(t, r.stdout, "counts nothing")
	assert.Equal(t, totals, well(t, "report", "days", "blog.example", "--app=blog", to))
	assert.Contains(t, well(t, "changes", "blog", to), "loaded from an export")
	well(t, "verify", "--app=blog", to)
	zip = footfall(t, "app", "export", "blog", "-", "--visitors", to, ours)
	require.Zero(t, zip.code, zip.stderr)
	r = footfallTyped(t, zip.stdout, "app", "load", "-", "--as=back", from, ours)
	require.Zero(t, r.code, r.stderr)
	assert.Equal(t, strings.Replace(totals, "blog:", "back:", 1), well(t, "report", "days", "blog.example", "--app=back", from))
	well(t, "verify", from)
	r = footfallTyped(t, zip.stdout, "app", "load", "-", "--as=again", to, "--secret-file="+other)
	require.Zero(t, r.code, r.stderr)
	assert.Contains(t, r.stdout, "It can be read here, and counts nothing: visitors of app again are hashed with a secret")
	assert.Contains(t, footfallWith(t, []string{"TMPDIR=" + dir}, "nothing", "app", "load", "-", to, ours).stderr, "it is no zip")
	assert.Contains(t, footfall(t, "app", "load", dir, to, ours).stderr, "it is no file")
	left, err := filepath.Glob(filepath.Join(dir, "footfall-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}
