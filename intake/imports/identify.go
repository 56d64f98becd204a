package imports

import (
	"bytes"
	"context"

	"footfall/visit"
)

// identify finds out which log a file is, beyond its bytes: a beginning may be that of several logs,
// of files of this run, or of logs of several servers. false: nothing of it is to be counted.
func (r *run) identify(ctx context.Context, s *source) (goOn bool, err error) {
	switch {
	case s.few && s.isNew():
		s.refuse("it begins as %s, of which too few lines are counted to tell whether the two are one log: nothing more of it is counted. "+
			"If they are, import it under that name; if not, add --another, or say with --server of which server each is", nameOf(s.is))
		return false, nil
	case s.is != nil && r.isOfAnother(s.is):
		s.refuse("it is %s: it was imported with --server %s, and belongs to no other", nameOf(s.is), s.is.Server)
		return false, nil
	}
	if goOn, err := r.compareTwins(s); err != nil || !goOn {
		return false, err
	}
	for _, short := range s.shorter {
		if s.is == nil && short.start.at == 0 {
			begun := short.log
			r.beginWith(s, &begun)
			return true, r.readOn(ctx, s)
		}
	}
	return true, nil
}

// isOfAnother reports whether a log is of another server than the one that is imported.
func (r *run) isOfAnother(l *Log) bool {
	return r.Server != "" && l.Server != "" && r.Server != l.Server
}

// hasNameOf reports whether a file is the one that had a log last.
func (s *source) hasNameOf(l *Log) bool {
	inode := s.file.inode()
	return s.file.name == l.File || inode != "" && inode == l.Inode
}

// ours returns the source of this run that counts a log; nil: there is none.
func (r *run) ours(id int64) *source {
	for _, s := range r.sources {
		if s.position != nil && s.log.ID == id {
			return s
		}
	}
	return nil
}

// compareTwins compares a file with the others of this run that begin as it does; false: nothing of
// it is to be counted.
func (r *run) compareTwins(s *source) (goOn bool, err error) {
	for _, other := range r.twins[s.beginning] {
		if other == s || other.position == nil {
			continue
		}
		short, long := s, other
		if s.end.at > other.end.at {
			short, long = other, s
		}
		sum := r.app.hashes.quick()
		if err := long.file.sumTo(sum, short.end.at); err != nil {
			return false, visit.Errorf(visit.Invalid, "", "%s: %s", long.file.name, long.file.readProblem(err))
		}
		switch same := bytes.Equal(sum.Sum(nil), short.end.sum.Sum(nil)); {
		case same && short == s:
			s.isIn(long)
			return false, nil
		case same:
			s.shorter = append(s.shorter, short)
		case s.is != nil && s.is.ID == other.log.ID:
			for one, two := range map[*source]*source{s: other, other: s} {
				one.refuse("it and %s begin as the same log, and then differ: nothing more of either is counted. Import the one that goes on",
					two.file.name)
			}
			return false, nil
		}
	}
	return true, nil
}

// isIn lets go of a file with which a longer one begins that is read.
func (s *source) isIn(long *source) {
	s.note("it is the same log as %s, and is read once", long.file.name)
	s.position = nil
}
