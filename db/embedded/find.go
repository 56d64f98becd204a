package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// oldestMajor is the oldest PostgreSQL that Footfall is tested on.
const oldestMajor = 15

// installedIn lists the folders where distributions install PostgreSQL servers without adding them
// to the PATH.
var installedIn = []string{
	"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
	"/usr/pgsql-*/bin",                   // PostgreSQL's own packages for Fedora and Red Hat
	"/usr/libexec/postgresql*",           // Alpine
	"/usr/lib/postgresql*/bin",           // SUSE
	"/opt/homebrew/opt/postgresql@*/bin", // Homebrew
	"/usr/local/opt/postgresql@*/bin",
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/Library/PostgreSQL/*/bin", // EDB's installer
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/usr/local/pgsql/bin", // built from source
}

// binaries is a PostgreSQL installation that the server's user can run.
type binaries struct {
	dir   string
	major int
}

// Find returns the folder of the PostgreSQL server's binaries. If explicit is set, Find uses this folder. Otherwise it
// uses the first usable folder: the one that pg_config reports, the one on the PATH, then the folders of
// distributions, the newest version first. If no folder is usable, the error contains the command that installs
// PostgreSQL.
func Find(explicit string) (binDir string, err error) {
	as, err := newAccount()
	if err != nil {
		return "", err
	}
	found, err := findBinaries(explicit, 0, as)
	return found.dir, err
}

// findBinaries does the work of Find for a server that runs as the user `as`. If explicit is empty, it prefers binaries
// of the given major version (0: any).
func findBinaries(explicit string, major int, as *account) (binaries, error) {
	if explicit != "" {
		return probeNamed(explicit, 0, as)
	}
	var first binaries
	var refused []error
	for _, dir := range candidates() {
		found, err := probe(dir, as)
		switch {
		case err != nil:
			refused = append(refused, fmt.Errorf("%s: %w", dir, err))
		case major == 0 || found.major == major:
			return found, nil
		case first.dir == "":
			first = found
		}
	}
	if first.dir != "" {
		return first, nil // these binaries have another major version, for which the caller reports a remedy
	}
	return binaries{}, errors.Join(append([]error{errors.New("no PostgreSQL server found; install it: " + installCommand() +
		"; or name the folder of its postgres and initdb with --postgres-bin")}, refused...)...)
}

// candidates returns the folders that contain the programs postgres and initdb, the preferred ones first.
func candidates() []string {
	var dirs []string
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(path))
		}
	}
	var packaged []string
	for _, pattern := range installedIn {
		matches, _ := filepath.Glob(pattern) // fails only for an invalid pattern
		packaged = append(packaged, matches...)
	}
	slices.SortStableFunc(packaged, func(a, b string) int { return versionIn(b) - versionIn(a) })
	var found []string
	for _, dir := range append(dirs, packaged...) {
		if !slices.Contains(found, dir) && isFile(filepath.Join(dir, "postgres")) && isFile(filepath.Join(dir, "initdb")) {
			found = append(found, dir)
		}
	}
	return found
}

var (
	number        = regexp.MustCompile(`\d+`)
	serverVersion = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)
)

func versionIn(path string) int {
	version, _ := strconv.Atoi(number.FindString(path)) // a path without a number counts as 0
	return version
}

// probe runs postgres --version as the server's user. This shows whether the user can run the server, and which
// version the server has.
func probe(dir string, as *account) (binaries, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return binaries{}, err
	}
	if !isFile(filepath.Join(dir, "initdb")) {
		return binaries{}, errors.New("this folder has no initdb")
	}
	out, err := as.run(filepath.Join(dir, "postgres"), "/", "--version")
	if err != nil {
		return binaries{}, fmt.Errorf("%s cannot be run by %s: %w", filepath.Join(dir, "postgres"), as, err)
	}
	match := serverVersion.FindStringSubmatch(out)
	if match == nil {
		return binaries{}, fmt.Errorf("postgres --version prints %q", out)
	}
	major, err := strconv.Atoi(match[1])
	if err != nil {
		return binaries{}, err
	}
	if major < oldestMajor {
		return binaries{}, fmt.Errorf("it is PostgreSQL %d, but Footfall needs %d or newer", major, oldestMajor)
	}
	return binaries{dir, major}, nil
}

// probeNamed probes a folder given by the operator. The PostgreSQL in it must have at least the given major version.
func probeNamed(dir string, major int, as *account) (binaries, error) {
	found, err := probe(dir, as)
	if err == nil && found.major < major {
		err = fmt.Errorf("it is PostgreSQL %d, which is older than the data's version, %d", found.major, major)
	}
	if err != nil {
		return binaries{}, fmt.Errorf("no usable PostgreSQL in %s: %w", dir, err)
	}
	return found, nil
}

// run runs a quick command as the server's user in the folder cwd and returns its output.
func (a *account) run(binary, cwd string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = childEnv(), cwd, &syscall.SysProcAttr{Credential: a.credential()}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func installCommand() string {
	sudo := "sudo "
	if os.Geteuid() == 0 {
		sudo = ""
	}
	for _, manager := range []struct{ name, command string }{
		{"apt-get", sudo + "apt-get install postgresql"},
		{"dnf", sudo + "dnf install postgresql-server"},
		{"apk", sudo + "apk add postgresql"},
		{"zypper", sudo + "zypper install postgresql-server"},
		{"pacman", sudo + "pacman -S postgresql"},
		{"brew", "brew install postgresql@17"},
	} {
		if _, err := exec.LookPath(manager.name); err == nil {
			return manager.command
		}
	}
	if runtime.GOOS == "darwin" {
		return "install Homebrew (https://brew.sh), then brew install postgresql@17"
	}
	return "see https://www.postgresql.org/download/"
}
