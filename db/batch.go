package db

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Batch contains the visits that one transaction counts. Targets has one row for each target, which is a page or a
// site. Pairs has one row for each target, visitor and day. For each pair, the database decides whether the visitor is
// new to the target, and whether the visit is the first one of the day.
type Batch struct {
	ID [16]byte
	// Basis is the version of the table contents from which the caller has built the batch. The caller must call
	// DB.Basis first, and read the contents afterwards. The database refuses the batch (FaultStale) if this version is
	// outdated. If Basis is "", the database does not check it.
	Basis    string
	Targets  TargetColumns
	Pairs    PairColumns
	Moves    []Move          // new positions in the sources of the visits, such as queues, in the order of Position.Compare
	Lines    []LogLine       // lines of access logs that the batch records as counted
	Taken    InboxTakeParams // visits that the batch takes out of the table inbox, ordered by row number
	PastDays PastDayColumns
	Late     bool // the batch may have visits of any day, also of a closed one; Rows then has the number for each day
	Rows     DayColumns
	IDs      VisitIDColumns // the ids of the visits that have an id, without duplicates
}

// TargetColumns has a row for each page and site that the batch counts visits for, in order of id.
type TargetColumns struct {
	IDs       []int64
	Sites     []int64 // the page's site; 0 if the target is a site itself
	Days      []int32 // day of the target's visits; in a late batch: their last day that is not a past day (0: all are past days)
	Hot       []int64 // number of visits
	Newcomers []int64 // number of the target's pairs that PairColumns.Hinted marks as new
}

// DayColumns has a row for each target and each day of its visits.
type DayColumns struct {
	Targets, Sites []int64 // as in TargetColumns
	Days           []int32
	Hot            []int64 // number of visits
}

// PairColumns has one row per target, visitor and day, in the order of arrival.
type PairColumns struct {
	Targets  []int64
	Visitors []netip.Addr
	Days     []int32
	Hinted   []bool   // this instance is sure that the visitor is new to the target, so the database skips the look-up
	TagSets  []string // the visit's tags in the format of TagSet; "" for a page, or if they are not recorded

	Tags PackedTags
}

// PastDayColumns lists the past days of visits. It has one row for each app and each past day of its visits.
type PastDayColumns struct{ Apps, Days []int32 }

// Sums are a target's numbers of visits (Hot), daily visitors (PV) and visitors (UV), read while the batch has them
// locked. Hot already includes all visits of the batch. PV and UV already include the pairs that PairColumns.Hinted
// marks as new, but not the other pairs of the batch.
type Sums struct{ Hot, PV, UV int64 }

// Verdict is the database's decision about one (target, visitor) pair.
type Verdict struct {
	Rank     int64
	Newcomer bool // the visitor is new to the target: the batch added one to uv
	Counted  bool // it was the visitor's first visit on its day: the batch added one to pv
}

// Outcome is the result of a committed batch.
type Outcome struct {
	Sums     []Sums    // one for each row of Batch.Targets
	Verdicts []Verdict // one for each row of Batch.Pairs
}

// Write sends a batch in one round trip, and returns when the batch has committed. FaultOf classifies the errors of
// Write. Write reuses the slices in out.
func (d *DB) Write(ctx context.Context, b *Batch, out *Outcome) error {
	conn, err := d.writers.Acquire(ctx)
	if err != nil {
		return &notSentError{fmt.Errorf("write batch: %w", err)}
	}
	defer conn.Release()

	var q pgx.Batch
	q.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	q.Queue(BatchBegin, uuidValue(b.ID))
	var required bool
	b.queue(&q, out, d.options.RequireStandby, &required)
	if err := d.commit(ctx, conn, &q, &required); err != nil {
		return fmt.Errorf("write batch: %w", err)
	}
	if b.allHinted() {
		b.rankNewcomers(out)
	}
	return nil
}

// queue adds the statements of the batch that follow BatchBegin to q. When the statements run, BatchCheck sets
// *required to whether a synchronous standby is required. If SayStandby has never been called, *required gets the
// value of defaultRequired.
func (b *Batch) queue(q *pgx.Batch, out *Outcome, defaultRequired bool, required *bool) {
	out.Sums = slices.Grow(out.Sums[:0], len(b.Targets.IDs))[:len(b.Targets.IDs)]
	out.Verdicts = slices.Grow(out.Verdicts[:0], len(b.Pairs.Targets))[:len(b.Pairs.Targets)]
	if len(b.IDs.IDs) > 0 {
		q.Queue(VisitIDsAdd, b.IDs.Apps, b.IDs.IDs)
	}
	if len(b.PastDays.Apps) > 0 {
		q.Queue(PastDaysHold, b.PastDays.Apps, b.PastDays.Days, b.Late)
	}
	for i := range b.Moves {
		b.Moves[i].queue(q)
	}
	if len(b.Taken.Numbers) > 0 {
		q.Queue(InboxTake, b.Taken.Numbers, b.Taken.Froms, b.Taken.Untils)
	}
	queueLines(q, b.Lines)
	t := &b.Targets
	q.Queue(CountersLock, t.IDs, t.Hot, t.Newcomers).Query(func(rows pgx.Rows) error {
		return readSums(rows, t.IDs, out.Sums)
	})
	sites, days := t.SiteDays()
	q.Queue(BatchCheck, b.Basis, days, sites, defaultRequired).QueryRow(func(row pgx.Row) error { return row.Scan(nil, nil, required) })
	switch verdicts := func(rows pgx.Rows) error { return readVerdicts(rows, out.Verdicts) }; {
	case b.Late:
		q.Queue(LateVisitsRecord, b.lateArgs()...).Query(verdicts)
	case b.allHinted():
		q.Queue(NewVisitorsRecord, b.newArgs()...)
	case len(b.Pairs.Targets) > 0:
		q.Queue(VisitsRecord, b.recordArgs()...).Query(verdicts)
	default:
		r := b.dayColumns()
		q.Queue(DaysVisited, r.Targets, r.Sites, r.Days, r.Hot)
	}
}

// Probe commits a batch without visits, as durably as Write commits other batches. Probe fails if the role lacks
// rights, if the disk is full, or if the server accepts no writes.
func (d *DB) Probe(ctx context.Context) error {
	conn, err := d.writers.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("probe: %w", d.explain(err))
	}
	defer conn.Release()
	var empty Batch
	_, _ = rand.Read(empty.ID[:]) // returns no error: if it cannot read, the process ends
	t := &empty.Targets
	var q pgx.Batch
	q.BeginTx(pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	q.Queue(BatchBegin, uuidValue(empty.ID))
	q.Queue(CountersLock, t.IDs, t.Hot, t.Newcomers)
	q.Queue(VisitsRecord, empty.recordArgs()...)
	q.Queue(RoomProbe)
	if err := d.commitChecked(ctx, conn, &q, false); err != nil {
		return fmt.Errorf("probe: %w", err)
	}
	return nil
}

// SiteDays returns the targets that are sites, and the day of each. It leaves out sites without a day.
func (t *TargetColumns) SiteDays() (sites []int64, days []int32) {
	for i, site := range t.Sites {
		if site == 0 && t.Days[i] > 0 {
			sites, days = append(sites, t.IDs[i]), append(days, t.Days[i])
		}
	}
	return sites, days
}

// dayColumns returns the number of visits per target and day. Unless the batch is late (Batch.Late), each target has one day.
func (b *Batch) dayColumns() DayColumns {
	if b.Late {
		return b.Rows
	}
	t := &b.Targets
	return DayColumns{t.IDs, t.Sites, t.Days, t.Hot}
}

// recordArgs returns the arguments of the query VisitsRecord.
func (b *Batch) recordArgs() []any {
	p, r := &b.Pairs, b.dayColumns()
	return []any{p.Targets, p.Visitors, p.Days, p.Hinted, p.TagSets, r.Targets, r.Sites, r.Days, r.Hot, p.Tags.packed}
}

// allHinted reports whether the batch is not late and PairColumns.Hinted marks all of its pairs as new. The query
// NewVisitorsRecord then writes the pairs without looking up any visitor.
func (b *Batch) allHinted() bool {
	return !b.Late && len(b.Pairs.Targets) > 0 && !slices.Contains(b.Pairs.Hinted, false)
}

// findTarget returns the index of a pair's target in b.Targets.
func (b *Batch) findTarget(pair int) int {
	place, _ := slices.BinarySearch(b.Targets.IDs, b.Pairs.Targets[pair])
	return place
}

// newArgs returns the arguments of the query NewVisitorsRecord.
func (b *Batch) newArgs() []any {
	p, t := &b.Pairs, &b.Targets
	type newcomer struct {
		visitor netip.Addr
		target  int64
		later   int64
		place   int32 // the target's index, from 1
		day     int32
		tags    string
	}
	rows, later := make([]newcomer, len(p.Targets)), slices.Clone(t.Newcomers)
	for i, target := range p.Targets {
		place := b.findTarget(i)
		later[place]--
		nth := int32(place) + 1 //nolint:gosec // a batch is far smaller
		rows[i] = newcomer{p.Visitors[i], target, later[place], nth, p.Days[i], p.TagSets[i]}
	}
	slices.SortFunc(rows, func(x, y newcomer) int {
		if x.place != y.place {
			return cmp.Compare(x.place, y.place)
		}
		return x.visitor.Compare(y.visitor)
	})
	targets, visitors, days := make([]int64, len(rows)), make([]netip.Addr, len(rows)), make([]int32, len(rows))
	places, sets := make([]int32, len(rows)), make([]string, len(rows))
	later = later[:0]
	for i, row := range rows {
		targets[i], visitors[i], days[i], places[i], sets[i] = row.target, row.visitor, row.day, row.place, row.tags
		later = append(later, row.later)
	}
	return []any{targets, visitors, days, places, later, t.IDs, sets, t.Sites, t.Days, t.Hot, t.Newcomers, p.Tags.packed}
}

// rankNewcomers sets the verdicts of all pairs in out. It runs after the query NewVisitorsRecord, which returns no
// verdicts because all visitors are new.
func (b *Batch) rankNewcomers(out *Outcome) {
	later := slices.Clone(b.Targets.Newcomers)
	for i := range b.Pairs.Targets {
		place := b.findTarget(i)
		later[place]--
		out.Verdicts[i] = Verdict{Rank: out.Sums[place].UV - later[place], Newcomer: true, Counted: true}
	}
}

// lateArgs returns the arguments of the query LateVisitsRecord. One of them, turns, numbers the rows with the same
// target and visitor, starting with 1.
func (b *Batch) lateArgs() []any {
	type pair struct {
		target  int64
		visitor netip.Addr
	}
	p, r := &b.Pairs, &b.Rows
	turns, seen := make([]int32, len(p.Targets)), make(map[pair]int32, len(p.Targets))
	for i, target := range p.Targets {
		key := pair{target, p.Visitors[i]}
		seen[key]++
		turns[i] = seen[key]
	}
	return []any{p.Targets, p.Visitors, p.Days, turns, r.Targets, r.Sites, r.Days, r.Hot, p.Tags.packed, p.TagSets}
}

// Basis returns the version of the table contents that callers may cache. An erasure, for example, changes this
// version. Callers must read the version before they read the contents.
func (d *DB) Basis(ctx context.Context) (string, error) {
	var basis string
	err := d.readForBatch(ctx, "read the basis", func(q *Queries) (err error) { basis, err = q.BasisGet(ctx); return err })
	return basis, err
}

// readForBatch runs f on a connection of the pool writers, and runs f again if the connection was dead. f must not send
// visits. After an error it is therefore certain that no visit was counted, so FaultOf does not return FaultUnknown.
func (d *DB) readForBatch(ctx context.Context, what string, f func(q *Queries) error) error {
	err := withRetry(ctx, d.writers, func(conn *pgxpool.Conn) error { return f(New(conn)) })
	if FaultOf(err) == FaultUnknown {
		err = &notSentError{err}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func readSums(rows pgx.Rows, targets []int64, sums []Sums) error {
	var target int64
	var s Sums
	next := 0
	_, err := pgx.ForEachRow(rows, []any{&target, &s.Hot, &s.PV, &s.UV}, func() error {
		if next == len(targets) || targets[next] != target {
			return fmt.Errorf("the database returned the counters of target %d out of order", target)
		}
		sums[next] = s
		next++
		return nil
	})
	if err == nil && next != len(targets) {
		err = fmt.Errorf("the database returned %d counters for %d targets", next, len(targets))
	}
	return err
}

func readVerdicts(rows pgx.Rows, verdicts []Verdict) error {
	var place int32
	var v Verdict
	n := 0
	_, err := pgx.ForEachRow(rows, []any{&place, &v.Rank, &v.Newcomer, &v.Counted}, func() error {
		verdicts[place-1] = v
		n++
		return nil
	})
	if err == nil && n != len(verdicts) {
		err = fmt.Errorf("the database returned %d verdicts for %d pairs", n, len(verdicts))
	}
	return err
}

// Time limits for a batch, as multiples of the statement timeout. A visit may wait for its response for the sum of both
// times. In the service, this sum is 25 s.
const (
	// WritePatience bounds the time for writing a batch. It is longer than the time limit of one statement, so that
	// the server ends a hanging statement first and reports it.
	WritePatience = 3
	// DidCommitPatience bounds the additional time for DidCommit after the connection of the batch was lost. It gives a
	// killed server time to recover.
	DidCommitPatience = 2
)
