package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"footfall/counter/app"
)

// secretFile is the name of the secret that is made for the embedded database. It lies in the same
// folder, but is not a part of the database.
const secretFile = "secret"

// secret reads the secret that keys the visitors of apps that hash them. For the embedded database
// it is made if there is none; for a given one nil means that there is none.
func (g globals) secret() (app.Secret, error) {
	path := g.SecretFile
	if path == "" {
		if !g.embedded() {
			return nil, nil
		}
		path = filepath.Join(g.Data, secretFile)
		if err := makeSecret(path); err != nil {
			return nil, fmt.Errorf("make %s: %w", path, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--secret-file: %w", err)
	}
	text = bytes.TrimSpace(text) // an editor ends a file with a newline
	if len(text) < app.SecretBytes {
		return nil, fmt.Errorf("--secret-file: %s holds %d bytes: fill it with %d random ones or more, as `openssl rand -hex 32 > %s` does",
			path, len(text), app.SecretBytes, path)
	}
	return text, nil
}

// makeSecret makes the file of a secret, unless it is there. The file appears complete or not at
// all, since the visitors of all days to come depend on it.
func makeSecret(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), secretFile+".*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	random := make([]byte, app.SecretBytes)
	_, _ = rand.Read(random) // never fails: a failure would end the process
	_, err = file.WriteString(hex.EncodeToString(random) + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	// A link fails if another command has made the file meanwhile: then that one holds.
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
