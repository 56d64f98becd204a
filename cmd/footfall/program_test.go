package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"footfall/admin"
	"footfall/counter/app"
	"footfall/db"
	"footfall/db/dbtest"
	"footfall/db/embedded/tempdir"
)

// asProgram makes the test binary act as the program: tests start it as a process, with signals and exit code.
const asProgram = "FOOTFALL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	code := dbtest.Run(m)
	_ = os.RemoveAll(servedOnce.dir)
	os.Exit(code)
}

// patience is a time limit that only a broken program exceeds.
const patience = 4 * time.Minute

// environment returns our environment without variables that configure the program.
func environment() []string {
	// GORACE: the race detector would make every process wait a second for late reports before it exits. FOOTFALL_MAX_WAIT: on
	// a slow machine, visits may take longer than the service allows by default. FOOTFALL_COUNTRIES: each process would read an
	// installed file of 25 MB. TZ: the machine's time zone must not matter.
	env := []string{asProgram + "=1", "GORACE=atexit_sleep_ms=0", "FOOTFALL_MAX_WAIT=10s", "FOOTFALL_COUNTRIES=off", "TZ=UTC"}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "FOOTFALL_") && !strings.HasPrefix(entry, "GORACE=") && !strings.HasPrefix(entry, "TZ=") {
			env = append(env, entry)
		}
	}
	if bin := os.Getenv("FOOTFALL_TEST_POSTGRES_BIN"); bin != "" {
		env = append(env, "FOOTFALL_POSTGRES_BIN="+bin)
	}
	return env
}

// newData returns a data directory that PostgreSQL's user can enter.
func newData(t *testing.T) string {
	t.Helper()
	folder, err := tempdir.Make()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(folder)) })
	return folder
}

// servedOnce is a data directory that was created and served once, and is copied from then on.
var servedOnce struct {
	sync.Once
	dir string
}

// usedData returns a data directory that was served before, with an app demo, for tests that are not about creating
// it.
func usedData(t *testing.T) string {
	t.Helper()
	servedOnce.Do(func() {
		var err error
		servedOnce.dir, err = tempdir.Make()
		require.NoError(t, err)
		require.Zero(t, serve(t, "--data", servedOnce.dir).stop())
	})
	require.NotEmpty(t, servedOnce.dir, "it could not be made")
	data := newData(t)
	require.NoError(t, exec.Command("cp", "-a", servedOnce.dir+"/.", data).Run())
	return data
}

// withDemo returns the flag for a database with an app demo, for tests that need no server of their own.
func withDemo(t *testing.T) string {
	t.Helper()
	return "--database-url=" + dbtest.NewPrepared(t, "demo", time.Now(), func(d *db.DB) {
		open := "open"
		require.NoError(t, admin.NewAdmin(d, nil).AddApp(t.Context(), "demo", app.Settings{Access: &open}))
	})
}

// browser is a User-Agent of a browser: a program that sends none is a bot.
const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// result is the exit code and output of a command.
type result struct {
	code           int
	stdout, stderr string
}

// footfall runs a command until it exits.
func footfall(t *testing.T, args ...string) result {
	t.Helper()
	return footfallTyped(t, "", args...)
}

// footfallTyped runs a command with this standard input.
func footfallTyped(t *testing.T, typed string, args ...string) result {
	t.Helper()
	return footfallWith(t, nil, typed, args...)
}

// footfallWith is footfallTyped with additional environment variables.
func footfallWith(t *testing.T, more []string, typed string, args ...string) result {
	t.Helper()
	line := strings.Join(args, " ")
	if strings.HasPrefix(line, "app add ") && !strings.Contains(line, "--public-counts") && !strings.Contains(line, "--access=") {
		args = append(slices.Clone(args), "--public-counts=answers") // most tests check the numbers in answers
	}
	return footfallOf(t, os.Args[0], more, typed, args...)
}

// footfallOf is footfallWith for another version of the program.
func footfallOf(t *testing.T, program string, more []string, typed string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = append(environment(), more...), strings.NewReader(typed), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	require.NoError(t, ctx.Err(), "footfall %v took too long: %s", args, stderr.String())
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// well runs a command that must succeed and returns what it printed.
func well(t *testing.T, args ...string) string {
	t.Helper()
	r := footfall(t, args...)
	require.Zero(t, r.code, "footfall %v: %s", args, r.stderr)
	return r.stdout
}

// running is a `footfall serve` process.
type running struct {
	t      *testing.T
	cmd    *exec.Cmd
	url    string // of the public listener
	admin  string // of the admin listener
	ended  chan struct{}
	stdout bytes.Buffer // valid after ended is closed

	mu  sync.Mutex // guards the following fields
	log []entry
}

// entry is a line of the log.
type entry struct {
	Msg, Address, Admin string
	whole               string
}

// start starts `footfall serve` on free ports.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startOf(t, os.Args[0], args...)
}

// startOf is start for another version of the program.
func startOf(t *testing.T, program string, args ...string) *running {
	t.Helper()
	r := &running{t: t, ended: make(chan struct{})}
	r.cmd = exec.Command(program, append([]string{"serve", "--addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--log-format=json"}, args...)...)
	r.cmd.Env, r.cmd.Stdout = environment(), &r.stdout
	stderr, err := r.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	go func() { // ends with the process
		r.read(stderr)
		_ = r.cmd.Wait() // ProcessState has the exit code
		close(r.ended)
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.ended:
		case <-time.After(patience):
			_ = r.cmd.Process.Kill()
			t.Error("serve did not stop")
		}
		if t.Failed() {
			t.Log(r.said())
		}
	})
	return r
}

func (r *running) read(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		e := entry{whole: lines.Text()}
		_ = json.Unmarshal(lines.Bytes(), &e) // a line that is not a log entry gets no message
		r.mu.Lock()
		r.log = append(r.log, e)
		r.mu.Unlock()
	}
}

func (r *running) said() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all strings.Builder
	for _, e := range r.log {
		all.WriteString(e.whole + "\n")
	}
	return all.String()
}

// logged returns the first line with that message.
func (r *running) logged(message string) (entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.log {
		if e.Msg == message {
			return e, true
		}
	}
	return entry{}, false
}

// serve starts the service, and waits until it is ready.
func serve(t *testing.T, args ...string) *running {
	t.Helper()
	r := start(t, args...)
	r.awaitReady()
	return r
}

func (r *running) awaitReady() {
	r.t.Helper()
	eventually(r.t, "serve is ready", func() bool {
		ready, ok := r.logged("ready")
		r.url, r.admin = "http://"+ready.Address, "http://"+ready.Admin
		select {
		case <-r.ended:
			require.Fail(r.t, "serve ended", r.said())
		default:
		}
		return ok
	})
}

// stop stops the service and returns its exit code.
func (r *running) stop() int {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGTERM))
	return r.wait()
}

func (r *running) wait() int {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		require.Fail(r.t, "serve does not end", r.said())
	}
	return r.cmd.ProcessState.ExitCode()
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	within(t, patience, what, condition)
}

func within(t *testing.T, patience time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			require.Fail(t, "not in time: "+what)
		}
	}
}

// client opens a connection for each request, so that no connection stays open, or is reused after the service has closed it.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

// get returns status and body. Status 0: no response.
func get(url string) (status int, body string) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	request.Header.Set("User-Agent", browser)
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(read)
}
