package record

// trust decides whether a lane's batches go by the hints of the filter. A wrong hint costs a batch a second time, and where several
// instances count for the same sites, nearly every batch may meet a visitor whom another instance saw first. So after a wrong hint
// some batches go without, more each time, and fewer again as hints prove right. (Those batches teach the filter
// whom the others have seen.)
type trust struct {
	without int // how many batches still go without hints
	penalty int // how many go without after the next wrong hint; less one
}

const worstPenalty = 255

// hintsAllowed reports whether the next batch may have hints.
func (t *trust) hintsAllowed() bool { return t.without == 0 }

// lose is told of a wrong hint. The batch itself is the first to go without.
func (t *trust) lose() {
	t.without = 1 + t.penalty
	t.penalty = min(2*t.penalty+1, worstPenalty)
}

// gain is told of a batch that has committed.
func (t *trust) gain() {
	if t.without > 0 {
		t.without--
	} else {
		t.penalty /= 2
	}
}
