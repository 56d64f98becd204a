// Command withserver runs a command, usually go test, with one PostgreSQL server for all tests. It
// starts the server before the command and stops it afterwards:
//
//	go run ./db/dbtest/withserver go test ./...
//	go run ./db/dbtest/withserver -container go test ./...
//
// The server is the one that dbtest would start for a single package or, with -container, PostgreSQL 17 in
// a container. If FOOTFALL_TEST_DATABASE_URL is set, withserver starts no server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"

	"footfall/db/dbtest"
	"footfall/db/embedded/tempdir"
)

// patience is the time limit for starting and stopping a server. Only a broken server takes longer.
const patience = 2 * time.Minute

func main() {
	container := flag.Bool("container", false, "use PostgreSQL 17 in a container, which needs a Docker engine")
	flag.Parse()
	err := run(*container, flag.Args())
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "withserver:", err)
		os.Exit(1)
	}
}

func run(container bool, command []string) (err error) {
	if len(command) == 0 {
		return errors.New("the command to run is missing: write it after the flags")
	}
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) // ignored: the command gets them, too, and exits first
	if os.Getenv(dbtest.EnvDatabaseURL) == "" {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		start := startEmbedded
		if container {
			start = startContainer
		}
		url, stop, err := start(ctx)
		if err != nil {
			return fmt.Errorf("start a server: %w", err)
		}
		defer func() {
			if err := stop(); err != nil {
				fmt.Fprintln(os.Stderr, "withserver: stop the server:", err)
			}
		}()
		if err := os.Setenv(dbtest.EnvDatabaseURL, url); err != nil {
			return err
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd.Run()
}

// startEmbedded starts the server in a folder that is always the same, so that its URL is always the same.
// The reason is that go test reuses results only while the environment does not change. If another run
// uses that folder, a new folder is created.
func startEmbedded(ctx context.Context) (url string, stop func() error, err error) {
	dir, err := usualDir()
	if err != nil {
		return "", nil, err
	}
	server, err := dbtest.StartIn(ctx, dir)
	if err != nil {
		if dir, err = tempdir.Make(); err != nil {
			return "", nil, err
		}
		if server, err = dbtest.StartIn(ctx, dir); err != nil {
			return "", nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	return server.URL(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return errors.Join(server.Stop(ctx), os.RemoveAll(dir))
	}, nil
}

// usualDir returns a folder that is different for each working copy, user and PostgreSQL installation.
func usualDir() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	hash := fnv.New32a()
	fmt.Fprint(hash, here, os.Getuid(), os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"))
	return tempdir.MakeNamed(fmt.Sprintf("footfall-test-%08x", hash.Sum32()))
}

const image = "postgres:17.10-alpine"

func startContainer(ctx context.Context) (url string, stop func() error, err error) {
	container, err := postgres.Run(ctx, image,
		postgres.WithDatabase("footfall"), postgres.WithUsername("footfall"), postgres.WithPassword("footfall"),
		testcontainers.WithCmdArgs("-c", "max_connections="+dbtest.MaxConnections, "-c", "full_page_writes=off"),
		// To create the database, the image first starts another server, which logs the same line.
		testcontainers.WithWaitStrategyAndDeadline(patience, wait.ForAll(
			wait.ForLog("database system is ready to accept connections").WithOccurrence(2),
			wait.ForListeningPort("5432/tcp"),
		)),
	)
	stop = func() error { return testcontainers.TerminateContainer(container) }
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("container of %s: %w", image, err), stop())
	}
	url, err = container.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return url, stop, nil
}
