package db

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// meaning explains a database error to users who do not know SQL.
type meaning struct{ text, remedy string }

// meanings maps SQLSTATEs, and classes of SQLSTATEs (their first two characters), to meanings.
var meanings = map[string]meaning{
	"22":    {"the database refuses a value", ""},
	"23":    {"the tables do not accept this row", ""},
	"25006": {"the database accepts no writes: it is a standby, or read-only", "connect to the primary"},
	"28":    {"the server refuses this user", "check the user and the password, and the server's pg_hba.conf"},
	"3D000": {"the server has no such database", "create it, or name another one"},
	"3F000": {"the tables do not match this footfall", "type `footfall migrate up`; if the database is not a cell, leave out cell=on"},
	"40":    {"other transactions keep the tables busy", "try again"},
	"42":    {"the tables do not match this footfall", "type `footfall migrate up`"},
	"42501": {"the role has no right to do this", "connect as the role that owns the tables"},
	"42704": {"the database URL contains a setting that the server does not support", "check the URL"},
	"53100": {"the disk of the database is full", "free some space there"},
	"53200": {"the database is out of memory, or has no room for more locks",
		"try again later, or raise the server's max_locks_per_transaction"},
	"53300": {"the server has no free connection", "try again later, or raise its max_connections"},
	"55":    {"other transactions keep the tables busy", "try again"},
	"57":    {"the database is starting or stopping", "try again later"},
	"57014": {"the database did not finish in time", "try again later"},
	"58":    {"the database cannot use its files", "look at the server's log"},
	"FF009": {"a synchronous standby is required, but the server does not wait for one", "name the standby in its synchronous_standby_names"},
	"XX001": {"the database's files are damaged", "look at the server's log, and restore a backup"},
	"XX002": {"the database's files are damaged", "look at the server's log, and restore a backup"},
}

func meaningOf(refused *pgconn.PgError) meaning {
	if tablesAreNewer(refused) {
		return meaning{"the tables belong to a newer footfall", "use that version"}
	}
	if strings.Contains(refused.Message, "connection to the remote node") { // Citus always reports this in English
		return meaningOfNode(refused.Message)
	}
	if m, ok := meanings[refused.Code]; ok {
		return m
	}
	if m, ok := meanings[refused.Code[:min(2, len(refused.Code))]]; ok {
		return m
	}
	return meaning{"the database returned an error", "look at the server's log"}
}

// meaningOfNode explains an error of Citus about a connection that a node of a cluster could not make to another node
// or to itself.
func meaningOfNode(message string) meaning {
	if strings.Contains(message, "password") {
		return meaning{"a node of the cluster refuses a connection from another node or from itself, because the password is missing or wrong",
			"write the password into ~/.pgpass of the user that runs each node's server (mode 0600), or into pg_dist_authinfo"}
	}
	return meaning{"a node of the cluster does not answer", "start it, replace it with its standby, or remove it (`footfall cell node`)"}
}

// NodePassword returns an error if a warning of Citus reports that a node does not have the password for a
// connection to another node or to itself. It returns nil for other warnings.
func NodePassword(warned error) error {
	if warned == nil || !strings.Contains(warned.Error(), "password") {
		return nil
	}
	return errors.New(meaningOfNode(warned.Error()).sentence(warned.Error()))
}

// sentence returns the meaning, the server's message, and the remedy.
func (m meaning) sentence(message string) string {
	text := fmt.Sprintf("%s (%s)", m.text, message)
	if m.remedy != "" {
		text += ": " + m.remedy
	}
	return text
}

// Sentence returns the text that users see for an error. Errors of the server and the driver are replaced by
// their meaning and remedy, without SQL or SQLSTATE.
func Sentence(err error) string {
	text := err.Error()
	eachWithin(err, func(within error) {
		switch e := within.(type) { //nolint:errorlint // every link of the chain is visited
		case *pgconn.ConnectError:
			text = strings.ReplaceAll(text, e.Error(), connectSentence(e))
		case *pgconn.PgError:
			text = strings.ReplaceAll(text, e.Error(), meaningOf(e).sentence(e.Message))
		}
	})
	return text
}

// eachWithin calls f with err and every error that it wraps, outer ones first.
func eachWithin(err error, f func(error)) {
	f(err)
	switch next := err.(type) { //nolint:errorlint // it is walked link by link
	case interface{ Unwrap() error }:
		if inner := next.Unwrap(); inner != nil {
			eachWithin(inner, f)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range next.Unwrap() {
			eachWithin(inner, f)
		}
	}
}

// Reason returns a general explanation why the database could not be used, for callers who may not see
// details.
func Reason(err error) string {
	refused, is := errors.AsType[*pgconn.PgError](err)
	switch {
	case is:
		return meaningOf(refused).text
	case errors.Is(err, errAwaitsStandby):
		return "the database's " + errAwaitsStandby.Error()
	case errors.Is(err, errCommitsNothing):
		return "the database " + errCommitsNothing.Error()
	case errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err):
		return "the database does not answer in time"
	}
	return "the database does not answer"
}

// lacksTLS reports whether a connection failed because the URL requires TLS and the server has none. By default the
// driver also tries a connection without TLS. Then lacksTLS returns false, because the failure has another cause.
func lacksTLS(e *pgconn.ConnectError) bool {
	isPlain := func(f *pgconn.FallbackConfig) bool { return f.TLSConfig == nil }
	return e.Config.TLSConfig != nil && !slices.ContainsFunc(e.Config.Fallbacks, isPlain) &&
		strings.Contains(e.Error(), "server refused TLS connection")
}

func connectSentence(e *pgconn.ConnectError) string {
	at := hostsOf(e.Config)
	if node, is := errors.AsType[*placeError](e); is {
		at = node.place
	}
	var unknown *net.DNSError
	refused, is := errors.AsType[*pgconn.PgError](e)
	switch {
	case is:
		return meaningOf(refused).sentence(refused.Message)
	case isUntrusted(e):
		return fmt.Sprintf("the certificate of the server at %s is not trusted here (%v): check sslmode and sslrootcert", at, lastOf(e))
	case lacksTLS(e):
		return fmt.Sprintf("the server at %s does not support TLS, which sslmode requires: enable it there, or leave sslmode out", at)
	case errors.Is(e, pgconn.ErrReadOnlyConnection):
		return fmt.Sprintf("no server at %s accepts writes: the primary is down, and no standby is promoted yet: promote one, or name the "+
			"primary", at)
	case errors.As(e, &unknown):
		return fmt.Sprintf("the host %s cannot be resolved (%v)", unknown.Name, unknown.Err)
	case errors.Is(e, syscall.ECONNREFUSED), errors.Is(e, syscall.ENOENT):
		return fmt.Sprintf("no server answers at %s (%v): start it, or name another one", at, lastOf(e))
	case errors.Is(e, errCommitsNothing):
		return fmt.Sprintf("the server at %s %v", at, errCommitsNothing)
	case pgconn.Timeout(e), errors.Is(e, context.DeadlineExceeded):
		return fmt.Sprintf("the server at %s does not answer in time", at)
	}
	return fmt.Sprintf("cannot connect to the server at %s (%v)", at, lastOf(e))
}

// hostsOf lists the hosts and ports that a connection with this configuration may use.
func hostsOf(cfg *pgconn.Config) string {
	var hosts []string
	for _, f := range append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port}}, cfg.Fallbacks...) {
		at := net.JoinHostPort(f.Host, fmt.Sprint(f.Port))
		if strings.HasPrefix(f.Host, "/") {
			at = fmt.Sprintf("%s/.s.PGSQL.%d", f.Host, f.Port)
		}
		if !slices.Contains(hosts, at) {
			hosts = append(hosts, at)
		}
	}
	return strings.Join(hosts, ", ")
}

func isUntrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	var name x509.HostnameError
	return errors.As(err, &certificate) || errors.As(err, &name)
}

// lastOf returns the innermost error within err, or nil if err is nil. If an error joins several errors, lastOf
// follows the last of them.
func lastOf(err error) (last error) {
	eachWithin(err, func(within error) { last = within })
	return last
}

// IsConnect reports whether err means that no connection could be made.
func IsConnect(err error) bool {
	var e *pgconn.ConnectError
	return errors.As(err, &e)
}

// RefusedForGood reports whether a connection failed for a reason that waiting does not change: a wrong
// password, a missing database, a server without TLS. It returns false for an unresolved host name, because the
// host may only have to be started.
func RefusedForGood(err error) bool {
	failed, is := errors.AsType[*pgconn.ConnectError](err)
	if !is {
		return false
	}
	if refused, is := errors.AsType[*pgconn.PgError](err); is {
		switch refused.Code[:min(2, len(refused.Code))] {
		case "08", "53", "55", "57", "58", "XX": // lost connections, resources, starting and stopping, system errors
			return false
		}
		return true
	}
	return isUntrusted(err) || lacksTLS(failed)
}
