package app

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"time"

	"footfall/db"
	"footfall/visit"
	"footfall/visit/tag"
)

// Limits of links between ids.
const (
	mostSteps      = 4 // maximum number of links from an id to its person
	mostPersonTags = 8
)

// Link links a visitor's id to a person, sets the person's tags, or both.
type Link struct {
	ID       string
	PersonID string  // the person's id; "": unchanged
	Tags     tag.Set // the person's new tags; nil: unchanged
}

// Person is the person linked to an id.
type Person struct {
	Person netip.Addr // the hash of the person's id, as visitors are stored; zero if the id has no link
	Tags   tag.Set
	Fault  error // why the id is invalid, or nil
}

// CheckPeople returns an error unless the app supports links between ids.
func (a *App) CheckPeople() error {
	switch {
	case a.Fault != nil:
		return visit.Errorf(visit.Unavailable, "", "this instance cannot identify visitors of app %s; report this to its operator",
			a.Name).Because(a.Fault)
	case a.Mode != ByID:
		return visit.Errorf(visit.Invalid, "app",
			"app %s distinguishes visitors by address: only apps with --visitor %s have ids that can be linked to people", a.Name, ByID)
	}
	return nil
}

// pendingLink is a validated link that is not stored yet.
type pendingLink struct {
	id, person netip.Addr // person equals id if the link only sets tags
	tags       []db.Tag
	hasTags    bool
}

// PutPeople writes links in order, and returns for each link why it is invalid, or "". wrong contains the links that the caller
// already found invalid: the index of each link, and the reason. Invalid links are not written. An error means that nothing was
// written or, if it is visit.Lost, that the outcome is unknown. In both cases all links can be sent again.
func (a *App) PutPeople(ctx context.Context, d *db.DB, secret Secret, now time.Time, links []Link, wrong map[int]string) ([]string, error) {
	faults, pending := make([]string, len(links)), make([]pendingLink, len(links))
	var ids []netip.Addr
	tags := map[db.Tag]int32{}
	for i := range links {
		if faults[i] = wrong[i]; faults[i] != "" {
			continue
		}
		l, err := a.readLink(secret, &links[i])
		if err != nil {
			faults[i] = err.Error()
			continue
		}
		if pending[i] = l; l.id != l.person {
			ids = append(ids, l.person)
		}
		ids = append(ids, l.id)
		for _, t := range l.tags {
			tags[t] = 0
		}
	}
	if len(ids) == 0 {
		return faults, nil
	}
	if err := a.makeTags(ctx, d, visit.DayOf(now, a.Zone), tags); err != nil {
		return nil, putError(err)
	}
	var results []string
	err := d.PutPeople(ctx, a.ID, ids, func(rows map[netip.Addr]*db.PersonRow, lead func() error) error {
		p := people{rows: rows, loadLeading: lead}
		results = slices.Clone(faults)
		for i := range pending {
			if results[i] != "" {
				continue
			}
			if err := p.put(&pending[i], tags); err != nil {
				results[i] = err.Error()
			}
		}
		return p.err
	})
	return results, putError(err)
}

// putError returns the error to report for links that were not written.
func putError(err error) error {
	switch db.FaultOf(err) {
	case db.FaultNone:
		return nil
	case db.FaultUnknown:
		return visit.Errorf(visit.Lost, "",
			"the connection to the database was lost, so this may or may not have been written: send it again").Because(err)
	case db.FaultData:
		switch {
		case errors.Is(err, db.ErrAppGone):
			return visit.Errorf(visit.NotFound, "app", "it has just been deleted").Because(err)
		case errors.Is(err, db.ErrAppChanged):
			return visit.Errorf(visit.Unavailable, "", "the app has just been changed; try again").Because(err)
		}
		return err
	}
	return visit.Unanswered(err)
}

// readLink validates a link, and hashes its ids.
func (a *App) readLink(secret Secret, link *Link) (l pendingLink, err error) {
	if err := checkVisitor("id", link.ID); err != nil {
		return l, err
	}
	l.id = a.hashOf(secret, ByID, link.ID)
	l.person, l.hasTags = l.id, link.Tags != nil
	switch {
	case link.PersonID != "":
		if err := checkVisitor("is", link.PersonID); err != nil {
			return l, err
		}
		if link.PersonID == link.ID {
			return l, visit.Errorf(visit.Invalid, "is", "it is the same as id: give the id of the person that this id belongs to")
		}
		l.person = a.hashOf(secret, ByID, link.PersonID)
	case !l.hasTags:
		return l, visit.Errorf(visit.Invalid, "is", "it is missing: give the id of the person that this id belongs to, or tags")
	}
	if len(link.Tags) > mostPersonTags {
		return l, visit.Errorf(visit.Invalid, "tags", "there are %d: a person can have at most %d", len(link.Tags), mostPersonTags)
	}
	if err := a.CheckTags(link.Tags); err != nil {
		return l, err
	}
	for _, t := range link.Tags {
		value := tag.Value(t.Value)
		if value == "" {
			return l, visit.Errorf(visit.Invalid, "tags", "%s has no value that can be counted: write a word or a number, or leave it out", t.Name)
		}
		l.tags = append(l.tags, db.Tag{Name: t.Name, Value: value})
	}
	return l, nil
}

// makeTags fills in the ids of tags and creates missing tags, up to the app's limit of new tags a day. Tags above the limit get
// the id of (other).
func (a *App) makeTags(ctx context.Context, d *db.DB, day int32, tags map[db.Tag]int32) error {
	asked := slices.Collect(maps.Keys(tags))
	for _, t := range asked {
		tags[db.Tag{Name: t.Name, Value: tag.Other}] = 0
	}
	all := slices.Collect(maps.Keys(tags))
	ids, err := d.FindTags(ctx, a.ID, all)
	if err != nil {
		return err
	}
	var missing db.NewTags
	for _, t := range all {
		switch {
		case ids[t] != 0:
		case t.Value == tag.Other:
			missing.Closed = append(missing.Closed, t)
		default:
			missing.Own = append(missing.Own, t)
		}
	}
	if err := d.MakeTags(ctx, a.ID, day, missing, tag.MostNewADay, ids); err != nil {
		return err
	}
	for t := range tags {
		if tags[t] = ids[t]; tags[t] == 0 {
			tags[t] = ids[db.Tag{Name: t.Name, Value: tag.Other}]
		}
	}
	return nil
}

// people contains the rows of some ids, and of all ids in the chains of links from these ids to their persons.
type people struct {
	rows        map[netip.Addr]*db.PersonRow
	loadLeading func() error // adds rows whose ids lead to the loaded ids, see db.DB.PutPeople
	leading     map[netip.Addr]map[netip.Addr]bool
	err         error // from loadLeading
}

func (p *people) row(id netip.Addr) *db.PersonRow {
	if p.rows[id] == nil {
		p.rows[id] = &db.PersonRow{Person: id}
	}
	return p.rows[id]
}

// chain returns the ids from an id to its person: the id first, the person last.
func (p *people) chain(id netip.Addr) []netip.Addr {
	chain := []netip.Addr{id}
	for is := p.row(id).Person; is != id; is = p.row(id).Person {
		id = is
		chain = append(chain, id)
	}
	return chain
}

func (p *people) put(l *pendingLink, tags map[db.Tag]int32) error {
	if l.person != l.id {
		if err := p.link(l.id, l.person); err != nil {
			return err
		}
	}
	if !l.hasTags {
		return nil
	}
	var ids []int32
	for _, t := range l.tags {
		ids = append(ids, tags[t])
	}
	slices.Sort(ids)
	chain := p.chain(l.id)
	if person := p.row(chain[len(chain)-1]); !slices.Equal(person.Tags, ids) {
		person.Tags, person.Changed = ids, true
	}
	return nil
}

// link links an id to a person. It replaces the id's earlier link.
func (p *people) link(id, person netip.Addr) error {
	row, chain := p.row(id), p.chain(person)
	switch {
	case row.Person == person:
		return nil
	case slices.Contains(chain, id):
		return visit.Errorf(visit.Invalid, "is",
			"this person is already linked to the id, so the links would form a circle: leave one of them out")
	case int(row.Height)+len(chain) > mostSteps && int(p.lowerHeight(id))+len(chain) > mostSteps:
		return visit.Errorf(visit.Invalid, "is",
			"the id would lead to the person over more than %d links: give the id of the person itself", mostSteps)
	}
	for i, at := range chain {
		if next, height := p.row(at), row.Height+int16(i)+1; next.Height < height { //nolint:gosec // a chain is short
			next.Height, next.Changed = height, true
		}
	}
	p.setLeading(id, row.Person, false)
	p.setLeading(id, person, true)
	row.Person, row.Tags, row.Changed = person, nil, true
	return nil
}

// setLeading records that an id is linked to a person, or no longer is. It does nothing until lowerHeight has loaded the links.
func (p *people) setLeading(id, person netip.Addr, isLinked bool) {
	switch {
	case p.leading == nil || id == person:
	case !isLinked:
		delete(p.leading[person], id)
	case p.leading[person] == nil:
		p.leading[person] = map[netip.Addr]bool{id: true}
	default:
		p.leading[person][id] = true
	}
}

// lowerHeight reduces an id's height to the length of the longest chain that now leads to the id, and returns the height. The
// first call reads all people of the app.
func (p *people) lowerHeight(id netip.Addr) int16 {
	if p.leading == nil {
		if p.err = p.loadLeading(); p.err != nil {
			return p.row(id).Height
		}
		p.leading = map[netip.Addr]map[netip.Addr]bool{}
		for id, row := range p.rows {
			p.setLeading(id, row.Person, true)
		}
	}
	row, height := p.row(id), int16(0)
	for from := range p.leading[id] {
		height = max(height, p.lowerHeight(from)+1)
	}
	if height < row.Height {
		row.Height, row.Lowered = height, true
	}
	return height
}

// FindPeople looks up the persons of ids. Each lookup extends the time for which the database keeps the links that it finds.
func (a *App) FindPeople(ctx context.Context, d *db.DB, secret Secret, ids []string) ([]Person, error) {
	found := make([]Person, len(ids))
	asked, places := make([]db.AppID, 0, len(ids)), make([]int, 0, len(ids))
	for i, id := range ids {
		if found[i].Fault = checkVisitor("id", id); found[i].Fault == nil {
			asked, places = append(asked, db.AppID{App: a.ID, ID: a.hashOf(secret, ByID, id)}), append(places, i)
		}
	}
	ways, err := d.LookUpPeople(ctx, asked)
	if err != nil {
		return nil, visit.Unanswered(err)
	}
	for i, way := range ways {
		if len(way) > 0 {
			at := places[i]
			found[at].Person, found[at].Tags = way.Person(asked[i].ID), tag.ParseSet(way.Tags())
		}
	}
	return found, nil
}
