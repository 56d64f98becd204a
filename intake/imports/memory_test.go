package imports

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"footfall/db"
	"footfall/record"
	"footfall/record/feed"
)

// memory is a service whose book is in memory, with the isolation that the database gives: a
// transaction of the book reads what is committed and what it has written itself, logs that it has
// written wait for its end, and only one has the book at a time. Counting takes no book.
type memory struct {
	world  *world
	random *rand.Rand
	logs   map[int64]kept
	made   int64
	holder *imported // who has the book
	locked map[int64]bool
}

// kept is a log in the book.
type kept struct {
	log     Log
	samples map[int32][]byte
}

// stage is where an import can be killed, or another one goes on.
type stage string

const (
	beforeBook   stage = "before it has the book"
	inBook       stage = "while it has the book"
	beforeCommit stage = "before the book is committed"
	afterCommit  stage = "after the book was committed"
	midRead      stage = "while it reads"
	beforeCount  stage = "before a chunk is committed"
	afterCount   stage = "after a chunk was committed"
)

var errKilled = errors.New("killed")

// imported is one import, as the service sees it. It stands still at each stage until it is its turn.
type imported struct {
	*memory
	world   *world
	options Options
	killAt  int // the stage at which it is killed; 0: never
	stages  int
	killed  stage
	quiet   bool                 // nothing is lost for it
	parked  chan func() bool     // says that it stands still, and what it waits for
	turn    chan bool            // lets it go on
	refused map[string]bool      // files
	logOf   map[string]*modelLog // that each file is
	newly   map[string][]int     // what of each file it has counted
	files   map[string]*paper    // as they are while it runs
	stdin   *paper               // nil: it reads files
	summary *Summary
	err     error
}

// step is a stage.
func (i *imported) step(at stage, ready func() bool) error {
	i.stages++
	if i.killed != "" || i.stages == i.killAt {
		if i.killed == "" {
			i.killed = at
			i.world.kills[at]++
		}
		return errKilled
	}
	i.parked <- ready
	<-i.turn
	return nil
}

func always() bool { return true }

// runAll runs imports side by side, in an order that the seed tells, to their ends.
func (m *memory) runAll(all []*imported) {
	waits := map[*imported]func() bool{}
	goOn := func(i *imported) { // up to its next stage
		if ready := <-i.parked; ready != nil {
			waits[i] = ready
		} else {
			delete(waits, i)
		}
	}
	for _, i := range all {
		i.memory, i.parked, i.turn = m, make(chan func() bool), make(chan bool)
		i.newly, i.refused, i.logOf = map[string][]int{}, map[string]bool{}, map[string]*modelLog{}
		go func() {
			defer close(i.parked)
			i.summary, i.err = runOn(context.Background(), i, i.options, &Progress{})
		}()
		goOn(i)
	}
	for len(waits) > 0 {
		var ready []*imported
		for _, i := range all {
			if waits[i] != nil && waits[i]() {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			panic("all imports wait for each other")
		}
		next := ready[m.random.IntN(len(ready))]
		next.turn <- true
		goOn(next)
	}
}

func (i *imported) refresh(context.Context) (*settings, error) {
	return &settings{1, time.UTC, 64, i.world.hashes}, nil
}

func (i *imported) firstDay(context.Context) (int32, error) { return i.world.firstDay, nil }
func (i *imported) latest() time.Time                       { return time.Unix(i.world.clock+mostApart, 0) }
func (i *imported) pauseRetention(context.Context) error    { return nil }
func (i *imported) end(_ context.Context, _ int64) error    { return i.step(afterCount, always) }
func (i *imported) isLost() bool                            { return !i.quiet && i.random.IntN(60) == 0 }
func (i *imported) isKept(id int64) bool                    { return !i.locked[id] }
func (i *imported) areKept(of map[*record.Position]int64) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(of)), func(p *record.Position) bool { return !i.isKept(p.Log) })
}
func cloneOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	clone := *p
	return &clone
}

// inBook is for the import.
func (i *imported) inBook(ctx context.Context, f func(b book) error) error {
	for {
		if err := i.step(beforeBook, func() bool { return i.holder == nil }); err != nil {
			return err
		}
		i.holder = i
		t := &transaction{imported: i, written: map[int64]kept{}}
		err := f(t)
		lost := err == nil && i.isLost()
		if err == nil {
			err = i.step(beforeCommit, always)
		}
		i.holder = nil
		for id := range t.written {
			delete(i.locked, id)
		}
		if err != nil {
			return err
		}
		if !lost || i.random.IntN(2) == 0 {
			maps.Copy(i.logs, t.written)
			for _, l := range t.order {
				i.world.decided(i, t.written[l].log, t.was[l])
			}
		}
		if lost { // nobody has heard what became of it: it is tried again
			i.world.lost++
			continue
		}
		return i.step(afterCommit, always)
	}
}

// transaction is the book while an import has it.
type transaction struct {
	*imported
	written map[int64]kept
	was     map[int64]*Log
	order   []int64
}

func (t *transaction) log(id int64) (kept, bool) {
	if k, own := t.written[id]; own {
		return k, true
	}
	k, there := t.logs[id]
	return k, there
}

func (t *transaction) ids() []int64 {
	all := slices.Collect(maps.Keys(t.logs))
	for id := range t.written {
		if _, there := t.logs[id]; !there {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}

func (k kept) copied() Log {
	l := k.log
	l.Counted, l.Beginning = cloneOf(l.Counted), cloneOf(l.Beginning)
	return l
}

func (t *transaction) find(_ context.Context, beginnings []int64) (found []Log, err error) {
	err = t.step(inBook, always)
	for _, id := range t.ids() {
		if k, _ := t.log(id); k.log.Beginning == nil || slices.Contains(beginnings, *k.log.Beginning) {
			found = append(found, k.copied())
		}
	}
	return found, err
}

func (t *transaction) get(_ context.Context, ids []int64) (found []Log, err error) {
	err = t.step(inBook, always)
	for _, id := range t.ids() {
		if slices.Contains(ids, id) {
			k, _ := t.log(id)
			found = append(found, k.copied())
		}
	}
	return found, err
}

func (t *transaction) samplesOfHours(_ context.Context, hours []int32) (map[int64]samples, error) {
	found := map[int64]samples{}
	for _, id := range t.ids() {
		k, _ := t.log(id)
		for _, hour := range hours {
			if bytes, there := k.samples[hour]; there {
				if found[id] == nil {
					found[id] = samples{}
				}
				found[id][hour] = sampleOf(bytes)
			}
		}
	}
	return found, t.step(inBook, always)
}

func (t *transaction) samplesOf(_ context.Context, id int64, hours []int32) (samples, error) {
	found := samples{}
	k, _ := t.log(id)
	for hour, bytes := range k.samples {
		if hours == nil || slices.Contains(hours, hour) {
			found[hour] = sampleOf(bytes)
		}
	}
	return found, t.step(inBook, always)
}

func (t *transaction) set(_ context.Context, l, was *Log, changed samples) (bool, error) {
	k := kept{samples: map[int32][]byte{}}
	if was == nil {
		t.made++
		l.ID = t.made
	} else {
		if err := t.step(inBook, always); err != nil {
			return false, err
		}
		k, _ = t.log(l.ID)
		if *k.log.Counted != *was.Counted || k.log.Look != was.Look {
			return false, nil
		}
		k.samples = maps.Clone(k.samples)
	}
	for hour, sample := range changed {
		if len(sample.lines) == 0 {
			delete(k.samples, hour)
		} else {
			k.samples[hour] = sample.bytes()
		}
	}
	k.log = *l
	k.log.Counted, k.log.Beginning = cloneOf(l.Counted), cloneOf(l.Beginning)
	if _, again := t.written[l.ID]; !again {
		t.order = append(t.order, l.ID)
		if t.was == nil {
			t.was = map[int64]*Log{}
		}
		t.was[l.ID] = was
	}
	t.written[l.ID] = k
	t.locked[l.ID] = true
	return true, nil
}

// count is for the import. It reads ahead of what it commits, as the feed does.
func (i *imported) count(ctx context.Context, d *reader) error {
	if d.DryRun {
		return i.countDry(ctx, d)
	}
	var chunks [][]feed.Entry[read]
	most, ended := 1+i.random.IntN(60), false
	for {
		for !ended && len(chunks) < 2 {
			if err := i.step(midRead, always); err != nil {
				return err
			}
			entries, err := d.Read(ctx, most)
			if ended = errors.Is(err, io.EOF); err != nil && !ended {
				return err
			}
			chunks = append(chunks, entries)
			if i.random.IntN(2) == 0 {
				break
			}
		}
		if len(chunks) == 0 {
			return nil
		}
		if err := i.commit(d, chunks[0]); err != nil {
			return err
		}
		chunks = chunks[1:]
	}
}

func (i *imported) countDry(ctx context.Context, d *reader) error {
	for {
		if _, err := d.Read(ctx, 50); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// commit counts a chunk, and moves the logs of which it is, all or nothing.
func (i *imported) commit(d *reader, entries []feed.Entry[read]) error {
	for others := true; ; {
		entries = i.settle(d, entries, others)
		if len(entries) == 0 {
			return nil
		}
		moves := map[*record.Position]int64{}
		for _, e := range entries {
			moves[e.Position] = e.Next
		}
		if err := i.step(beforeCount, func() bool { return i.areKept(moves) }); err != nil {
			return err
		}
		moved, lost := i.move(entries, moves), i.isLost()
		if err := i.step(afterCount, always); err != nil {
			return err
		}
		if lost {
			i.world.lost++
		}
		for p, next := range moves {
			if moved && !lost {
				p.Next = next
				continue
			}
			k := i.logs[p.Log]
			if k.log.Look != p.Look || *k.log.Counted < p.Next {
				return record.ErrLookedAnew
			}
			p.Next = *k.log.Counted
		}
		others = !moved && !lost
	}
}

// settle tells of entries that are counted, and returns the others.
func (i *imported) settle(d *reader, entries []feed.Entry[read], others bool) (left []feed.Entry[read]) {
	var settled []*feed.Entry[read]
	for n := range entries {
		if e := &entries[n]; e.Next > e.Position.Next {
			left = append(left, *e)
		} else {
			if e.Fate == feed.Counts && e.Of.wrong == "" {
				e.Fate = feed.Counted
			} else {
				e.Fate = feed.Passes
			}
			e.ByOthers = others
			settled = append(settled, e)
		}
	}
	d.Settled(settled)
	return left
}

// move is what the transaction of a chunk does, as move_log does it; false: it has failed.
func (i *imported) move(entries []feed.Entry[read], moves map[*record.Position]int64) bool {
	for p, to := range moves {
		if k, there := i.logs[p.Log]; !there || k.log.Look != p.Look || *k.log.Counted != p.Next || to < p.Next {
			return false
		}
	}
	marks := map[*record.Position]db.LogMark{}
	for _, e := range entries {
		if e.Next == moves[e.Position] {
			marks[e.Position] = e.Log()
		}
	}
	for p, to := range moves {
		k, mark := i.logs[p.Log], marks[p]
		k.log.Counted, k.log.CountedHash, k.log.Lines, k.log.LastAt, k.log.Tail = &to, mark.Hash, mark.Lines, mark.LastAt, mark.Tail
		if mark.AfterLines != nil {
			k.log.AfterLines = mark.AfterLines
		}
		i.logs[p.Log] = k
		i.world.moved(k.log)
	}
	for _, e := range entries {
		if e.Fate == feed.Counts && e.Of.wrong == "" {
			i.world.count(i, e.Position.Log, e.Of.file, e.Of.line)
		}
	}
	return true
}

// claimOf is the hash of a log that was read, and has these bytes.
func (w *world) claimOf(content []byte) []byte {
	sum := w.hashes.quick()
	_, _ = sum.Write(content)
	return w.hashes.ofSum(sum)
}

// hashOf is the keyed hash of a log of which these bytes are counted.
func (w *world) hashOf(content []byte) []byte {
	sum := sha256.Sum256(content)
	return w.hashes.ofBytes(sum[:])
}

var modelRules = Rules{Methods: DefaultMethods, Statuses: DefaultStatuses, Site: "blog.example"}

func dayOfModel(second int64) string {
	return time.Unix(second, 0).UTC().Format("02/Jan/2006:15:04:05 -0700")
}
