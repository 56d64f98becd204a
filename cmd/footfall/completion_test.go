package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// completions are the commands and flags that a shell offers after some words. Empty: the shell offers files.
var completions = []struct{ typed, offered string }{
	{"app k", "key"},
	{"app key ", "add list revoke"},
	{"serve --trust", "--trust-proxy"},
	{"--data /x report da", "days"},
	{"app add blog --visito", "--visitor"},
	{"serve --data se", ""},
	{"nothing --visito", ""},
}

func TestWordsAreCompleted(t *testing.T) {
	t.Parallel()
	for _, c := range completions {
		var words []string
		for line := range strings.Lines(well(t, append([]string{"completion", "words", "--"}, strings.Split(c.typed, " ")...)...)) {
			word, help, _ := strings.Cut(line, "\t")
			assert.NotEmpty(t, strings.TrimSpace(help), word)
			words = append(words, word)
		}
		assert.Equal(t, c.offered, strings.Join(words, " "), c.typed)
	}
	assert.Contains(t, well(t, "completion", "words"), "serve\tCount visits over HTTP\n")
	assert.Equal(t, well(t, "completion", "words", "--", "serve", "--"), well(t, "completion", "words", "--", "serve", "--data=x", "--"))
	wrong := footfall(t, "completion", "tcsh")
	assert.Equal(t, exitUsage, wrong.code)
	assert.Contains(t, wrong.stderr, `"tcsh" is not a supported shell: write bash, zsh or fish`)
}

// Each installed shell accepts its script, and offers the program's completions.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(dir, "footfall")))
	for shell, offer := range map[string]string{
		"bash": `COMP_WORDS=(footfall "${typed[@]}") COMP_CWORD=${#typed[@]}; _footfall; echo ${COMPREPLY[@]}`,
		// zsh's own function works only at a terminal.
		"zsh":  `words=(footfall "${typed[@]}") CURRENT=$#words; _files() { : }; _describe() { print -- ${${(P)2}%%:*} }; _footfall`,
		"fish": `echo (complete -C "footfall $argv" | string replace -r '\t.*' '')`,
	} {
		if _, err := exec.LookPath(shell); err != nil && shell != "bash" {
			continue
		}
		script := filepath.Join(dir, shell)
		require.NoError(t, os.WriteFile(script, []byte(well(t, "completion", shell)), 0o600))
		for _, c := range completions {
			if c.offered == "" {
				continue // names of files
			}
			arguments := append([]string{"-c", `compdef() { :; }; source ` + script + `; typed=("$@"); ` + offer, shell},
				strings.Split(c.typed, " ")...)
			if shell == "fish" {
				arguments = []string{"--no-config", "-c", `source ` + script + `; ` + offer, "--", c.typed}
			}
			cmd := exec.CommandContext(t.Context(), shell, arguments...)
			cmd.Env = append(environment(), "PATH="+dir+":"+os.Getenv("PATH"))
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", shell, said)
			assert.Equal(t, c.offered, strings.TrimSpace(string(said)), "%s: %s", shell, c.typed)
		}
	}
}

// The manual page is complete, in man's format, and free of the builder's own folders.
func TestManual(t *testing.T) {
	t.Parallel()
	page := well(t, "help", "--man")
	assert.True(t, strings.HasPrefix(page, ".TH FOOTFALL 1 "))
	assert.Contains(t, page, "footfall \\- counts visits to web pages, exactly, in PostgreSQL")
	for _, part := range []string{`.SS "footfall app note list <app>"`, `.B \-\-trust\-proxy`, "Default: /var/lib/footfall for root"} {
		assert.True(t, strings.Contains(page, part), part)
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, ".") {
			assert.Regexp(t, `^\.(TH|SH|SS|TP|PP|B|I) ?`, line)
		}
	}
	if man, err := exec.LookPath("groff"); err == nil {
		cmd := exec.CommandContext(t.Context(), man, "-man", "-Kutf8", "-Tutf8", "-ww", "-z")
		cmd.Stdin = strings.NewReader(page)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err)
		assert.Empty(t, string(said))
	}
}
