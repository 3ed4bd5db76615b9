package runs

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/workflow"
)

// Reader reads a run again and again, for what follows it. It makes the run again from its documents once, and applies each later step once, so
// that a further reading costs what has happened since, and not what the run has done so far. It is not safe for concurrent use.
type Reader struct {
	id   string
	read func(doc string) (model.Value, error)
	// Ahead, if not nil, is called with documents that will be read soon, if they exist.
	Ahead func(docs []string)

	// graph and program are those of version; opaque is set if there is no program, because its code calls functions of a worker.
	version string
	graph   *workflow.Graph
	program *workflow.Program
	opaque  bool

	// d is the run as of the last reading, nil if it is not known. again counts how often it was rebuilt.
	d     *driver
	again int
	// attempts notes the attempts of d, nil if they are not to be noted, or cannot be.
	timed    bool
	attempts *timelineBuilder
	history  steps
}

// steps are the steps of a run that were read.
type steps struct {
	events []Event
	page   int // of the last one
	of     int // Reader.again
}

// NewReader returns a reader of a run. read returns a document of its space; what it returns for different documents may be of different moments, as long as
// none is older than the document of the run.
func NewReader(id string, read func(doc string) (model.Value, error)) *Reader {
	return &Reader{id: id, read: read}
}

// ReadsOf returns a function that reports whether a Reader of a run may read a document.
func ReadsOf(id string) func(doc string) bool {
	pages := strings.TrimSuffix(pageDoc(id, 0), "0")
	return func(doc string) bool {
		switch doc {
		case Doc(id), childrenDoc(id), snapshotDoc(id):
			return true
		}
		return strings.HasPrefix(doc, pages) || strings.HasPrefix(doc, graphDoc(""))
	}
}

// Inspect returns the status of a run with what it waits for. It makes the run again from its documents; an error
// may mean that they have changed between two reads.
func Inspect(id string, read func(doc string) (model.Value, error)) (*Status, error) {
	return NewReader(id, read).Status()
}

// Status returns the status of the run with what it waits for. An error may mean that its documents have changed between two reads.
func (r *Reader) Status() (*Status, error) {
	doc, s, err := r.begin()
	if err != nil {
		return s, err
	}
	children, err := r.read(childrenDoc(r.id))
	if err != nil {
		return s, err
	}
	s.Children = childrenOf(children)
	if err := r.prepare(s); err != nil || s.State != Running {
		return s, err
	}
	if r.opaque {
		s.Opaque = true
		s.Waiting, s.Timers = readWaits(doc)
		return s, nil
	}
	d, err := r.current(doc)
	if err != nil {
		return s, err
	}
	s.Waiting, s.Timers, s.Queued, s.Marks = d.run.Open(), maps.Clone(d.timers), map[string]bool{}, d.run.Marks()
	s.Positions, s.Passed, s.pending = d.run.Positions(), d.run.Passes(), maps.Clone(d.pending)
	for i := range d.queue {
		s.Queued[d.queue[i].ID] = true
	}
	return s, nil
}

// begin reads the document of the run.
func (r *Reader) begin() (doc model.Value, s *Status, err error) {
	if doc, err = r.read(Doc(r.id)); err != nil {
		return doc, nil, err
	}
	s, err = StatusOf(r.id, doc)
	return doc, s, err
}

// prepare reads the graph of the run, unless it is known.
func (r *Reader) prepare(s *Status) error {
	if r.graph == nil || r.version != s.Version {
		r.d, r.version, r.graph, r.program, r.opaque = nil, s.Version, nil, nil, false
		if err := s.readGraph(r.read); err != nil || s.Graph == nil {
			return err
		}
		p, err := workflow.Prepare(s.Graph)
		r.graph, r.program, r.opaque = s.Graph, p, err != nil
	}
	s.Graph = r.graph
	return nil
}

// current returns the run as its document has it.
func (r *Reader) current(doc model.Value) (*driver, error) {
	at, err := headOf(doc)
	if err != nil {
		return nil, err
	}
	var failed error
	l := log{id: r.id, doc: doc, read: func(name string) model.Value {
		v, err := r.read(name)
		failed = errors.Join(failed, err)
		return v
	}}
	d := r.d
	r.d = nil
	if d != nil && d.n <= at.n {
		if err := r.advance(&l, d, at); err == nil {
			r.d = d
			return d, nil
		}
		failed = nil // it has gone on from an earlier step, perhaps
	}
	r.again++
	l.ahead = r.Ahead
	d, err = r.base(&l, at)
	if err == nil {
		err = r.advance(&l, d, at)
	}
	if err = errors.Join(failed, err); err != nil {
		return nil, err
	}
	r.d = d
	return d, nil
}

// base returns the run from which it is rebuilt: before its first step, if attempts are noted and that is possible, or as its last snapshot has it.
func (r *Reader) base(l *log, at head) (d *driver, err error) {
	if r.timed && l.oldest() == 0 {
		d = newDriver(r.program, jsontext.Value(l.doc.Get("args").String()))
		d.chain = chainOf(l.doc)
	} else if d, err = l.base(r.program, at.n); err != nil {
		return nil, err
	}
	r.attempts = nil
	if r.timed {
		r.attempts = newTimeline(d, r.graph)
	}
	return d, nil
}

// advance applies the steps of the run that are not applied yet.
func (r *Reader) advance(l *log, d *driver, at head) error {
	for d.n < at.n {
		rec, text, err := l.next(d)
		if err != nil {
			return err
		}
		step, err := d.apply(&rec, nil)
		if err != nil {
			return fmt.Errorf("record %d: %w", d.n, err)
		}
		d.wrote(text)
		if r.attempts != nil {
			r.attempts.step(d, &rec, &step)
		}
	}
	if d.hash != at.hash {
		return errors.New("its records are not those that its position stands for")
	}
	return nil
}

// ReadTimeline returns the attempts of a run, with their arguments and results, as far as its steps are kept. It makes the run again from
// its documents; an error may mean that they have changed between two reads.
func ReadTimeline(id string, read func(doc string) (model.Value, error)) (*Timeline, error) {
	return NewReader(id, read).Timeline()
}

// Timeline returns the attempts of the run, with their arguments and results, as far as its steps are kept. What it returns is valid until the next
// call of a method. Call it first: a reader whose Timeline was not called makes the run again only from its last snapshot.
func (r *Reader) Timeline() (*Timeline, error) {
	doc, s, err := r.begin()
	if err != nil {
		return nil, err
	}
	gone := &Timeline{From: s.Steps}
	if s.State != Running && doc.Get(inPages).IsAbsent() {
		return gone, nil
	}
	switch err := r.prepare(s); {
	case err != nil:
		return nil, err
	case s.Graph == nil:
		return gone, nil
	case r.opaque:
		return &Timeline{Opaque: true}, nil
	}
	if !r.timed {
		r.timed, r.d = true, nil
	}
	if _, err := r.current(doc); errors.Is(err, errGone) {
		return gone, nil
	} else if err != nil {
		return nil, err
	}
	return r.attempts.t, nil
}

// ReadHistory returns the steps of a run. An error may mean that its documents have changed between two reads.
func ReadHistory(id string, read func(doc string) (model.Value, error)) (*History, error) {
	return NewReader(id, read).History()
}

// History returns the steps of the run, as far as they are kept. What it returns is valid until the next call of a method.
func (r *Reader) History() (*History, error) {
	doc, s, err := r.begin()
	if err != nil {
		return nil, err
	}
	h := &History{Status: s}
	if s.State != Running && doc.Get(inPages).IsAbsent() {
		return h, nil
	}
	var failed error
	l := log{id: r.id, doc: doc, read: func(name string) model.Value {
		v, err := r.read(name)
		failed = errors.Join(failed, err)
		return v
	}}
	g := &workflow.Graph{} // without the graph, events do not have the names of their actions
	if l.read(graphDoc(s.Version)); r.prepare(s) == nil && r.graph != nil {
		g = r.graph
	}
	if known := r.d != nil && r.d.n == s.Steps && r.history.of == r.again && len(r.history.events) > 0; !known || r.history.page < l.oldest() {
		r.history = steps{page: l.oldest(), of: r.again}
	}
	err = r.history.read(&l, g, s.Steps, func() bool { return failed == nil })
	if err = errors.Join(failed, err); err != nil {
		r.history = steps{}
		return nil, fmt.Errorf("run %s: %w", r.id, err)
	}
	h.Events = r.history.events
	return h, nil
}

// last returns the number of the last step that was read.
func (s *steps) last() int {
	if len(s.events) == 0 {
		return 0
	}
	return s.events[len(s.events)-1].Step
}

// read reads the pages from the last one on, until there is step n. reads reports whether they can be read.
func (s *steps) read(l *log, g *workflow.Graph, n int, reads func() bool) error {
	absent := 0
	for page := s.page; absent < 2 && reads() && (len(s.events) == 0 || s.last() < n); page++ {
		v := l.read(pageDoc(l.id, page))
		if v.IsAbsent() {
			absent++
			continue
		}
		absent, s.page = 0, page
		if err := s.add(v, g); err != nil {
			return err
		}
	}
	if reads() && len(s.events) > 0 && s.last() != n {
		return fmt.Errorf("its last step is %d, and step %d was found", n, s.last())
	}
	return nil
}
