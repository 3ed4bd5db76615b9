package runs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow/compile"
)

// family is a world of several spaces, whose runs have children.
type family struct {
	*world
	// except are the spaces with a program of their own; the others run the workflows of the family.
	except map[string]*space.Program
}

// programOf returns a program with workflows, one for each text.
func programOf(t *testing.T, sources ...string) (*space.Program, []string) {
	t.Helper()
	set := New()
	for _, src := range sources {
		if _, err := compileSet(set, src); err != nil {
			t.Fatal(err)
		}
	}
	p := space.NewProgram("p")
	for _, name := range set.Actions() {
		a := &space.ActionSpec{Name: name, External: true, Remote: remoteUnless(name)}
		if err := set.Use(a); err != nil {
			t.Fatal(err)
		}
		if err := p.Action(a); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Register(p); err != nil {
		t.Fatal(err)
	}
	return p, set.Actions()
}

// compileSet adds the workflow of a text to a set.
func compileSet(set *Set, src string) (*space.Program, error) {
	g, err := compile.Compile("w.star", []byte(src))
	if err != nil {
		return nil, err
	}
	_, err = set.Add(g, nil)
	return space.NewProgram("p"), err
}

const familyActions = `
def inc(x): return x + 1
def watched(x): return x
def slow(x): return x
def bad(x): return fail(error("BadError", "no %d" % x, {"x": x}))
`

// newFamily returns a world that runs workflows with the actions inc, slow, bad and watched, one for each text: a function run and
// the functions that it calls, and its name in front.
func newFamily(t *testing.T, o simkit.Options, workflows map[string]string) *family {
	t.Helper()
	var sources []string
	for _, name := range slices.Sorted(maps.Keys(workflows)) {
		sources = append(sources, fmt.Sprintf("load(\"actions\", \"inc\", \"slow\", \"bad\", \"watched\")\n%s\nworkflow(%q, run)\n", workflows[name], name))
	}
	p, actions := programOf(t, sources...)
	f := &family{world: &world{T: t, deeds: inStarlark(t, familyActions), actions: actions}, except: map[string]*space.Program{}}
	o.Blocking = true
	f.World = simkit.New(func(name string) (*space.Program, error) {
		if own := f.except[name]; own != nil {
			return own, nil
		}
		return p, nil
	}, o)
	return f
}

// in returns a space.
func (f *family) in(name string) *simkit.Space {
	f.Helper()
	s, err := f.Space(name)
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// sentTo sends an event to a space.
func (f *family) sentTo(in, stream, id, payload string) model.Receipt {
	f.Helper()
	f.s = f.in(in)
	return f.sent(stream, id, payload)
}

// begin starts a run of the workflow "w" in a space.
func (f *family) begin(in, id, args string) {
	f.Helper()
	if rc := f.sentTo(in, StreamStart, "start-"+id, fmt.Sprintf(`{"workflow":"w","run":%q,"args":%s}`, id, args)); rc.Outcome != model.Handled {
		f.Fatalf("start %s: %s", id, rc.Error)
	}
}

// performAll performs the actions of all spaces until none is pending, but not those in held.
func (f *family) performAll(held ...string) {
	f.Helper()
	for again := true; again; {
		again = false
		for _, s := range f.Spaces() {
			f.s = s
			for _, action := range f.actions {
				if slices.Contains(held, action) || len(s.Tasks(action)) == 0 {
					continue
				}
				for _, t := range s.Tasks(action) {
					if t.State != space.TaskPending {
						continue
					}
					f.restartNow()
					f.s = f.in(s.Name())
					f.end(action, t)
					again = true
					break // the others may be cancelled now
				}
			}
		}
	}
}

func (f *family) restartNow() {
	f.Helper()
	if !f.restart {
		return
	}
	if err := f.Restart(); err != nil {
		f.Fatal(err)
	}
}

// pass moves time forward, and performs what is started then.
func (f *family) pass(d time.Duration, held ...string) {
	f.Helper()
	if err := f.Advance(d); err != nil {
		f.Fatal(err)
	}
	f.performAll(held...)
}

// of returns the outcome of a run in a space.
func (f *family) of(in, id string) string {
	f.Helper()
	f.s = f.in(in)
	return f.outcome(id)
}

// runsOf returns the runs of a space with their states, sorted, without the names of calls.
func (f *family) runsOf(in string) []string {
	f.Helper()
	var list []string
	for id, entry := range f.in(in).Value(Index).All() {
		state, _ := entry.Get("state").AsString()
		if _, call, is := strings.Cut(id, "-"); is && len(call) == callNameLen {
			id = strings.TrimSuffix(id, call) + "*"
		}
		list = append(list, id+" "+state)
	}
	slices.Sort(list)
	return list
}

// childOnly returns the only child of a run.
func (f *family) childOnly(in, id string) Child {
	f.Helper()
	list := childrenOf(f.in(in).Value(childrenDoc(id)))
	if len(list) != 1 {
		f.Fatalf("run %s has children %v", id, list)
	}
	return list[0]
}

// pendingTasks returns the actions that are pending, in all spaces.
func (f *family) pendingTasks() (n int) {
	for _, s := range f.Spaces() {
		for _, action := range f.actions {
			for _, t := range s.Tasks(action) {
				if t.State == space.TaskPending {
					n++
				}
			}
		}
	}
	return n
}

// tidied fails the test if the world has had problems, or if a run that has ended has left anything.
func (f *family) tidied() {
	f.Helper()
	for _, s := range f.Spaces() {
		f.s = s
		f.clean()
	}
}

// childState returns the state of a child, as its parent knows it.
func (f *family) childState(in, id, child string) State {
	f.Helper()
	for _, c := range childrenOf(f.in(in).Value(childrenDoc(id))) {
		if c.Run == child {
			return c.State
		}
	}
	return ""
}
