package app

import (
	"crypto/sha256"

	"footfall/db"
)

// Share is a link that is not revoked.
type Share struct {
	App     *App
	Site    string // "": all of the app
	LastDay int32
}

// newShares holds those of apps that are there.
func newShares(rows []db.SharesOpenRow, apps map[string]*App) map[[sha256.Size]byte]Share {
	byNumber := make(map[int32]*App, len(apps))
	for _, a := range apps {
		byNumber[a.ID] = a
	}
	shares := make(map[[sha256.Size]byte]Share, len(rows))
	for _, row := range rows {
		if a := byNumber[row.AppID]; a != nil {
			s := Share{App: a, LastDay: row.LastDay}
			if row.Site != nil {
				s.Site = *row.Site
			}
			shares[[sha256.Size]byte(row.Hash)] = s
		}
	}
	return shares
}

// Share returns what a link shows; false if no valid link has this token.
func (r *Register) Share(token string) (s Share, found bool) {
	s, found = r.shares[HashOf(token)]
	return s, found
}
