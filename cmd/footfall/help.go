package main

import (
	_ "embed" // for help.txt
	"strings"

	"github.com/alecthomas/kong"
)

// helpText holds the help of each command, argument and flag, beneath its name: "serve",
// "psql <args>", "serve --addr". What several commands beneath one have in common stands beneath
// that one: the flags of "app add" and "app set" are those of "app".
//
//go:embed help.txt
var helpText string

// readHelp reads a text like helpText. A name begins its line, and the help of it is indented.
func readHelp(text string) map[string]string {
	help := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		words := strings.TrimSpace(line)
		switch {
		case words == "":
		case strings.HasPrefix(line, " "):
			help[name] = strings.TrimSpace(help[name] + " " + words)
		default:
			name = words
		}
	}
	return help
}

// nameOfHelp is the name beneath which the help of a flag or argument stands: that of the command,
// or the nearest one above it that has one.
func nameOfHelp(help map[string]string, command, flag string) string {
	for {
		name := strings.TrimSpace(command + " " + flag)
		if _, is := help[name]; is || command == "" {
			return name
		}
		command = command[:max(0, strings.LastIndex(command, " "))]
	}
}

// explain gives a command, all that stands beneath it, and their flags and arguments their help.
func explain(help map[string]string, node *kong.Node, command string) {
	for _, flag := range node.Flags {
		flag.Help = help[nameOfHelp(help, command, "--"+flag.Name)]
	}
	for _, argument := range node.Positional {
		argument.Help = help[nameOfHelp(help, command, "<"+argument.Name+">")]
	}
	for _, child := range node.Children {
		name := strings.TrimSpace(command + " " + child.Name)
		child.Help = help[name]
		explain(help, child, name)
	}
}
