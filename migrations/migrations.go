// Package migrations holds the one source of Footfall's schema: goose migrations, embedded in the binary.
package migrations

import "embed"

// FS holds the migrations. A migration that has landed is never edited: add one.
//
//go:embed *.sql
var FS embed.FS
