package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the operating system refuses in a data directory is told with what to do about it.
func TestFaultsOfTheFolderNameARemedy(t *testing.T) {
	t.Parallel()
	refused := func(why error) error {
		return fmt.Errorf("make: %w", &fs.PathError{Op: "mkdir", Path: "/x/y", Err: why})
	}
	own := &DirError{"/x", errors.New("it is full of bees")}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{own, "/x: it is full of bees"},
		{errors.New("it is old"), "/x: it is old"},
		{refused(syscall.EACCES), "/x: it cannot be used (make: mkdir /x/y: permission denied): user " + userName(uint32(os.Geteuid())) +
			" may not do that: run this as the folder's owner, or name another folder"},
		{refused(syscall.ENOSPC), "/x: it cannot be used (make: mkdir /x/y: no space left on device): free some space, or name a folder on " +
			"another disk"},
		{refused(syscall.EROFS), "/x: it cannot be used (make: mkdir /x/y: read-only file system): name a folder that can be written to"},
		{refused(syscall.ENOTDIR), "/x: it cannot be used (make: mkdir /x/y: not a directory): name another folder"},
	} {
		if err := inDir("/x", c.err); c.err == nil {
			assert.NoError(t, err)
		} else {
			assert.EqualError(t, err, c.want)
		}
	}
}

// Where nothing may be made, nothing is; what another start has begun to make does not count.
func TestUseMakesNothingUnasked(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(openDir(t), "mistyped")
	_, _, err := Use(t.Context(), Config{Dir: dir, MustExist: true})
	require.ErrorIs(t, err, ErrNoCluster)
	assert.NoDirExists(t, dir)
	require.NoError(t, os.MkdirAll(lockFolder(dir), 0o755))
	_, _, err = Use(t.Context(), Config{Dir: dir, MustExist: true})
	require.ErrorIs(t, err, ErrNoCluster)
	assert.NoDirExists(t, clusterIn(dir))
}
