package app

import (
	"footfall/db"
	"footfall/visit"
)

// offsets are numbers that were imported from other counters, in the version epoch. They are immutable.
type offsets struct {
	epoch  string                            // the version of the offsets; "": not read yet
	ofApps map[int32]map[string]visit.Counts // by the app's id and the target; the field Rank is not used
}

// newOffsets returns the cached offsets if they are still current, otherwise the offsets in access.
func newOffsets(access *db.Access, cached *offsets) *offsets {
	if access.OffsetsEpoch == cached.epoch {
		return cached
	}
	read := &offsets{epoch: access.OffsetsEpoch, ofApps: map[int32]map[string]visit.Counts{}}
	for _, o := range access.Offsets {
		if read.ofApps[o.AppID] == nil {
			read.ofApps[o.AppID] = map[string]visit.Counts{}
		}
		read.ofApps[o.AppID][o.Uri] = visit.Counts{PV: o.Pv, UV: o.Uv, Hot: o.Hot}
	}
	return read
}

// AddOffsets adds the app's offsets (imported numbers) to an answer about a target. The sums are only shown to callers. They are
// never stored or compared.
func (a *App) AddOffsets(t visit.Target, answer visit.Answer) visit.Answer {
	if len(a.offsets) == 0 || answer.Later {
		return answer
	}
	if answer.Other.Page != "" {
		t = answer.Other
	}
	answer.Site, answer.Page = a.withOffset(t.Site, answer.Site), a.withOffset(t.Page, answer.Page)
	return answer
}

func (a *App) withOffset(target string, n visit.Counts) visit.Counts {
	offset, is := a.offsets[target]
	if !is {
		return n
	}
	n.PV, n.UV, n.Hot = n.PV+offset.PV, n.UV+offset.UV, n.Hot+offset.Hot
	if n.Rank > 0 {
		n.Rank += offset.UV
	}
	return n
}
