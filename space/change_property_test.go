package space

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The programs of this test decide for each of a few documents whether handlers write it or it is derived,
// from which documents of lower number, and what is added. Some of the nodes are children of another node.
// Everything that can differ between two versions does: names of nodes, outputs, reads, volatility, versions.

const changedDocs = 6

func changedDoc(i int) string { return fmt.Sprint("d", i) }

// role is what a program does with a document.
type role struct {
	derived  bool
	id       string
	child    bool // another node makes the node
	volatile bool
	reads    []int
	plus     int64
	version  string
}

type roles []role

func drawRoles(t *rapid.T) roles {
	rs := make(roles, changedDocs)
	for i := 2; i < changedDocs; i++ { // the first two are always written
		r := &rs[i]
		if r.derived = rapid.IntRange(0, 3).Draw(t, "derived") > 0; !r.derived {
			continue
		}
		r.id = changedDoc(i)
		if rapid.IntRange(0, 4).Draw(t, "renamed") == 0 {
			r.id = fmt.Sprint("n", rapid.IntRange(0, 1).Draw(t, "name")*10+i)
		}
		r.child = rapid.IntRange(0, 3).Draw(t, "child") == 0
		r.volatile = rapid.IntRange(0, 6).Draw(t, "volatile") == 0
		r.reads = rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 1, 2, rapid.ID).Draw(t, "reads")
		r.plus = int64(rapid.IntRange(0, 2).Draw(t, "plus"))
		if rapid.IntRange(0, 4).Draw(t, "versioned") > 0 {
			r.version = fmt.Sprint(r.reads, r.plus)
		}
	}
	return rs
}

func (r *role) spec(output string) NodeSpec {
	return NodeSpec{ID: r.id, Kind: Computation, Output: output, Volatile: r.volatile, Version: r.version, Run: func(tx *Tx) (model.Value, error) {
		total := r.plus
		for _, in := range r.reads {
			total += num(tx.Get(changedDoc(in)))
		}
		return model.Int(total), nil
	}}
}

func (rs roles) program(t tester) *Program {
	p := NewProgram("roles")
	must := func(err error) {
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	must(p.Handle("set", func(tx *Tx, ev *model.Event) (model.Value, error) {
		for k, v := range ev.Payload.All() {
			tx.Set(k, v)
		}
		return model.Value{}, nil
	}))
	for i := range rs {
		if rs[i].derived && !rs[i].child {
			must(p.Add(rs[i].spec(changedDoc(i))))
		}
	}
	makes := "makes" // the version covers which nodes it makes, not their code: that has versions of its own
	for i := range rs {
		if rs[i].derived && rs[i].child {
			makes += fmt.Sprint(" ", i, rs[i].id)
		}
	}
	must(p.Add(NodeSpec{ID: "maker", Kind: Effect, Version: makes, Run: func(tx *Tx) (model.Value, error) {
		for i := range rs {
			if rs[i].derived && rs[i].child {
				tx.Node(rs[i].spec(changedDoc(i)))
			}
		}
		return model.Value{}, nil
	}}))
	return p
}

// naive computes the expected value of a document.
func (rs roles) naive(h *host, i int) int64 {
	r := &rs[i]
	if !r.derived {
		return num(h.core.Value(changedDoc(i)))
	}
	total := r.plus
	for _, in := range r.reads {
		total += rs.naive(h, in)
	}
	return total
}

// changed is a host whose program changes.
type changed struct {
	*host
	roles    roles
	observed map[string]bool
	// ranAs is the version with which each node last ran, empty after a refusal.
	ranAs map[string]string
	n     int
	saved memory
}

func (s *changed) versionOf(node string) string {
	if n := s.core.graph.byID[node]; n != nil {
		return n.spec.Version
	}
	return ""
}

// ran checks that no node runs because of its version if it last ran with that version.
func (s *changed) ran(i RunInfo) {
	v := s.versionOf(i.Node)
	before, known := s.ranAs[i.Node]
	if known && slices.Equal(i.Causes, []string{"version"}) && v != "" && before == v {
		s.t.Errorf("%s runs again because of its version, but last ran with %s", i.Node, v)
	}
	s.ranAs[i.Node] = v
}

// forgetVersions discards the versions of children that the new program makes with another version. A child
// that is registered with another version runs again, even if it did not run before it is registered with the
// first one again.
func (s *changed) forgetVersions() {
	for _, r := range s.roles {
		if r.derived && r.child && s.ranAs[r.id] != r.version {
			delete(s.ranAs, r.id)
		}
	}
}

func (s *changed) write(t *rapid.T) model.Write {
	for {
		if i := rapid.IntRange(0, changedDocs-1).Draw(t, "doc"); !s.roles[i].derived {
			s.n++
			return put(changedDoc(i), s.n*10)
		}
	}
}

func (s *changed) move(t *rapid.T) {
	switch rapid.SampledFrom([]string{"change", "change", "send", "send", "settle", "settle", "decide", "refuse", "observe", "restart", "run"}).Draw(t, "move") {
	case "change":
		s.roles = drawRoles(t)
		s.program = s.roles.program(s.t)
		if err := s.core.Change(s.program); err != nil {
			s.t.Fatalf("change: %v", err)
		}
		s.forgetVersions()
	case "send":
		s.n++
		w := s.write(t)
		s.w.send(home, "set", fmt.Sprint("e", s.n), map[string]any{w.Doc: w.Value})
		s.deliver()
	case "settle":
		s.settle()
	case "decide":
		s.decide()
	case "refuse":
		if s.inFlight != nil {
			s.refuse(s.write(t))
			clear(s.ranAs)
		}
	case "observe":
		doc := changedDoc(rapid.IntRange(0, changedDocs-1).Draw(t, "observed"))
		if s.observed[doc] {
			s.core.Unobserve(doc)
		} else {
			s.observe(doc)
		}
		s.observed[doc] = !s.observed[doc]
	case "restart":
		s.host.run()
		s.advance(time.Minute) // past the pauses after conflicts
		s.host.run()
		s.check()
		s.restartNow()
	default:
		s.host.run()
		s.check()
	}
}

// restartNow crashes an idle host: nodes with the same version and shape that are neither volatile nor
// without a version must not run.
func (s *changed) restartNow() {
	s.saved.save(s.t, s.host)
	s.checkpoint()
	clean := map[string]bool{}
	for id, n := range s.core.graph.byID { // any order: into a map
		clean[id] = n.status == Clean && s.core.graph.upToDate(n)
	}
	s.load()
	var good []Observation
	for _, o := range s.saved.list() {
		if o.Version != "" {
			good = append(good, o)
		}
	}
	s.core.Rehydrate(good)
	for doc, on := range s.observed { // any order: each is independent
		if on {
			s.observe(doc)
		}
	}
	s.takeOver()
	s.host.run()
	runs := map[string]int{}
	for id, n := range s.runs { // any order: into a map
		runs[id] = n
	}
	s.check()
	for i := range s.roles {
		r := &s.roles[i]
		if r.derived && clean[r.id] && runs[r.id] > 0 && r.version != "" && s.ranAs[r.id] == r.version && !s.upset(i) && !r.child {
			s.t.Errorf("%s ran after a restart", r.id)
		}
	}
	clear(s.ranAs)
}

// upset reports whether something that a document is derived from is not resumed after a restart.
func (s *changed) upset(i int) bool {
	r := &s.roles[i]
	up := r.derived && (r.volatile || r.version == "" || r.child || s.ranAs[r.id] != r.version)
	for _, in := range r.reads {
		up = up || s.upset(in)
	}
	return up
}

func (s *changed) check() {
	for i := range s.roles {
		doc := changedDoc(i)
		if got, want := num(s.core.Value(doc)), s.roles.naive(s.host, i); s.observed[doc] && got != want {
			s.t.Errorf("%s is %d, want %d", doc, got, want)
		}
	}
	want := map[string]bool{"maker": true}
	for i := range s.roles {
		if s.roles[i].derived {
			want[s.roles[i].id] = true
		}
	}
	for _, n := range s.core.graph.byID { // any order: each is independent
		if _, observes := want[n.id()], n.spec.Kind == Effect; !want[n.id()] && !observes {
			s.t.Errorf("node %s is not of the program", n.id())
		}
		delete(want, n.id())
	}
	if len(want) > 0 {
		s.t.Errorf("the nodes %v are missing", want)
	}
}

// Any program is changed to any other at any moment. Observed documents then have the values that the latest
// program derives, the nodes are those of the latest program, and each run has a cause.
func TestChange_AnyProgramIntoAnyOtherAtAnyTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		s := &changed{roles: drawRoles(t), observed: map[string]bool{}, ranAs: map[string]string{}, saved: memory{}}
		s.host = w.owner("r1", s.roles.program(t), func(c *Config) { c.MaxGroup = rapid.SampledFrom([]int{1, 2, 1000}).Draw(t, "group") })
		s.core.cfg.Trace.RunStart = func(i RunInfo) { s.runs[i.Node]++; s.ran(i) }
		s.cfg.Trace.RunStart = s.core.cfg.Trace.RunStart
		for range rapid.IntRange(1, 40).Draw(t, "moves") {
			s.move(t)
		}
		s.host.run()
		s.advance(time.Minute) // past the pauses after conflicts
		s.host.run()
		s.check()
		if left := s.core.Waiting(); left > 0 {
			t.Errorf("%d events are left", left)
		}
	})
}
