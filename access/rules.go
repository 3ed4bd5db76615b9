package access

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// Rules are those of a deployment at one moment. They do not change; nil is a deployment without rules.
type Rules struct {
	all []Rule // sorted by principal
}

// NewRules returns a set. There is one rule for each pattern of principals.
func NewRules(all []Rule) *Rules {
	s := &Rules{all: slices.Clone(all)}
	slices.SortFunc(s.all, func(a, b Rule) int { return cmp.Compare(a.Principal, b.Principal) })
	return s
}

// All returns the rules, sorted by principal.
func (s *Rules) All() []Rule {
	if s == nil {
		return nil
	}
	return slices.Clone(s.all)
}

// Closed reports whether there is a rule, so that what no rule covers is refused.
func (s *Rules) Closed() bool { return s != nil && len(s.all) > 0 }

// MaySend returns nil if a principal, "" for none, may send events of a stream to a space. Rules do not concern model.Operator.
func (s *Rules) MaySend(principal, space, stream string) error {
	if !s.Closed() || principal == model.Operator || s.covered(principal, space, stream, (*Rule).send) {
		return nil
	}
	return fmt.Errorf("%s may not send events of stream %s to space %s: no rule allows it (settle who-may)", nameOf(principal), stream, space)
}

// MayReport returns nil if a principal, "" for none, may send events of a stream on which ends of actions are reported. A rule has to name the
// stream; a pattern with a star in the place of the stream does not cover it, since such an event can report a payment that was not made.
func (s *Rules) MayReport(principal, space, stream string) error {
	named := func(r *Rule) (all []string) {
		for _, p := range r.Send {
			if strings.HasSuffix(p, "/"+stream) {
				all = append(all, p)
			}
		}
		return all
	}
	if !s.Closed() || principal == model.Operator || s.covered(principal, space, stream, named) {
		return nil
	}
	return fmt.Errorf("%s may not report how an action has ended with an event of stream %s to space %s: no rule names this stream (settle who-may)", nameOf(principal), stream, space)
}

// MayRead returns nil if a principal, "" for none, may read and watch a document.
func (s *Rules) MayRead(principal, space, document string) error {
	if !s.Closed() || principal == model.Operator || s.covered(principal, space, document, (*Rule).read) {
		return nil
	}
	return fmt.Errorf("%s may not read document %s of space %s: no rule allows it (settle who-may)", nameOf(principal), document, space)
}

// MayReadAll returns nil if a principal, "" for none, may read every document of a space.
func (s *Rules) MayReadAll(principal, space string) error {
	if !s.Closed() || principal == model.Operator {
		return nil
	}
	for i := range s.all {
		if r := &s.all[i]; r.concerns(principal) && coversAll(r.Read, space) {
			return nil
		}
	}
	return fmt.Errorf("%s may not ask about space %s: no rule allows it to read %s/* (settle who-may)", nameOf(principal), space, space)
}

// MayReadEverything returns nil if a principal, "" for none, may read every document of every space, those that will exist included.
func (s *Rules) MayReadEverything(principal string) error {
	if !s.Closed() || principal == model.Operator {
		return nil
	}
	for i := range s.all {
		if r := &s.all[i]; r.concerns(principal) && slices.Contains(r.Read, "*/*") {
			return nil
		}
	}
	return fmt.Errorf("%s may not see the whole deployment: no rule allows it to read */* (settle who-may); settle allow %s --read '*/*' would", nameOf(principal), cmp.Or(principal, "--no-principal"))
}

// SeesSpace reports whether a principal, "" for none, may read any document of a space.
func (s *Rules) SeesSpace(principal, space string) bool {
	if !s.Closed() || principal == model.Operator {
		return true
	}
	for i := range s.all {
		if r := &s.all[i]; r.concerns(principal) && slices.ContainsFunc(r.Read, func(p string) bool {
			of, _, _ := strings.Cut(p, "/")
			return matches(of, space)
		}) {
			return true
		}
	}
	return false
}

func (r *Rule) send() []string { return r.Send }
func (r *Rule) read() []string { return r.Read }

func (s *Rules) covered(principal, space, name string, of func(*Rule) []string) bool {
	for i := range s.all {
		if r := &s.all[i]; r.concerns(principal) && covers(of(r), space, name) {
			return true
		}
	}
	return false
}

func nameOf(principal string) string {
	if principal == "" {
		return "a client without a principal"
	}
	return "principal " + principal
}

// Senders returns the patterns of principals that may send events of a stream to a space, and Readers those that may read a document.
func (s *Rules) Senders(space, stream string) []string {
	return s.principals(space, stream, (*Rule).send)
}

// Readers is like Senders, for a document.
func (s *Rules) Readers(space, document string) []string {
	return s.principals(space, document, (*Rule).read)
}

func (s *Rules) principals(space, name string, of func(*Rule) []string) (all []string) {
	if s == nil {
		return nil
	}
	for i := range s.all {
		if covers(of(&s.all[i]), space, name) {
			all = append(all, s.all[i].Principal)
		}
	}
	return all
}
