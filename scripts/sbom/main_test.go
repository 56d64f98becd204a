package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goCommand runs the go command in the root of the repository and returns the lines it prints.
func goCommand(t *testing.T, args ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = filepath.Join("..", "..")
	said := new(strings.Builder)
	command.Stderr = said
	printed, err := command.Output()
	require.NoError(t, err, said)
	return strings.Fields(string(printed))
}

// TestFootfall describes the real binary and compares with what the go command says that it imports.
func TestFootfall(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "footfall")
	goCommand(t, "build", "-trimpath", "-o", binary, "./cmd/footfall")
	require.NoError(t, run([]string{"-version", "v1.2.3", binary}, io.Discard))
	first, err := os.ReadFile(binary + ".cdx.json")
	require.NoError(t, err)
	require.NoError(t, run([]string{"-version", "v1.2.3", binary}, io.Discard))
	second, err := os.ReadFile(binary + ".cdx.json")
	require.NoError(t, err)
	assert.Equal(t, string(first), string(second), "the same binary, the same document")

	// A time in seconds would be the same in both.
	assert.False(t, bytes.Contains(first, []byte(`"timestamp"`)), "there is a time")
	assert.False(t, bytes.Contains(first, []byte(`"serialNumber"`)), "there is a serial number")

	var described document
	require.NoError(t, json.Unmarshal(first, &described))
	assert.Equal(t, "CycloneDX", described.BOMFormat)
	assert.Equal(t, "footfall", described.Metadata.Component.Name)
	assert.Equal(t, "v1.2.3", described.Metadata.Component.Version)

	var listed []string
	for _, one := range described.Components {
		listed = append(listed, one.Name+"@"+one.Version)
	}
	imported := goCommand(t, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}}{{end}}{{end}}", "./cmd/footfall")
	assert.Subset(t, listed, imported)
	assert.Subset(t, append(imported, "stdlib@"+strings.TrimPrefix(runtime.Version(), "go")), listed)

	required := goCommand(t, "list", "-m", "-f", "{{.Path}}@{{.Version}}", "github.com/jackc/pgx/v5", "github.com/labstack/echo/v4")
	require.Len(t, required, 2)
	assert.Subset(t, listed, required, "the versions of go.mod")
	for _, one := range listed {
		for _, onlyTests := range []string{"testify", "testcontainers", "goleak", "docker/docker", "moby/moby"} {
			assert.NotContains(t, one, onlyTests, "test code is linked into the binary")
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	const sum = "h1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	hashes := []hash{{"SHA-256", "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"}}
	cases := []struct {
		what   string
		module debug.Module
		want   component
	}{
		{
			"a name with capitals", debug.Module{Path: "example.com/Some/thing/v2", Version: "v2.1.0", Sum: sum},
			component{Name: "example.com/Some/thing/v2", Version: "v2.1.0", PURL: "pkg:golang/example.com/some/thing/v2@v2.1.0", Hashes: hashes},
		},
		{
			"a version with a plus", debug.Module{Path: "example.com/old", Version: "v3.0.0+incompatible", Sum: sum},
			component{Name: "example.com/old", Version: "v3.0.0+incompatible", PURL: "pkg:golang/example.com/old@v3.0.0%2Bincompatible", Hashes: hashes},
		},
		{
			"a replaced module is what replaces it",
			debug.Module{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/b", Version: "v1.0.1", Sum: sum}},
			component{Name: "example.com/b", Version: "v1.0.1", PURL: "pkg:golang/example.com/b@v1.0.1", Hashes: hashes},
		},
	}
	for _, c := range cases {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			info := &debug.BuildInfo{GoVersion: "go1.26.8 X:nothing", Main: debug.Module{Path: "footfall"}, Deps: []*debug.Module{&c.module}}
			described, err := describe(info, "v1")
			require.NoError(t, err)
			require.Len(t, described.Components, 2)
			assert.Equal(t, "pkg:golang/stdlib@1.26.8", described.Components[0].PURL)
			c.want.Ref, c.want.Type, c.want.Scope = c.want.PURL, "library", "required"
			assert.Equal(t, c.want, described.Components[1])
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no binary"), 0o600))
	for what, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing named":  {nil, "one binary is wanted"},
		"no Go binary":   {[]string{text}, "name a binary that Go built"},
		"no such binary": {[]string{text + ".missing"}, "no such file"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, run(c.args, io.Discard), c.want)
			assert.NoFileExists(t, text+".cdx.json")
		})
	}
	_, err := describe(&debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/a", Sum: "h9:?"}}}, "v1")
	require.ErrorContains(t, err, "example.com/a")
}
