package app

import (
	"footfall/db"
	"footfall/visit"
)

// offsets are numbers of targets from elsewhere, as they stood at one epoch; they never change.
type offsets struct {
	epoch  string                            // "": nothing was read yet
	ofApps map[int32]map[string]visit.Counts // by the app's number and the target; rank is not used
}

// newOffsets are those that were read, or the cached ones, if these still hold.
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

// Shown is an answer about a target as callers get it: what was counted, with the app's offsets.
// Nothing that is kept or compared is made of it.
func (a *App) Shown(t visit.Target, answer visit.Answer) visit.Answer {
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
	before, is := a.offsets[target]
	if !is {
		return n
	}
	n.PV, n.UV, n.Hot = n.PV+before.PV, n.UV+before.UV, n.Hot+before.Hot
	if n.Rank > 0 {
		n.Rank += before.UV
	}
	return n
}
