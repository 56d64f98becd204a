package bench

// judgeSent compares what the tables hold with the truth of all that wrk sent. When its time is up it hangs up, with a visit on
// the way on each connection at most: these were counted, or not, and nobody was told. So as many may be missing. What was
// answered is not known: ranks are wrong here that nobody holds, or that are not one visitor's alone.
func judgeSent(sent []arrival, answered, connections int64, s standing) verdict {
	v := verdict{unproven: s.unproven}
	truth := truthOf(sent).byURI()
	all := int64(len(sent))
	lost := max(min(all-s.sums[site].hot, all-answered, connections), 0)
	var missing sums // over all targets
	for uri, want := range truth {
		got := s.sums[uri]
		missing.hot += max(want.hot-got.hot, 0)
		missing.pv += max(want.pv-got.pv, 0)
		missing.uv += max(want.uv-got.uv, 0)
	}
	for uri, got := range s.sums {
		want := truth[uri]
		v.Hot += max(got.hot-want.hot, 0)
		v.PV += max(got.pv-want.pv, 0)
		v.UV += max(got.uv-want.uv, 0)
		wrong := misplaced(s.ranks[uri], got.uv)
		unheld := got.uv - (int64(len(s.ranks[uri])) - wrong)
		v.Ranks += wrong + unheld
	}
	v.Hot += max(missing.hot-2*lost, 0) // a lost visit is missing at its page and at the site
	v.PV += max(missing.pv-2*lost, 0)
	v.UV += max(missing.uv-2*lost, 0)
	return v
}
