package record

// hintPolicy decides whether a writer's batches use the filter's hints. A hint is wrong if another
// instance has counted the visitor first. A batch with a wrong hint must be written twice. If
// several instances count for the same sites, nearly every batch may have a wrong hint. So after a
// wrong hint, some batches are sent without hints: more after each further wrong hint, and fewer
// after batches with correct hints. (After a batch without hints, the filter also contains the
// visitors that other instances have counted.) Wrong hints never make a number wrong: the insert
// violates the key of the table, and writer.write sends the batch again.
type hintPolicy struct {
	without int // number of batches to send without hints
	penalty int // the next wrong hint sets without to penalty + 1
}

const worstPenalty = 255

// allowed reports whether the next batch may have hints.
func (p *hintPolicy) allowed() bool { return p.without == 0 }

// wrong is called when a batch was rolled back because of a wrong hint. The first batch without
// hints is the same batch, sent again.
func (p *hintPolicy) wrong() {
	p.without = 1 + p.penalty
	p.penalty = min(2*p.penalty+1, worstPenalty)
}

// committed is called when a batch has committed.
func (p *hintPolicy) committed() {
	if p.without > 0 {
		p.without--
	} else {
		p.penalty /= 2
	}
}
