package record

// hintPolicy decides whether a lane's batches use the hints of the filter. A wrong hint makes a
// batch be written twice. Where several instances count for the same sites, nearly every batch may
// have a visitor whom another instance counted first. So after a wrong hint some batches are sent
// without hints: more each time, and fewer again once hints prove right. (Batches without hints
// also add to the filter the visitors whom other instances have counted.) No number becomes wrong:
// an insert fails on its key, and writer.write sends the batch again.
type hintPolicy struct {
	without int // how many batches are still to be sent without hints
	penalty int // the next wrong hint adds one more than this to without
}

const worstPenalty = 255

// allowed reports whether the next batch may have hints.
func (p *hintPolicy) allowed() bool { return p.without == 0 }

// wrong is called after a wrong hint. The same batch is the first to be sent without hints.
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
