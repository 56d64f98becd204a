// Package migrations holds the one source of Footfall's schema, embedded in the binary.
//
//	*.sql        steps for goose, in order: tables, and what tables need
//	functions/   functions for the service and for reports, in the schema footfall
//	report/      views and functions for people who read, in the schema report
//	cell/        what makes a cell of a database on a Citus cluster
//
// Steps are applied once. Until CHANGELOG names a released version they are edited in place, and a
// database that was made by other ones is refused; after that, one that has landed is never edited.
// Functions and views are dropped and made again whenever one of their files has changed.
package migrations

import "embed"

// FS holds all files.
//
//go:embed *.sql functions/*.sql report/*.sql
var FS embed.FS

// CellDatabase is run in the database of a cell on each node, and Cell after the steps.
var (
	//go:embed cell/database.sql
	CellDatabase string
	//go:embed cell/cell.sql
	Cell string
)
