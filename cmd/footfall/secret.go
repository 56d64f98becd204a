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

// secretFile is the name of the file that contains the secret of the embedded database. The file is in the folder --data,
// next to the database.
const secretFile = "secret"

// secret reads the secret, which is the key for hashing visitors. Without --secret-file, the embedded database has its own
// secret file, which secret creates if it is missing. For any other database without --secret-file, secret returns nil.
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
	text = bytes.TrimSpace(text) // editors end a file with a newline
	if len(text) < app.SecretBytes {
		return nil, fmt.Errorf("--secret-file: %s has only %d bytes: write at least %d random bytes to it, as with "+
			"`openssl rand -hex 32 > %s`",
			path, len(text), app.SecretBytes, path)
	}
	return text, nil
}

// makeSecret creates the file with the secret if it does not exist. All hashes of visitors depend on the secret, so no
// process may ever read an incomplete one. Therefore makeSecret writes a temporary file first.
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
	_, _ = rand.Read(random) // never fails: the runtime would stop the process first
	_, err = file.WriteString(hex.EncodeToString(random) + "\n")
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	// Link fails if another process has created the file in the meantime. Then both processes use the secret in that file.
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
