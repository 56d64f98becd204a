package record

// hintPolicy decides whether a lane's batches use the filter's hints. A batch with a wrong hint is
// written twice. If several instances count for the same sites, nearly every batch may have a
// visitor whom another instance counted first. So after a wrong hint, some batches are sent without
// hints: more each time, and fewer again after correct hints. (Batches without hints also add
// visitors counted by other instances to the filter.) Wrong hints do not affect numbers: the insert
// violates the key of the table, and writer.write sends the batch again.
type hintPolicy struct {
	without int // number of batches to send without hints
	penalty int // the next wrong hint sets without to penalty + 1
}

const worstPenalty = 255

// allowed reports whether the next batch may have hints.
func (p *hintPolicy) allowed() bool { return p.without == 0 }

// wrong is called after a wrong hint. The batch is sent again as the first one without hints.
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
