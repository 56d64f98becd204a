// Package migrations embeds the SQL files that define Footfall's schema.
//
//	*.sql        steps for goose, in order: tables, and functions that tables need
//	comments/    comments of tables and columns
//	functions/   functions for the service and for reports, in the schema footfall
//	report/      views and functions for reports in psql, in the schema report
//	cell/        makes a database on a Citus cluster a cell
//
// Steps are applied once. Never edit a step that the file `released` lists. Other steps may be edited: a database to which a
// different text of such a step was applied is refused. Functions and views are dropped and created again whenever one of their
// files has changed.
package migrations

import (
	"embed"
	"strings"
)

// FS holds all files.
//
//go:embed *.sql comments/*.sql functions/*.sql report/*.sql
var FS embed.FS

// Comments sets the comments of all tables and columns, with one statement per line. The owner of the tables runs it after the
// steps.
//
//go:embed comments/tables.sql
var Comments string

// Functions plus the number of steps is the version of the functions and views. The first change of a function or view after a
// release raises Functions. A program with a lower version than the database leaves the database's functions and views
// unchanged and uses them.
const Functions = 3

// CellDatabase is run in the database of a cell on each node. CellNodes and Cell are run on the coordinator after the steps.
var (
	//go:embed cell/database.sql
	CellDatabase string
	//go:embed cell/nodes.sql
	CellNodes string
	//go:embed cell/cell.sql
	Cell string
)

// SettleNodes returns SQL that creates the function of CellNodes as a temporary function and runs it. It works in any database
// on the coordinator.
func SettleNodes() string {
	return strings.ReplaceAll(CellNodes, "cell.settle_nodes", "pg_temp.settle_nodes") + "SELECT pg_temp.settle_nodes(true)"
}
