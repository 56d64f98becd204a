package imports

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"footfall/db"
	"footfall/visit"
)

// claim finds out which logs the files are, and claims what is new in them. What it writes of a log
// it writes before anything of that is counted.
func (r *run) claim(ctx context.Context, k *book) error {
	for _, s := range r.sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.idle = true // until it is known to be of use
		if err := r.look(ctx, k, s); err != nil {
			return err
		}
	}
	if err := r.checkHosts(); err != nil {
		return err
	}
	return r.checkDays(ctx)
}

// refuse says why nothing of a file is counted, now or ever.
func (r *run) refuse(s *source, format string, args ...any) {
	s.hopeless = true
	r.summary.problem(s.file.name, format, args...)
}

// look reads a file once, finds out which log it is, and claims what is new in it.
func (r *run) look(ctx context.Context, k *book, s *source) (err error) {
	s.log = db.LogsListRow{}
	s.scanner, err = newScanner(s.file, r.Rules.Format, &r.progress.Looked, cmp.Or(r.stretchLines, stretchLines), k.logs)
	if err != nil {
		r.summary.problem(s.file.name, "%s", s.file.readProblem(err))
		return nil
	}
	s.scanner.run()
	if fault := s.scanner.fault; fault != nil && s.file.packed != plain && !errors.Is(fault, io.ErrUnexpectedEOF) {
		// What was unpacked before that was noticed may be wrong, too.
		r.summary.problem(s.file.name, "%s: nothing of it is counted", s.file.readProblem(fault))
		return nil
	} else if fault != nil {
		r.summary.problem(s.file.name, "%s after line %d: what comes before is read", s.file.readProblem(fault), s.scanner.number)
	} else if rest := s.scanner.rest(); rest > 0 {
		r.summary.note(s.file.name, "its last line, of %d bytes, has no end: it is read when it has one", rest)
	} else if s.scanner.number == 0 {
		r.summary.note(s.file.name, "it is empty")
	}
	if s.scanner.number == 0 {
		return nil
	}
	return r.take(ctx, k, s)
}

// take claims what a scanner has found.
func (r *run) take(ctx context.Context, k *book, s *source) error {
	overlaps, err := k.overlapsOf(ctx, s.scanner)
	if err != nil {
		return err
	}
	is := s.scanner.is
	if is == nil {
		is = k.longerLog(s.scanner, overlaps)
	}
	if is == nil {
		is = &db.LogsListRow{Rules: r.Rules.String()}
	}
	if other := r.ours(is.ID); other != nil && other != s {
		if s.scanner.place > is.Claimed {
			r.refuse(s, "it is the same log as %s, and goes on behind it: import it again, by itself", other.file.name)
		} else {
			s.hopeless = true
			r.summary.note(s.file.name, "it is the same log as %s, and is read once", other.file.name)
		}
		return nil
	}
	if is.Rules != r.Rules.String() {
		r.refuse(s, "it was imported %s: nothing more of it counts by other rules", rulesInWords(is.Rules))
		return nil
	}
	s.log = *is
	if s.scanner.place < is.Next {
		r.summary.Before += s.scanner.number
		r.summary.note(s.file.name, "of the log that it begins as, %d bytes were read, and it has %d: nothing in it is new", is.Next, s.scanner.place)
		return nil
	}
	if s.scanner.place > is.Claimed {
		skips, why, err := r.repeated(ctx, s, overlaps)
		if err != nil {
			return err
		}
		if why != "" {
			r.refuse(s, "%s", why)
			return nil
		}
		s.log.Skips = append(slices.Clip(s.log.Skips), skips...)
		s.log.Claimed, s.log.Lines, s.log.Hash = s.scanner.place, s.scanner.number, s.scanner.hash()
	}
	s.idle = false
	s.until, s.log.File = s.scanner.place, s.file.name
	if err := k.claim(ctx, s); err != nil {
		return err
	}
	s.position = r.positionOf(&s.log)
	s.number = s.scanner.beginningAt(s.log.Next).before
	if !r.following {
		r.summary.Before += s.number
	}
	r.progress.Total.Add(max(0, s.until-s.log.Next))
	return nil
}

// ours returns the source of this run that is a log; nil: there is none.
func (r *run) ours(id int64) *source {
	for _, s := range r.sources {
		if id != 0 && s.log.ID == id && s.position != nil {
			return s
		}
	}
	return nil
}

func rulesInWords(rules string) string {
	if rules == "" {
		return "without any rules of its own"
	}
	return "with " + rules
}

// checkHosts refuses lines that name no host, where no site is given for them.
func (r *run) checkHosts() error {
	if r.Rules.Site != "" {
		return nil
	}
	for _, s := range r.sources {
		if s.idle {
			continue
		}
		if format := s.scanner.beginningAt(s.log.Next).hostless; format != "" {
			return visit.Errorf(visit.Invalid, "site", "%s: its lines (%s) name no host: say with --site which site they are of", s.file.name, format)
		}
	}
	return nil
}

// checkDays refuses logs that are older than what the app keeps.
func (r *run) checkDays(ctx context.Context) error {
	first, err := r.counting.FirstDay(ctx)
	if err != nil {
		return err
	}
	if r.Rules.From >= first {
		return nil
	}
	for _, s := range r.sources {
		if s.idle {
			continue
		}
		oldest := s.scanner.beginningAt(s.log.Next).first
		if oldest.IsZero() {
			continue
		}
		if !s.scanner.last.IsZero() && s.scanner.last.Before(oldest) {
			oldest = s.scanner.last
		}
		if day := visit.DayOf(oldest, r.counting.App().Zone); day < first {
			return visit.Errorf(visit.Invalid, "from", "%s has visits of %s, and of app %s the first day that can still be counted is %s: "+
				"leave out what is older with --from %d, or import all of it into an app of its own (footfall app add …-before --retain-days 0 …)",
				s.file.name, visit.DayText(day), r.App, visit.DayText(first), first)
		}
	}
	return nil
}

// skips reports whether another log had claimed a line before, by its number from 0.
func (s *source) skips(line int64) bool {
	for i := 0; i < len(s.log.Skips); i += 2 {
		if s.log.Skips[i] <= line && line < s.log.Skips[i+1] {
			return true
		}
	}
	return false
}
