// Command sbom lists what a Go binary is made of, as a CycloneDX document beside it: BINARY.cdx.json.
//
//	go run ./scripts/sbom -version v1.2.3 bin/footfall
//
// It reads what the linker wrote into the binary, not go.mod: so it lists what is shipped, and nothing that only tests need.
// The document has no serial number and no time, which CycloneDX does not demand: the same binary gives the same bytes, and
// a diff of two documents shows what changed in the binary.
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
)

// The parts of CycloneDX 1.6 that we fill (https://cyclonedx.org/docs/1.6/json/).
type (
	document struct {
		Schema      string      `json:"$schema"`
		BOMFormat   string      `json:"bomFormat"`
		SpecVersion string      `json:"specVersion"`
		Version     int         `json:"version"`
		Metadata    metadata    `json:"metadata"`
		Components  []component `json:"components"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Ref     string `json:"bom-ref"`
		Type    string `json:"type"`
		Name    string `json:"name"`
		Version string `json:"version"`
		Scope   string `json:"scope,omitempty"`
		Hashes  []hash `json:"hashes,omitempty"`
		PURL    string `json:"purl,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "sbom:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.SetOutput(stderr)
	// Built with -trimpath the binary does not say what -ldflags set.
	version := flags.String("version", "", "version of the binary (default: what its module says)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("one binary is wanted: write sbom [-version VERSION] BINARY")
	}
	binary := flags.Arg(0)
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("%s: %w: name a binary that Go built", binary, err)
	}
	if *version == "" {
		*version = info.Main.Version
	}
	described, err := describe(info, *version)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // purls stay legible
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(described); err != nil {
		return err
	}
	return os.WriteFile(binary+".cdx.json", text.Bytes(), 0o644)
}

func describe(info *debug.BuildInfo, version string) (document, error) {
	described := document{
		Schema:      "http://cyclonedx.org/schema/bom-1.6.schema.json",
		BOMFormat:   "CycloneDX",
		SpecVersion: "1.6",
		Version:     1,
		// No purl: it would claim that the module can be fetched under this name.
		Metadata:   metadata{component{Ref: info.Main.Path + "@" + version, Type: "application", Name: info.Main.Path, Version: version}},
		Components: []component{standardLibrary(info.GoVersion)},
	}
	for _, module := range info.Deps {
		listed, err := library(module)
		if err != nil {
			return document{}, err
		}
		described.Components = append(described.Components, listed)
	}
	return described, nil
}

// standardLibrary is a component like any other: most of what is published about Go binaries concerns it. Its name is the
// one under which vulnerability databases keep it.
func standardLibrary(goVersion string) component {
	version, _, _ := strings.Cut(strings.TrimPrefix(goVersion, "go"), " ") // experiments follow a blank
	return named("stdlib", version)
}

func library(module *debug.Module) (component, error) {
	if module.Replace != nil {
		module = module.Replace // what is really in the binary
	}
	listed := named(module.Path, module.Version)
	if module.Sum == "" { // a replacement that is a directory
		return listed, nil
	}
	// go.sum's hash is a SHA-256 over the names and hashes of the module's files.
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:"))
	if err != nil {
		return component{}, fmt.Errorf("%s: its hash %q is not like those in go.sum: %w", module.Path, module.Sum, err)
	}
	listed.Hashes = []hash{{Algorithm: "SHA-256", Content: hex.EncodeToString(sum)}}
	return listed, nil
}

func named(path, version string) component {
	// Small letters, as the purl specification wants for Go; a + (as in +incompatible) must be escaped.
	purl := "pkg:golang/" + strings.ToLower(path) + "@" + url.QueryEscape(version)
	return component{Ref: purl, Type: "library", Name: path, Version: version, Scope: "required", PURL: purl}
}
