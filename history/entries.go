package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// LogQuery selects commits of a space.
type LogQuery struct {
	// Document, if not "", selects the commits that write it, and of those the transactions that do.
	Document string
	// Path, with a document, selects the commits that change the value there.
	Path model.Path
	// Node, if not "", selects the commits of runs of this node, and those transactions.
	Node string
	// Before, if not 0, selects commits before this revision.
	Before uint64
	// Limit is how many commits to return, the newest ones: 1 to MaxEntries, 0 for DefaultEntries.
	Limit int
}

const (
	DefaultEntries = 20
	// MaxEntries bounds LogQuery.Limit.
	MaxEntries = 1000

	// maxScanned is how many commits are read for one query, and maxLookback how many of the commits before those that it returns are
	// read for the values that were there before.
	maxScanned  = 20_000
	maxLookback = 2_000
	// maxPageBytes bounds the commits of a page, as encoded. One commit may exceed it.
	maxPageBytes = 32 << 20
)

// Check returns an error if the space or the query is invalid, and fills in the limit.
func (q *LogQuery) Check(space string) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	if q.Document != "" {
		if err := model.CheckName("document", q.Document); err != nil {
			return err
		}
	}
	if q.Node != "" {
		if q.Document != "" {
			return errors.New("a document and a node: select one of them")
		}
		if err := model.CheckName("node", q.Node); err != nil {
			return err
		}
	}
	if q.Document == "" && len(q.Path) > 0 {
		return fmt.Errorf("path %s: name a document as well", q.Path)
	}
	if q.Limit == 0 {
		q.Limit = DefaultEntries
	}
	if q.Limit < 1 || q.Limit > MaxEntries {
		return fmt.Errorf("a limit of %d commits: use 1 to %d", q.Limit, MaxEntries)
	}
	return nil
}

// Boundary is why a page of a log has no older commits.
type Boundary string

const (
	// EndLimit: there may be older commits; ask for those before Page.Next.
	EndLimit Boundary = "limit"
	// EndScanned: the search has ended because so many commits were read, or they are so large; there may be others before Page.Next.
	EndScanned Boundary = "scanned"
	// EndFirst: the space's first commit was read.
	EndFirst Boundary = "first"
	// EndPurged: the log begins with Page.Next; older commits have been removed (--history keeps more).
	EndPurged Boundary = "purged"
)

// Page is a part of the log of a space.
type Page struct {
	// Entries are the commits, oldest first.
	Entries []*Entry `json:"entries"`
	// End is why there are no older ones, and Next the oldest revision that was read, 0 if there is none.
	End  Boundary `json:"end"`
	Next uint64   `json:"next,omitzero"`
	// Head is the revision of the last commit of the space when it was read.
	Head uint64 `json:"head"`

	narrator *narrator
}

// ReadEntries returns the newest commits that a query selects.
func ReadEntries(ctx context.Context, bus port.Client, space string, q LogQuery) (*Page, error) {
	if err := q.Check(space); err != nil {
		return nil, err
	}
	l, err := readLogOf(ctx, bus, space, 0)
	if err != nil {
		return nil, fmt.Errorf("read the log of space %s: %w", space, err)
	}
	p := &Page{Head: l.head}
	if err := p.read(l, &q); err != nil {
		return nil, fmt.Errorf("read the log of space %s: %w", space, err)
	}
	return p, nil
}

// read reads the commits that a query selects, and describes them.
func (p *Page) read(l *logReader, q *LogQuery) error {
	from := l.head
	if q.Before > 0 {
		from = min(from, q.Before-1)
	}
	var found []*logged
	scanned, bytes, oldest := 0, 0, from+1
	came, err := l.backward(from, func(e *logged) bool {
		scanned++
		if p.Next, oldest = e.seq, e.prev+1; q.selects(e.c) {
			found = append(found, e)
			bytes += e.size
		}
		return len(found) < q.Limit && scanned < maxScanned && bytes < maxPageBytes
	})
	if err != nil {
		return err
	}
	p.End = boundary(came, len(found) == q.Limit, oldest == 1)
	slices.Reverse(found)
	end := p.End
	from = oldest - 1
	if q.Node != "" && len(found) > 0 { // the commits between those of a node matter as well
		if from = found[0].prev; from > 0 {
			end = EndLimit
		}
	}
	if p.narrator, err = l.before(found, from, end); err != nil {
		return err
	}
	for i, e := range found {
		if i > 0 && q.Node != "" {
			if err := p.narrator.skip(l, found[i-1].seq, e); err != nil {
				return err
			}
		}
		if entry := p.narrator.describe(e); entry.only(q) {
			p.Entries = append(p.Entries, entry)
		}
	}
	return nil
}

// skip takes the commits between one that was described and the next.
func (t *narrator) skip(l *logReader, last uint64, next *logged) error {
	if next.prev <= last {
		return nil
	}
	return l.between(last, next.prev, func(e *logged) bool {
		t.take(e.c)
		return true
	})
}

func boundary(end ending, full, first bool) Boundary {
	switch {
	case end == whole || first:
		return EndFirst
	case end == cutOff:
		return EndPurged
	case full:
		return EndLimit
	}
	return EndScanned
}

// before reads backwards from a sequence for the values that the first of some commits have found. On the way, it may come to the beginning
// of the log.
func (l *logReader) before(found []*logged, from uint64, end Boundary) (*narrator, error) {
	missing := missingValues(l.space, found, end == EndFirst)
	var useful []*logged
	first := end == EndFirst
	if len(missing) > 0 && !first && end != EndPurged {
		scanned := 0
		came, err := l.backward(from, func(e *logged) bool {
			scanned++
			if covers(missing, e.c) {
				useful = append(useful, e)
			}
			first = e.prev == 0
			return len(missing) > 0 && scanned < maxLookback
		})
		if err != nil {
			return newNarrator(l.space, false), err
		}
		first = first || came == whole
	}
	t := newNarrator(l.space, first)
	for _, e := range slices.Backward(useful) {
		t.describe(e)
	}
	return t, nil
}

// missingValues returns the places whose former value commits do not contain, by document.
func missingValues(space string, found []*logged, first bool) map[string][]model.Path {
	t, missing := newNarrator(space, first), map[string][]model.Path{}
	for _, e := range found {
		for i := range e.c.Txs {
			for j := range e.c.Txs[i].Writes {
				w := &e.c.Txs[i].Writes[j]
				if _, known := t.doc(w.Doc).at(w.Path); !known {
					missing[w.Doc] = append(missing[w.Doc], w.Path)
				}
				t.doc(w.Doc).set(w)
			}
		}
	}
	return missing
}

// covers reports whether a commit writes one of the documents, and removes the places whose value it determines.
func covers(missing map[string][]model.Path, c *model.Commit) (useful bool) {
	for i := range c.Txs {
		for j := range c.Txs[i].Writes {
			w := &c.Txs[i].Writes[j]
			paths, wanted := missing[w.Doc]
			if !wanted {
				continue
			}
			useful = true
			paths = slices.DeleteFunc(paths, func(p model.Path) bool { return p.HasPrefix(w.Path) })
			if missing[w.Doc] = paths; len(paths) == 0 {
				delete(missing, w.Doc)
			}
		}
	}
	return useful
}

// selects reports whether a commit may have what the query selects.
func (q *LogQuery) selects(c *model.Commit) bool {
	switch {
	case q.Node != "":
		return slices.ContainsFunc(c.Txs, func(tx model.Tx) bool {
			kind, name := kindOf(&tx)
			return name == q.Node && kind.isRun()
		})
	case q.Document == "":
		return true
	}
	return writes(c, q.Document)
}

func writes(c *model.Commit, doc string) bool {
	return slices.ContainsFunc(c.Txs, func(tx model.Tx) bool {
		return slices.ContainsFunc(tx.Writes, func(w model.Write) bool { return w.Doc == doc })
	})
}

// only keeps what a query selects, steps and their changes; false if there is nothing.
func (e *Entry) only(q *LogQuery) bool {
	switch {
	case q.Node != "":
		e.Steps = slices.DeleteFunc(e.Steps, func(s Step) bool { return s.Name != q.Node || !s.Kind.isRun() })
		return len(e.Steps) > 0
	case q.Document == "":
		return true
	}
	for i := range e.Steps {
		s := &e.Steps[i]
		s.Changes = slices.DeleteFunc(s.Changes, func(c Place) bool { return c.Document != q.Document })
		if len(q.Path) > 0 {
			s.Changes = within(s.Changes, q.Path)
		}
	}
	e.Steps = slices.DeleteFunc(e.Steps, func(s Step) bool { return len(s.Changes) == 0 })
	return len(e.Steps) > 0
}

// within keeps what places have at a path or below it.
func within(places []Place, path model.Path) (out []Place) {
	for _, c := range places {
		at, err := model.ParsePath(c.Path)
		switch {
		case err != nil:
			continue // it was made by Path.String
		case path.HasPrefix(at):
			c.Path, c.From, c.To = path.String(), c.From.At(path[len(at):]), c.To.At(path[len(at):])
			if !c.Unknown && model.Equal(c.From, c.To) {
				continue
			}
		case !at.HasPrefix(path):
			continue
		}
		out = append(out, c)
	}
	return out
}

// Follow passes the commits of the space after the page that a query selects to each, until each returns false or ctx ends. Its error is
// then that of ctx.
func (p *Page) Follow(ctx context.Context, bus port.Client, q LogQuery, each func(*Entry) bool) error {
	return follow(ctx, bus, p.narrator.space, p.Head, func(e *logged) bool {
		entry := p.narrator.describe(e)
		return !entry.only(&q) || each(entry)
	})
}
