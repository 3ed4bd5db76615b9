// Package docversions counts in which versions documents are stored (see package upgrade): what a migration has left.
package docversions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// Documents names documents of one form.
type Documents struct {
	// Name is the name of a document, or a pattern of names, such as order-* for the elements of a collection.
	Name string
	// Rows is set if each row has a version of its own.
	Rows bool
}

// rowsMark is behind the name of documents whose rows have versions.
const rowsMark = "/*"

// Parse is the inverse of String.
func Parse(text string) (d Documents, err error) {
	d.Name, d.Rows = strings.CutSuffix(text, rowsMark)
	if model.IsPattern(d.Name) {
		return d, model.CheckPattern("documents", d.Name)
	}
	return d, model.CheckName("document", d.Name)
}

func (d Documents) String() string {
	if d.Rows {
		return d.Name + rowsMark
	}
	return d.Name
}

// Question is what Read reads.
type Question struct {
	// Present has the present version of documents. If it is empty, Read counts all documents that are stored in a version above 1
	// somewhere, and the newest of these is the present one.
	Present map[Documents]int
	// Listed is how many spaces with older documents are listed for each Documents.
	Listed int
}

// Report is what a migration has left.
type Report struct {
	// Spaces is how many spaces were read. Errors are those about spaces that could not be read, and are not counted.
	Spaces int
	Errors []error
	Counts []Count // in the order of their names
}

// Count has the numbers of some documents, or of their rows.
type Count struct {
	Documents Documents
	// Present is their present version, and Stored how many there are of each version.
	Present int
	Stored  map[int]int
	// Older is how many are older than Present, Spaces in how many spaces they are, and In the first of these by name.
	Older, Spaces int
	In            []Space
}

// Space is a space with older documents.
type Space struct {
	Name  string
	Older int
	// Oldest is the oldest version among them.
	Oldest int
}

// maxCounts bounds the versions of documents that are counted, and maxErrors the spaces that need not be readable.
const (
	maxCounts = 10_000
	maxErrors = 20
	atATime   = 16 // spaces that are read
)

// ErrTooMany is returned if the documents that are to be counted have too many names and versions.
var ErrTooMany = fmt.Errorf("there are more than %d names and versions of documents; name those that have versions", maxCounts)

// Read counts the documents of spaces. contents returns a space, and is called for several at a time. Each space counts as it is when it is read.
func Read(ctx context.Context, spaces []string, contents func(ctx context.Context, space string) (*history.Contents, error), q Question) (*Report, error) {
	r := &reading{q: q, of: map[Documents]*tally{}}
	for d := range q.Present { // any order: each is on its own
		r.of[d] = newTally()
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atATime)
	for _, space := range spaces {
		if within.Err() != nil {
			break
		}
		group.Go(func() error { // ends with ctx at the latest
			c, err := contents(within, space)
			if within.Err() != nil {
				return within.Err()
			}
			return r.add(space, c, err)
		})
	}
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, err
	}
	return r.report(), nil
}

// reading counts while spaces are read.
type reading struct {
	q Question

	mu   sync.Mutex
	is   Report
	of   map[Documents]*tally
	size int // of all tallies together
}

// tally counts documents.
type tally struct {
	stored map[int]int // by version
	// oldest counts the spaces by the oldest version in them, and first has the first of these by name.
	oldest map[int]int
	first  map[int][]counted
}

func newTally() *tally {
	return &tally{stored: map[int]int{}, oldest: map[int]int{}, first: map[int][]counted{}}
}

// counted are the documents of a space.
type counted struct {
	space  string
	stored []versions
}

type versions struct{ version, documents int }

// add adds what was read of a space.
func (r *reading) add(space string, c *history.Contents, err error) error {
	var found map[Documents]map[int]int
	if err == nil {
		found = r.q.count(c)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.is.Errors = append(r.is.Errors, err); len(r.is.Errors) > maxErrors {
			return fmt.Errorf("more than %d spaces cannot be read: %w", maxErrors, r.is.Errors[0])
		}
		return nil
	}
	r.is.Spaces++
	for d, stored := range found { // any order: each is on its own
		t := r.of[d]
		if t == nil {
			t = newTally()
			r.of[d] = t
		}
		before := len(t.stored)
		t.add(space, stored, r.q.Listed)
		r.size += len(t.stored) - before
	}
	if r.size > maxCounts {
		return ErrTooMany
	}
	return nil
}

func (t *tally) add(space string, stored map[int]int, listed int) {
	of := counted{space: space}
	for _, v := range slices.Sorted(maps.Keys(stored)) {
		t.stored[v] += stored[v]
		of.stored = append(of.stored, versions{v, stored[v]})
	}
	oldest := of.stored[0].version
	t.oldest[oldest]++
	t.first[oldest] = firstOf(append(t.first[oldest], of), listed)
}

// firstOf sorts spaces by name, and returns the first ones.
func firstOf(all []counted, most int) []counted {
	slices.SortFunc(all, func(a, b counted) int { return cmp.Compare(a.space, b.space) })
	return all[:min(len(all), most)]
}

// count counts the documents of a space that the question is about, by version.
func (q *Question) count(c *history.Contents) map[Documents]map[int]int {
	found := map[Documents]map[int]int{}
	for _, id := range c.DocIDs() {
		v := c.Doc(id).Value
		if v.IsLink() || runs.IsInternal(id) {
			continue
		}
		for _, d := range q.of(id, v) {
			if found[d] == nil {
				found[d] = map[int]int{}
			}
			if !d.Rows {
				found[d][model.VersionOf(v)]++
				continue
			}
			for key, row := range v.All() {
				if key != model.VersionKey && !row.IsLink() {
					found[d][model.VersionOf(row)]++
				}
			}
			if len(found[d]) == 0 {
				delete(found, d)
			}
		}
	}
	return found
}

// of returns what a document counts for.
func (q *Question) of(id string, v model.Value) (of []Documents) {
	if len(q.Present) == 0 {
		of = append(of, Documents{id, false})
		if v.Kind() == model.KindObject && model.VersionOf(v) == 1 {
			of = append(of, Documents{id, true}) // its members may be rows
		}
		return of
	}
	for d := range q.Present { // any order: each is counted on its own
		if model.MatchesPattern(d.Name, id) {
			of = append(of, d)
		}
	}
	return of
}

func (r *reading) report() *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	for d, t := range r.of { // any order: sorted below
		c := Count{Documents: d, Present: r.q.Present[d], Stored: t.stored}
		if c.Present == 0 {
			c.Present = slices.Max(slices.Collect(maps.Keys(t.stored)))
		}
		if c.Present == 1 {
			continue // documents that have no versions, as far as is known
		}
		t.older(&c, r.q.Listed)
		r.is.Counts = append(r.is.Counts, c)
	}
	slices.SortFunc(r.is.Counts, func(a, b Count) int { return cmp.Compare(a.Documents.String(), b.Documents.String()) })
	return &r.is
}

// older fills in what is older than the present version.
func (t *tally) older(c *Count, listed int) {
	var first []counted
	for v, n := range t.stored { // any order: a sum
		if v < c.Present {
			c.Older += n
		}
	}
	for v, n := range t.oldest { // any order: a sum, and sorted below
		if v < c.Present {
			c.Spaces += n
			first = append(first, t.first[v]...)
		}
	}
	for _, of := range firstOf(first, listed) {
		s := Space{Name: of.space, Oldest: of.stored[0].version}
		for _, v := range of.stored {
			if v.version < c.Present {
				s.Older += v.documents
			}
		}
		c.In = append(c.In, s)
	}
}
