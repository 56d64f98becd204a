package record

// hintPolicy decides whether a writer's batches use hints. A hint is a report by the filter that a visitor is new, so
// that the database skips the look-up. It is wrong if another instance has counted the visitor first. Then the
// database rejects the batch, because its insert violates the key of the table, and writer.write sends it again. So a
// wrong hint costs time, but never makes a number wrong. If several instances count for the same sites, nearly every
// batch may have a wrong hint. So after a wrong hint, some batches are sent without hints: more after each further
// wrong hint, and fewer after batches with correct hints. (After a batch without hints, the filter also contains the
// visitors that other instances have counted.)
type hintPolicy struct {
	batchesWithoutHints int // number of batches to send without hints
	penalty             int // after the next wrong hint, penalty + 1 batches are sent without hints
}

const worstPenalty = 255

// areAllowed reports whether the next batch may have hints.
func (p *hintPolicy) areAllowed() bool { return p.batchesWithoutHints == 0 }

// recordWrongHint is called when a batch was rolled back because of a wrong hint. This batch is sent again, as the first batch
// without hints.
func (p *hintPolicy) recordWrongHint() {
	p.batchesWithoutHints = 1 + p.penalty
	p.penalty = min(2*p.penalty+1, worstPenalty)
}

// recordCommit is called when a batch has committed.
func (p *hintPolicy) recordCommit() {
	if p.batchesWithoutHints > 0 {
		p.batchesWithoutHints--
	} else {
		p.penalty /= 2
	}
}
