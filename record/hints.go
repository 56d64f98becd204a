package record

// hintPolicy decides whether a writer's batches use hints. A hint means that the filter reports a visitor as new, so
// that the database does not look up the visitor. It is wrong if another instance has just counted the visitor. The
// insert then violates the key of the table, the database rejects the batch, and writer.write sends it again. So a
// wrong hint costs time, but never makes a number wrong.
//
// If several instances count for the same sites, nearly every batch may have a wrong hint. So after each wrong hint,
// some batches are sent without hints. Their number grows with each further wrong hint, and shrinks after batches
// with correct hints. After a batch without hints, the filter also contains the visitors that the batch found in the
// tables.
type hintPolicy struct {
	batchesWithoutHints int // number of batches to send without hints
	penalty             int // after the next wrong hint, this many batches plus one are sent without hints
}

const worstPenalty = 255

// areAllowed reports whether the next batch may have hints.
func (p *hintPolicy) areAllowed() bool { return p.batchesWithoutHints == 0 }

// recordWrongHint is called after a batch was rolled back because of a wrong hint. This batch is sent again, as the
// first batch without hints.
func (p *hintPolicy) recordWrongHint() {
	p.batchesWithoutHints = 1 + p.penalty
	p.penalty = min(2*p.penalty+1, worstPenalty)
}

// recordCommit is called after a batch has committed.
func (p *hintPolicy) recordCommit() {
	if p.batchesWithoutHints > 0 {
		p.batchesWithoutHints--
	} else {
		p.penalty /= 2
	}
}
