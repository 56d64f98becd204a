package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Upgrade copies a data directory (from) into a new one (to) for another version of PostgreSQL. It dumps the
// database of the old directory's server, and restores the dump to a server of the new directory. It does not
// change the old directory, except by starting and stopping its server. No process may serve from the old directory
// in the meantime, because writes after the dump would be lost. The new directory appears only if it is complete.
// It has the database, roles and passwords of the old directory, and the settings of a new cluster. Upgrade also
// copies the named additional files of the data directory, if they exist.
func Upgrade(ctx context.Context, from, to Config, extraFiles ...string) (err error) {
	from.MustExist = true
	if to, err = to.new(); err != nil {
		return err
	}
	as, err := newAccount()
	if err != nil {
		return err
	}
	oldMajor, err := clusterMajor(clusterIn(from.Dir))
	if err != nil {
		return inDir(from.Dir, err)
	}
	if oldMajor == 0 {
		return inDir(from.Dir, ErrNoCluster)
	}
	if found, err := probe(from.BinDir, as); from.BinDir != "" && err == nil && found.major != oldMajor {
		return fmt.Errorf("--postgres-bin: %s contains PostgreSQL %d, but the data is of %d: give the folder of that version's programs, "+
			"and the folder of the new ones in --to-postgres-bin; nothing was changed", found.dir, found.major, oldMajor)
	}
	bin, err := findNewer(to.BinDir, oldMajor, as)
	if err != nil {
		return fmt.Errorf("--to-postgres-bin: %w", err)
	}
	old, err := Start(ctx, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopWithin(old)) }()
	oldBin, err := findBinaries(from.BinDir, oldMajor, as)
	if err != nil {
		return err
	}
	tools, err := findTools(bin.dir, oldBin.dir)
	if err != nil {
		return err
	}

	whole := to.Dir
	to.Dir, to.BinDir = whole+".unfinished", bin.dir
	if err := os.RemoveAll(to.Dir); err != nil {
		return inDir(to.Dir, err)
	}
	fresh, err := Start(ctx, to)
	if err != nil {
		return err
	}
	err = copyCluster(ctx, tools, old.URL(), fresh.URL())
	for _, file := range extraFiles {
		err = errors.Join(err, copyFile(filepath.Join(from.Dir, file), filepath.Join(to.Dir, file)))
	}
	if err = errors.Join(err, stopWithin(fresh)); err != nil {
		return errors.Join(err, os.RemoveAll(to.Dir))
	}
	if err := os.Remove(whole); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.Rename(to.Dir, whole), syncFile(filepath.Dir(whole)))
}

// new returns the configuration with an absolute Dir. It fails if this directory exists and is not empty.
func (cfg Config) new() (Config, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return cfg, err
	}
	cfg.Dir = dir
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
		return cfg, nil
	case err != nil:
		return cfg, inDir(dir, err)
	case len(entries) > 0:
		return cfg, inDir(dir, errors.New("it is not empty: name a new folder"))
	}
	return cfg, nil
}

// findNewer finds the newest installation that is newer than major. If explicit is set, it returns the installation
// in that folder instead, which must not be older than major.
func findNewer(explicit string, major int, as *account) (newest binaries, err error) {
	if explicit != "" {
		return probeNamed(explicit, major, as)
	}
	for _, dir := range candidates() {
		if found, err := probe(dir, as); err == nil && found.major > max(major, newest.major) {
			newest = found
		}
	}
	if newest.major == 0 {
		return binaries{}, fmt.Errorf("no PostgreSQL newer than the data's version, %d, was found: install one, or name the folder of its "+
			"programs here", major)
	}
	return newest, nil
}

// tools is the folder of PostgreSQL's client programs for copying a cluster.
type tools string

// findTools finds the client programs in the folders of the servers, or else on the PATH. The new
// server's programs come first, because they support both versions.
func findTools(servers ...string) (tools, error) {
	if onPath, err := exec.LookPath("pg_dumpall"); err == nil {
		servers = append(servers, filepath.Dir(onPath))
	}
	for _, dir := range servers {
		complete := true
		for _, name := range []string{"pg_dump", "pg_dumpall", "pg_restore", "psql", "vacuumdb"} {
			info, err := os.Stat(filepath.Join(dir, name)) // Stat, because the program may be a link
			complete = complete && err == nil && !info.IsDir()
		}
		if complete {
			return tools(dir), nil
		}
	}
	return "", errors.New("PostgreSQL's client programs pg_dump, pg_dumpall, pg_restore, psql and vacuumdb were found neither next to " +
		"a server nor on the PATH: " +
		"install them (apt-get install postgresql-client, dnf install postgresql, apk add postgresql-client)")
}

// copyCluster copies roles and the database, and updates the planner's statistics.
func copyCluster(ctx context.Context, t tools, from, to string) error {
	postgres := strings.Replace(to, "/"+name+"?", "/postgres?", 1) // a database that every cluster has
	roles, err := t.run(ctx, "pg_dumpall", nil, "--roles-only", "--dbname="+from)
	if err != nil {
		return err
	}
	roles = bytes.ReplaceAll(roles, []byte("\nCREATE ROLE "+name+";\n"), []byte("\n")) // every cluster already has this role
	if _, err := t.run(ctx, "psql", bytes.NewReader(roles), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--dbname="+
		postgres); err != nil {
		return err
	}
	if err := t.pipe(ctx,
		[]string{"pg_dump", "--format=custom", "--compress=0", "--dbname=" + from},
		[]string{"pg_restore", "--exit-on-error", "--clean", "--if-exists", "--create", "--dbname=" + postgres}); err != nil {
		return err
	}
	_, err = t.run(ctx, "vacuumdb", nil, "--analyze", "--quiet", "--dbname="+to)
	return err
}

func (t tools) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(string(t), name), args...)
	cmd.Env, cmd.Dir = childEnv(), "/"
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (t tools) run(ctx context.Context, name string, in io.Reader, args ...string) ([]byte, error) {
	var output bytes.Buffer
	cmd := t.command(ctx, name, args...)
	cmd.Stdin, cmd.Stderr = in, &output
	out, err := cmd.Output()
	return out, t.failed(ctx, name, err, &output)
}

// pipe runs two programs. The second one reads the output of the first.
func (t tools) pipe(ctx context.Context, first, second []string) error {
	var firstOutput, secondOutput bytes.Buffer
	writes, reads := t.command(ctx, first[0], first[1:]...), t.command(ctx, second[0], second[1:]...)
	writes.Stderr, reads.Stderr = &firstOutput, &secondOutput
	between, err := writes.StdoutPipe()
	if err != nil {
		return err
	}
	reads.Stdin = between
	if err := writes.Start(); err != nil {
		return err
	}
	errRead := reads.Run()
	_ = between.Close() // so that the first program exits if it still writes after the second program has exited
	errWritten := writes.Wait()
	return errors.Join(t.failed(ctx, second[0], errRead, &secondOutput), t.failed(ctx, first[0], errWritten, &firstOutput))
}

func (t tools) failed(ctx context.Context, name string, err error, output *bytes.Buffer) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("PostgreSQL's %s failed (%w):\n%s", filepath.Join(string(t), name), err, lastLines(output.String()))
}

// copyFile copies a file, if it exists. Only Footfall's user may read the copy.
func copyFile(from, to string) error {
	text, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		return err
	}
	return syncFile(to)
}

func stopWithin(s *Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // because restored data is written to disk
	defer cancel()
	return s.Stop(ctx)
}
