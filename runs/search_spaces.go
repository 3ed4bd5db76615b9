package runs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/settlehq/settle/model"
)

// Bounds of a search over spaces.
const (
	// MaxSearched is the largest number of spaces of a search, and maxPatterns that of its patterns.
	MaxSearched = 10_000
	maxPatterns = 100
)

var states = []State{Running, Done, Failed, Cancelled}

// Search finds runs in several spaces.
type Search struct {
	Filter
	// Spaces are names of spaces, and patterns of them, such as "order-*"; none selects all spaces.
	Spaces []string
}

// Found is a run that a search has found.
type Found struct {
	Space string
	*Status
}

// FoundPage are runs that a search has found, the one started last first. Searched is the number of spaces.
type FoundPage struct {
	Runs     []Found
	Searched int
	// Next is for the page after this one, "" if there is none.
	Next string
}

// Check returns an error for a search that is not valid.
func (s *Search) Check() error {
	if s.Limit < 0 || s.Limit > MaxFound {
		return fmt.Errorf("%w: a page has from 1 to %d runs, not %d", ErrInvalid, MaxFound, s.Limit)
	}
	if s.State != "" && !slices.Contains(states, s.State) {
		return fmt.Errorf("%w: there is no state %.50q; a run is %s", ErrInvalid, s.State, states)
	}
	if len(s.Spaces) > maxPatterns {
		return fmt.Errorf("%w: %d patterns of spaces; at most %d are possible", ErrInvalid, len(s.Spaces), maxPatterns)
	}
	for _, pattern := range s.Spaces {
		if err := model.CheckName("pattern", strings.ReplaceAll(pattern, "*", "x")); err != nil {
			return fmt.Errorf("%w: the pattern of spaces %.100q: write a name, with * for any characters, such as order-*", ErrInvalid, pattern)
		}
	}
	_, _, err := s.place()
	return err
}

// Select returns those of the spaces that the search goes through, sorted.
func (s *Search) Select(spaces []string) ([]string, error) {
	list := slices.Clone(spaces)
	if len(s.Spaces) > 0 {
		list = slices.DeleteFunc(list, func(space string) bool { return !s.covers(space) })
	}
	if len(list) > MaxSearched {
		return nil, fmt.Errorf("%w: the search would go through %d spaces; at most %d are possible: name some of them, by patterns such as order-2026-*", ErrInvalid, len(list), MaxSearched)
	}
	slices.Sort(list)
	return list, nil
}

func (s *Search) covers(space string) bool {
	return slices.ContainsFunc(s.Spaces, func(pattern string) bool {
		is, err := path.Match(pattern, space)
		return is && err == nil
	})
}

// In returns the filter of the search for one of its spaces: as many runs as the page may have, behind the page before.
func (s *Search) In(space string) (*Filter, error) {
	in, last, err := s.place()
	if err != nil {
		return nil, err
	}
	f := s.Filter
	f.After, f.Limit = "", cmp.Or(s.Limit, defaultFound)
	before := f.Before
	switch {
	case s.After == "":
	case space == in:
		f.After = placeOf(last)
	case space < in: // those that were started at the same time were on the page before
		before = last.Started
	default:
		before = last.Started + 1
	}
	if f.Before == 0 || before < f.Before {
		f.Before = before
	}
	return &f, nil
}

// Page makes a page of what the spaces have. found is changed.
func (s *Search) Page(found map[string]*Page) *FoundPage {
	p := &FoundPage{Searched: len(found)}
	more := false
	for space, own := range found { // any order: sorted below
		more = more || own.Next != ""
		for _, run := range own.Runs {
			p.Runs = append(p.Runs, Found{space, run})
		}
	}
	slices.SortFunc(p.Runs, func(a, b Found) int {
		return cmp.Or(cmp.Compare(b.Started, a.Started), cmp.Compare(a.Space, b.Space), cmp.Compare(a.ID, b.ID))
	})
	if limit := cmp.Or(s.Limit, defaultFound); len(p.Runs) > limit {
		p.Runs, more = p.Runs[:limit], true
	}
	if more && len(p.Runs) > 0 {
		last := p.Runs[len(p.Runs)-1]
		p.Next = last.Space + "." + placeOf(last.Status)
	}
	return p
}

// place parses the end of the page before.
func (s *Search) place() (space string, last *Status, err error) {
	if s.After == "" {
		return "", nil, nil
	}
	space, rest, _ := strings.Cut(s.After, ".")
	last, err = parsePlace(rest)
	if err != nil || rest == "" || model.CheckName("space", space) != nil {
		return "", nil, fmt.Errorf("%w: %.200q is not the end of a page of a search; take that of the page before", ErrInvalid, s.After)
	}
	return space, last, nil
}

// placeOf returns the place of a run on a page.
func placeOf(s *Status) string { return strconv.FormatInt(s.Started, 10) + "." + s.ID }
