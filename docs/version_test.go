package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a tree is called by scripts/version, with tags and without.
func TestVersion(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../scripts/version")
	require.NoError(t, err)
	const released = "# Changelog\n\n## 0.2.9 - 2026-12-01\n\n## 0.1.0 - 2026-11-24\n"
	const unreleased = "# Changelog\n\n## Unreleased\n\n- x\n\n## 0.2.9 - 2026-12-01\n"
	for _, c := range []struct{ name, changelog, before, is string }{
		{"released", released, "", "0.2.9"},
		{"unreleased", unreleased, "", "0.2.10-dev+COMMIT"},
		{"a candidate", "## 0.3.0-rc.1 - 2027-01-01\n" + released, "", "0.3.0-rc.1"},
		{"tagged", released, "git tag v0.3.0", "0.3.0"},
		{"tagged with something else", released, "git tag works", "0.2.9"},
		{"changed since it was released", released, "echo >>CHANGELOG.md", "0.2.10-dev+COMMIT-dirty"},
		{"changed since it was tagged", unreleased, "git tag v0.3.0; echo >>CHANGELOG.md", "0.2.10-dev+COMMIT-dirty"},
		{"without Git", unreleased, "rm -rf .git", "0.2.10-dev"},
		{"released, without Git", released, "rm -rf .git", "0.2.9"},
		{"of no version", "## Unreleased\n", "", "CHANGELOG.md has no heading that is a version"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			run := func(command string) (string, error) {
				shell := exec.CommandContext(t.Context(), "bash", "-euc", command)
				shell.Dir = dir
				shell.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
				printed, err := shell.CombinedOutput()
				return strings.TrimSpace(string(printed)), err
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte(c.changelog), 0o600))
			made, err := run(`mkdir scripts; cp ` + script + ` scripts; git init -q; git add .
				git -c user.name=a -c user.email=a@b.example commit -qm one; git rev-parse --short=12 HEAD`)
			require.NoError(t, err, made)
			said, err := run(c.before)
			require.NoError(t, err, said)
			said, err = run("scripts/version")
			assert.Equal(t, strings.ReplaceAll(c.is, "COMMIT", made), said)
			assert.Equal(t, c.name != "of no version", err == nil)
		})
	}
}
