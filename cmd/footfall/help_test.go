package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command, argument and flag has a help text, and every help text belongs to one.
func TestHelpIsComplete(t *testing.T) {
	t.Parallel()
	help := readHelp(helpText)
	used := map[string]string{}
	var walk func(node *kong.Node, command string)
	walk = func(node *kong.Node, command string) {
		names := []string{}
		for _, flag := range node.Flags {
			names = append(names, nameOfHelp(help, command, "--"+flag.Name))
		}
		for _, argument := range node.Positional {
			names = append(names, nameOfHelp(help, command, "<"+argument.Name+">"))
		}
		for _, child := range node.Children {
			name := strings.TrimSpace(command + " " + child.Name)
			walk(child, name)
			names = append(names, name)
		}
		for _, name := range names {
			assert.Contains(t, help, name)
			used[name] = help[name]
		}
	}
	parser, err := kong.New(&commandLine{}, kong.Vars{"data": ""})
	require.NoError(t, err)
	walk(parser.Model.Node, "")
	maps.DeleteFunc(help, func(name, _ string) bool { return used[name] != "" })
	assert.Empty(t, help, "nothing has these names")
	set := well(t, "app", "set", "--help")
	assert.NotContains(t, set, "[[", "what is marked as the shell's alone")
	assert.Contains(t, strings.Join(strings.Fields(set), " "), `--goal "" clears the list`)
	for name, text := range used { // go/doc, which formats the help, would turn each of these into a typographic quote
		assert.NotContains(t, text, "''", name)
		assert.NotContains(t, text, "``", name)
	}
}
