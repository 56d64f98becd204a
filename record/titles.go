package record

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	"footfall/db"
	"footfall/record/cache"
)

// titles collects page titles until they are written to the table titles. Visits do not wait for the
// write. If a write fails, its titles are dropped.
type titles struct {
	clock func() time.Time

	mu      sync.Mutex
	pending map[int64]string // by page id
}

const (
	titleBytes = 8 << 20
	titleEntry = 192    // approximate size of the votes on a page
	titlesMost = 10_000 // maximum number of titles that wait to be written
)

// votes are the titles that the last five visitors of a page have seen, one vote per visitor. A visitor's
// newer vote replaces the older one. Votes are hashes that do not identify visitors.
type votes struct {
	voters, titles [5]uint64 // hashes of the visitors, and of the titles for which they voted; the latest vote is first
	lastQueued     time.Time // when a title of the page was last queued for writing; the next one is queued at least an hour later
}

// ballots contains the votes on all pages. It belongs to a generation and is dropped with it, so that no vote of an
// erased visitor remains.
type ballots struct {
	seed  maphash.Seed
	pages *cache.Cache[int64, votes]
}

func newBallots() *ballots {
	return &ballots{maphash.MakeSeed(), cache.New[int64, votes](titleBytes, func(int64) int { return titleEntry })}
}

// cast adds the vote of one visitor for one title, both given as hashes. It reports whether this title now has at
// least two votes, and more than half of all votes.
func (v *votes) cast(voterHash, titleHash uint64) bool {
	at := 0
	for at < len(v.voters)-1 && v.voters[at] != voterHash {
		at++
	}
	copy(v.voters[1:at+1], v.voters[:at])
	copy(v.titles[1:at+1], v.titles[:at])
	v.voters[0], v.titles[0] = voterHash, titleHash
	agree, all := 0, 0
	for i, title := range v.titles {
		if v.voters[i] != 0 {
			all++
		}
		if title == titleHash {
			agree++
		}
	}
	return agree > 1 && 2*agree > all
}

// processVote adds the visitor's vote for the page title that was sent with a visit. If most voters agree on this
// title, or if a trusted caller sent it, processVote queues the title for writing.
func (t *titles) processVote(e *entry, g *generation) {
	if e.Title == "" || g == nil || e.page.id == 0 || e.other.Page != "" || e.When == Past {
		return
	}
	// |1 makes the hashes nonzero, because 0 means no vote
	voterHash, titleHash := maphash.Comparable(g.ballots.seed, e.SeenFrom)|1, maphash.String(g.ballots.seed, e.Title)|1
	g.ballots.pages.Update(e.page.id, func(v votes) votes {
		agreed := v.cast(voterHash, titleHash)
		if now := t.clock(); (agreed || e.Vouched) && now.Sub(v.lastQueued) >= time.Hour && t.note(e.page.id, e.Title) {
			v.lastQueued = now
		}
		return v
	})
}

func (t *titles) note(page int64, title string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.pending) >= titlesMost {
		return false
	}
	t.pending[page] = title
	return true
}

// write writes the queued titles to the table titles.
func (t *titles) write(ctx context.Context, d *db.DB) error {
	t.mu.Lock()
	pendingTitles := t.pending
	t.pending = map[int64]string{}
	t.mu.Unlock()
	if len(pendingTitles) == 0 {
		return nil
	}
	rows := db.TitlesPutParams{ToldAt: t.clock()}
	for page, title := range pendingTitles {
		rows.Pages, rows.Titles = append(rows.Pages, page), append(rows.Titles, title)
	}
	return d.InTx(ctx, func(q *db.Queries) error { return q.TitlesPut(ctx, rows) })
}
