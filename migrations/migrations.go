// Package migrations holds the one source of Footfall's schema, embedded in the binary.
//
//	*.sql        steps for goose, in order: tables, and what tables need
//	comments/    comments of tables and columns
//	functions/   functions for the service and for reports, in the schema footfall
//	report/      views and functions for people who read, in the schema report
//	cell/        what makes a cell of a database on a Citus cluster
//
// Steps are applied once. Those that the file `released` names are never edited; one that no version
// has yet may be, and a database that was made by another text of it is refused. Functions and views
// are dropped and made again whenever one of their files has changed.
package migrations

import (
	"embed"
	"strings"
)

// FS holds all files.
//
//go:embed *.sql comments/*.sql functions/*.sql report/*.sql
var FS embed.FS

// Comments sets the comments of all tables and columns, a statement a line. The owner of the tables runs it after the steps.
//
//go:embed comments/tables.sql
var Comments string

// Functions and the number of steps make that of the functions and views: the first change after a
// release raises it. A program with a lower one leaves them as they are, and counts by them.
const Functions = 3

// CellDatabase is run in the database of a cell on each node, CellNodes and Cell after the steps.
var (
	//go:embed cell/database.sql
	CellDatabase string
	//go:embed cell/nodes.sql
	CellNodes string
	//go:embed cell/cell.sql
	Cell string
)

// SettleNodes runs at the coordinator, in any database, the function that CellNodes makes in those of cells.
func SettleNodes() string {
	return strings.ReplaceAll(CellNodes, "cell.settle_nodes", "pg_temp.settle_nodes") + "SELECT pg_temp.settle_nodes(true)"
}
