package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that runs the server if Footfall runs as root, because PostgreSQL refuses to
// run as root. A nil account means Footfall's own user.
type account struct {
	uid, gid uint32
	name     string
}

// newAccount returns the account for a new cluster.
func newAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(found.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(found.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return &account{uint32(uid), uint32(gid), name}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root, and this system has neither a user postgres nor a user nobody to run it: " +
		"start Footfall as a normal user")
}

// accountOf returns the account for a cluster: the owner of the cluster's folder, or newAccount if there is no
// folder.
func accountOf(cluster string) (*account, error) {
	info, err := os.Stat(cluster)
	if errors.Is(err, fs.ErrNotExist) {
		return newAccount()
	}
	if err != nil {
		return nil, fmt.Errorf("check the cluster's owner: %w", err)
	}
	uid, gid := ownerOf(info)
	switch own := uint32(os.Geteuid()); {
	case own == uid && own != 0:
		return nil, nil
	case own != 0:
		return nil, fmt.Errorf("%s belongs to user %s: run Footfall as that user or as root, or use another data directory",
			cluster, userName(uid))
	case uid == 0:
		return nil, fmt.Errorf("%s belongs to root, and PostgreSQL does not run as root: give it to another user (chown -R postgres %s)",
			cluster, cluster)
	}
	return &account{uid, gid, userName(uid)}, nil
}

func (a *account) String() string {
	if a == nil {
		return "user " + userName(uint32(os.Geteuid()))
	}
	return "user " + a.name
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid} // without root's other groups
}

func (a *account) owns(info fs.FileInfo) bool {
	uid, _ := ownerOf(info)
	if a == nil {
		return uid == uint32(os.Geteuid())
	}
	return uid == a.uid
}

// give makes the server's user the owner of a file that Footfall has just created.
func (a *account) give(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// checkEntry returns an error if the server's user cannot enter dir. The error names the outermost folder in the
// path of dir that this user cannot enter. To find out, checkEntry runs the server's binary in the folders, because
// file modes do not show everything (access lists, mounts).
func (a *account) checkEntry(dir string, bin binaries) error {
	binary := filepath.Join(bin.dir, "postgres")
	if a == nil {
		return nil
	}
	if _, err := a.run(binary, dir, "--version"); err == nil {
		return nil
	}
	closed := dir
	for parent := filepath.Dir(dir); parent != closed; parent = filepath.Dir(parent) {
		if _, err := a.run(binary, parent, "--version"); err == nil {
			break
		}
		closed = parent
	}
	return fmt.Errorf("PostgreSQL does not run as root, so %s runs it, and that user cannot enter %s: "+
		"put the data elsewhere (--data /var/lib/footfall), or start Footfall as a normal user", a, closed)
}

// makeDir creates dir and its missing parents. If Footfall runs as root, these folders get mode 0755 despite the
// umask, because the server's user must be able to enter them. Files and folders with private content have stricter
// modes of their own.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeDir(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil // another process has just created the folder
		}
		return err
	}
	if os.Geteuid() == 0 {
		return os.Chmod(dir, 0o755)
	}
	return nil
}

func ownerOf(info fs.FileInfo) (uid, gid uint32) {
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Uid, stat.Gid
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if found, err := user.LookupId(id); err == nil {
		return found.Username
	}
	return id
}
