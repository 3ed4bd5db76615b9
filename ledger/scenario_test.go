package ledger

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
)

// TestScenarios plays the scenario files: ledgers that share a space, with commands in the language of
// testdata/README.md and the output line by line. Each log is also compared with the oracle of the property
// tests. With -rewrite it writes the actual output; review the difference.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			s := newStage(t)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				if s.T = t; d.Cmd == "case" {
					s = newStage(t)
				}
				return s.play(d)
			})
		})
	}
}

// The README describes every command, and every scenario begins with a comment.
func TestScenariosAreDescribed(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for cmd := range commands { // any order: each is independent
		if !strings.Contains(string(readme), "| `"+cmd) {
			t.Errorf("testdata/README.md does not describe the command %s", cmd)
		}
	}
	files, _ := filepath.Glob("testdata/scenarios/*.txt")
	for _, path := range files {
		if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not begin with a comment: %v", path, err)
		}
	}
}

// stage is a world in which a scenario names each event.
type stage struct {
	*testing.T
	world *world
	out   strings.Builder
}

func newStage(t *testing.T) *stage { return &stage{T: t, world: newWorld()} }

var commands = map[string]func(s *stage, d *datadriven.TestData){
	"case": (*stage).setUp, "start": (*stage).start, "publish": (*stage).publish, "pass": (*stage).pass, "store": (*stage).store,
	"answer": (*stage).answer, "run": (*stage).run, "hear": (*stage).hear, "crash": (*stage).crash, "restart": (*stage).restart,
	"wait": (*stage).wait, "clock": (*stage).clock, "arrive": (*stage).arrive, "transact": (*stage).transact, "cancel": (*stage).cancel,
	"hold": (*stage).hold, "close": (*stage).close, "enter": (*stage).enter, "state": (*stage).state, "program": (*stage).program, "log": (*stage).logs,
}

// play executes a command, and returns its output.
func (s *stage) play(d *datadriven.TestData) string {
	command := commands[d.Cmd]
	if command == nil {
		s.Fatalf("%s: there is no command %s", d.Pos, d.Cmd)
	}
	s.out.Reset()
	command(s, d)
	for _, r := range s.world.runtimes {
		for _, line := range r.trace {
			s.tell("%s: %s", r.name, line)
		}
		r.trace = nil
	}
	if s.out.Len() == 0 {
		s.tell("ok")
	}
	return s.out.String()
}

func (s *stage) tell(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }

// runtime returns the runtime that a command names first.
func (s *stage) runtime(d *datadriven.TestData) *runtime {
	for _, r := range s.world.runtimes {
		if len(d.CmdArgs) > 0 && r.name == d.CmdArgs[0].Key {
			return r
		}
	}
	s.Fatalf("%s: which runtime?", d.Pos)
	return nil
}

// number returns an argument, or before if it is absent.
func (s *stage) number(d *datadriven.TestData, key string, before int) (n int) {
	n = before
	d.MaybeScanArgs(s.T, key, &n)
	return n
}

func (s *stage) setUp(d *datadriven.TestData) {
	l := &s.world.limits
	l.MaxGroup = s.number(d, "group", 4)
	l.LostAttempts = s.number(d, "lost", -1) // scenarios about other things should contain no attempt records
	l.EventRetries = s.number(d, "retries", 3)
	l.MaxLater = s.number(d, "later", 5)
	l.ConflictWindow = time.Duration(s.number(d, "window", 1000)) * time.Millisecond
}

func (s *stage) start(d *datadriven.TestData) {
	r := s.world.start(s, d.HasArg("attached"))
	r.name, r.noEvents = d.CmdArgs[0].Key, d.HasArg("transactions")
	s.load(r, d)
}

// load makes a runtime load the space again, under its name.
func (s *stage) load(r *runtime, d *datadriven.TestData) {
	r.load(s)
	var program string
	d.MaybeScanArgs(s.T, "program", &program)
	r.l.Runs(program)
	r.l.TermAt(uint64(s.number(d, "term", 0)))
	if d.HasArg("overran") {
		var event, stream string
		d.ScanArgs(s.T, "overran", &event)
		d.ScanArgs(s.T, "on", &stream)
		r.l.Overran(stream, event, d.HasArg("recorded"))
	}
	r.enter()
}

func (s *stage) publish(d *datadriven.TestData) {
	at := int64(s.number(d, "in", 0))
	if d.HasArg("in") {
		at += s.world.wall
	}
	for range s.number(d, "times", 1) {
		s.world.publish(d.CmdArgs[0].Key, at)
		ev := &s.world.lane[len(s.world.lane)-1]
		if d.HasArg("expires") {
			ev.Expires = s.world.wall + int64(s.number(d, "expires", 0))
		}
		if d.HasArg("invalid") {
			ev.Invalid = "it is no event"
		}
		s.world.flaky[ev.ID] = s.number(d, "fails", 0)
		s.world.deadly[ev.ID] = s.number(d, "deaths", 0)
		s.tell("%s at %d", ev.ID, ev.Lane)
	}
}

func (s *stage) pass(d *datadriven.TestData) {
	r := s.runtime(d)
	r.dies(func() { s.append(r, r.pass(s)) })
}

// append prints what a runtime appends.
func (s *stage) append(r *runtime, a *Append) {
	if a != nil {
		r.tell("appends behind %d: %s", a.Expect, strings.Join(contents(a.Commit), "\n  "))
	}
}

func (s *stage) store(d *datadriven.TestData) {
	r := s.runtime(d)
	if r.inFlight == nil {
		s.Fatalf("%s: no append of %s is in flight", d.Pos, r.name)
	}
	if seq := r.store(s); seq != 0 {
		s.tell("in the log at %d", seq)
	} else {
		s.tell("refused: the log ends at %d", s.world.head())
	}
}

func (s *stage) answer(d *datadriven.TestData) { s.runtime(d).answer(s) }

// run runs a runtime until nothing more happens at this time.
func (s *stage) run(d *datadriven.TestData) {
	r := s.runtime(d)
	r.dies(func() {
		for a := r.pass(s); a != nil; a = r.pass(s) {
			s.append(r, a)
			r.store(s)
			r.answer(s)
		}
	})
}

func (s *stage) hear(d *datadriven.TestData) { s.runtime(d).catchUp(s) }

func (s *stage) crash(d *datadriven.TestData) { s.runtime(d).dead = true }

// restart starts another incarnation of a runtime.
func (s *stage) restart(d *datadriven.TestData) {
	r := s.runtime(d)
	r.dead, r.offered, r.inFlight, r.answer, r.lacks = false, 0, nil, nil, false
	s.load(r, d)
}

func (s *stage) wait(d *datadriven.TestData) {
	ms := s.number(d, "ms", 0)
	s.world.wall += int64(ms)
	s.world.high = max(s.world.high, s.world.wall)
	for _, r := range s.world.runtimes {
		r.now += time.Duration(ms) * time.Millisecond
	}
}

func (s *stage) clock(d *datadriven.TestData) {
	s.world.wall += int64(s.number(d, "ms", 0))
	s.world.high = max(s.world.high, s.world.wall)
}

func (s *stage) arrive(*datadriven.TestData) { s.world.present = true }

func (s *stage) transact(d *datadriven.TestData) {
	r := s.runtime(d)
	count, _ := r.l.Value("count").AsInt()
	writes := []model.Write{{Doc: "count", Value: model.Int(count + 10000)}}
	if n := s.number(d, "bytes", 0); n > 0 {
		writes = append(writes, model.Write{Doc: "large", Value: model.String(strings.Repeat("x", n))})
	}
	s.record(r, writes...)
}

func (s *stage) cancel(d *datadriven.TestData) {
	r, event := s.runtime(d), d.CmdArgs[1].Key
	mark := model.Object(model.F("why", "as asked"), model.F("slot", int64(s.number(d, "slot", 0))))
	s.record(r, model.Write{Doc: CancelDoc, Path: model.Path{CancelKey(d.CmdArgs[2].Key, event)}, Value: mark})
}

func (s *stage) record(r *runtime, writes ...model.Write) {
	draft := Draft{By: "app", Direct: true, Writes: writes}
	n, err := r.l.Record(&draft)
	if err != nil {
		r.tell("%v", err)
		return
	}
	r.l.apply(&Attempt{Draft: draft}, n)
	r.tell("the application makes transaction %d", n)
}

func (s *stage) program(d *datadriven.TestData) { s.runtime(d).l.Runs(d.CmdArgs[1].Key) }

func (s *stage) hold(d *datadriven.TestData)  { s.runtime(d).l.Hold() }
func (s *stage) close(d *datadriven.TestData) { s.runtime(d).l.Close() }
func (s *stage) enter(d *datadriven.TestData) { s.runtime(d).enter() }

func (s *stage) state(d *datadriven.TestData) {
	r := s.runtime(d)
	l := r.l
	s.tell("%s: %s, %s; settled: %v", r.name, l.Phase(), []string{"owner", "attached"}[l.Role()], l.Settled())
	if h, ok := l.HeadInfo(); ok {
		s.tell("  head %s, ready: %v, attempts %d, lost %d, in %v", h.Event.ID, l.headReady(), h.Attempts, h.Lost, max(0, l.NotBefore()-r.now))
	}
	s.tell("  %d in the lane, %d wait for a time, count %s", l.Lane().Waiting(), l.Replica().Later.Len(), l.Value("count"))
	if l.Overflowed() {
		s.tell("  the open group has no room")
	}
	if due := l.Due(); due != 0 {
		s.tell("  due in %d ms", due-s.world.wall)
	}
	if c := l.Counts(); c != (Counts{}) {
		s.tell("  %s", strings.Trim(fmt.Sprintf("%+v", c), "{}"))
	}
}

func (s *stage) logs(*datadriven.TestData) {
	for _, e := range s.world.log {
		c, err := model.DecodeCommit(e.Data)
		if err != nil {
			s.Fatal(err)
		}
		s.tell("%d %s: %s", e.Seq, c.ID(), strings.Join(contents(c), "\n  "))
	}
}

// contents describes a commit.
func contents(c *model.Commit) []string {
	head := "transactions"
	switch {
	case c.Takeover:
		head = "takeover"
	case c.Join:
		head = "join"
	case len(c.Txs) == 0:
		head = "no transaction"
	}
	if c.Program != "" {
		head += ", program " + c.Program
	}
	if c.Term != 0 {
		head += fmt.Sprintf(", term %d", c.Term)
	}
	if c.Trying != nil {
		head += fmt.Sprintf(", attempt %d at %s", c.Trying.Tries, c.Trying.Event)
		if c.Trying.Back {
			head += " (retracted)"
		}
	}
	if c.Cursor.Floor > 0 {
		head += fmt.Sprintf(", cursor %d", c.Cursor.Floor)
	}
	lines := []string{head}
	for i := range c.Txs {
		lines = append(lines, parts(&c.Txs[i]))
	}
	return lines
}

// parts describes a transaction.
func parts(tx *model.Tx) string {
	list := []string{fmt.Sprintf("%d %s", tx.N, tx.By)}
	if rc := tx.Receipt; rc != nil {
		list = append(list, rc.Event+" is "+ending(rc))
		if rc.Attempts > 0 {
			list = append(list, fmt.Sprintf("attempts %d", rc.Attempts))
		}
	}
	if tx.Later != nil {
		list = append(list, fmt.Sprintf("%s waits in slot %d", tx.Later.ID, tx.Later.Slot))
	}
	for _, w := range tx.Writes {
		value := w.Value.String()
		if w.Delete {
			value = "nothing"
		}
		list = append(list, fmt.Sprintf("%s%s = %.24s", w.Doc, w.Path, value))
	}
	for _, c := range tx.Cancels {
		list = append(list, "cancels "+c.ID)
	}
	for _, m := range tx.Sends {
		to := fmt.Sprintf("sends %s to %s/%s", m.ID, m.To, m.Stream)
		if m.Slot > 0 {
			to += fmt.Sprintf(" in slot %d", m.Slot)
		}
		list = append(list, to)
	}
	return strings.Join(slices.Compact(list), "; ")
}
