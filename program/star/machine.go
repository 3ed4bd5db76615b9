package star

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// machine is one instance of a program: its globals, frozen, and the levels on which
// its functions run. A run borrows one; what it pulls runs on the same one, a level
// higher. Places are bound to their machine, and by that to the transaction of whatever
// runs on it now, so that reading `stats.departures` needs no lookup.
type machine struct {
	p      *Program
	cur    *level // of the run under way; nil while none is
	levels []*level
	depth  int
	decls  []*decl
	pre    starlark.StringDict
	test   *testRun // of a machine that runs tests
	kids   int      // places that others remember
	mods   *modules // while the program is loaded
	loaded bool
}

// level is one run.
type level struct {
	m      *machine
	thread starlark.Thread
	tx     *space.Tx // nil while the program is loaded, and in tests
	docs   documents // tx, or what a test reads and writes
	ev     *model.Event
	decl   *decl
	mem    int64 // bytes allocated, beside those that the steps stand for
	out    int   // bytes logged
	lines  int
	alike  alike  // keys
	spent  string // the limit that was reached
	missed *place // what was read last, if nothing is there
	got    string // the text that was read last
}

// enter begins a run. leave ends it.
func (m *machine) enter(tx *space.Tx, d *decl, ev *model.Event) *level {
	if m.depth == len(m.levels) {
		m.levels = append(m.levels, m.newLevel())
	}
	l := m.levels[m.depth]
	m.depth++
	l.tx, l.decl, l.ev = tx, d, ev
	if tx != nil {
		l.docs = tx
	}
	l.mem, l.out, l.lines, l.spent, l.missed, l.got = 0, 0, 0, "", nil, ""
	l.alike = alike{}
	l.thread.Steps = 0
	l.thread.Uncancel()
	l.allow()
	if why := m.p.stopped.Load(); why != nil {
		l.thread.Cancel(*why)
	}
	m.cur = l
	return l
}

func (m *machine) leave() {
	l := m.cur
	l.tx, l.docs, l.ev, l.decl = nil, nil, nil, nil
	m.depth--
	m.cur = nil
	if m.depth > 0 {
		m.cur = m.levels[m.depth-1]
	}
}

func (m *machine) newLevel() *level {
	l := &level{m: m}
	l.thread.Name = m.p.name
	l.thread.Load = m.load
	l.thread.OnMaxSteps = func(t *starlark.Thread) { t.Cancel(l.over().Error()) }
	m.p.watch(&l.thread)
	return l
}

// allow tells the interpreter how many instructions are left: those of Limits.Steps, or
// fewer if Limits.Memory would be used up before.
func (l *level) allow() {
	lim := &l.m.p.limits
	room := uint64(max(lim.Memory-l.mem, 0)) / stepBytes
	l.thread.SetMaxExecutionSteps(max(min(lim.Steps, room), 1))
}

// over says which limit has been reached.
func (l *level) over() error {
	lim := &l.m.p.limits
	if l.mem+int64(min(l.thread.Steps, lim.Steps))*stepBytes >= lim.Memory {
		return fmt.Errorf("the run has used up its memory of %s", bytesText(lim.Memory))
	}
	return fmt.Errorf("the run has used up its %d steps", lim.Steps)
}

// charge counts what a builtin does: steps for what it goes through, bytes for what it
// allocates. An error means that it must not do it.
func (l *level) charge(steps int, bytes int) error {
	lim := &l.m.p.limits
	if bytes > 0 {
		l.mem += int64(min(bytes, math.MaxInt32*1024))
		l.allow()
	}
	l.thread.Steps += uint64(steps)
	if l.thread.Steps >= lim.Steps || l.mem+int64(l.thread.Steps)*stepBytes > lim.Memory {
		err := l.over()
		l.thread.Cancel(err.Error()) // what catches nothing cannot go on
		return err
	}
	return nil
}

func bytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// slotKey finds the machine that a space is being run with.
func machineOf(tx *space.Tx) *machine {
	m, _ := (*tx.Slot()).(*machine)
	return m
}

// call runs a registered function in a transaction.
func (p *Program) call(tx *space.Tx, i int, ev *model.Event, args func(m *machine) (starlark.Tuple, error), use func(l *level, v starlark.Value) error) (err error) {
	m := machineOf(tx)
	if m == nil || m.p != p {
		outer := m
		if m, err = p.borrow(); err != nil {
			return err
		}
		*tx.Slot() = m
		defer func() {
			*tx.Slot() = nil
			if outer != nil {
				*tx.Slot() = outer
			}
			p.giveBack(m)
		}()
	}
	d := m.decls[i]
	l := m.enter(tx, d, ev)
	defer m.leave()
	a, err := args(m)
	if err != nil {
		return err
	}
	v, err := starlark.Call(&l.thread, d.fn, a, nil)
	if err == nil {
		err = use(l, v)
	}
	if err != nil {
		return l.failure(err)
	}
	return nil
}

// failure is what the space is told of a run that failed.
func (l *level) failure(err error) error {
	e := l.explained(asError(l.m.p.entry, err))
	if isPassing(err) {
		return space.Transient(e)
	}
	return e
}
