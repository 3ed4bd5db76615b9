package star

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

const derivedByValue = `
n = cell("n")
twice = compute("twice", lambda: {"v": n * 2} if n.exists() else None, default = {"v": 0})

def read(e):
    return [twice.v, doc(twice, space = "there").v, doc(twice, space = space()).v]

handle("set", lambda e: n.set(e))
handle("read", read)
`

// What compute returns is read like a cell: its default where nothing is derived, and as doc(twice, space = ...) in another space.
func TestDerived_IsReadByTheValueThatComputeReturned(t *testing.T) {
	s := newStage(t, compiled(t, derivedByValue).Space())
	if got := s.must("read", nil).String(); got != "[0,0,0]" {
		t.Errorf("nothing is derived yet: %s", got)
	}
	s.must("set", 4)
	if got := s.must("read", nil).String(); got != "[8,0,8]" {
		t.Errorf("derived here, and not there: %s", got)
	}
}

// An object in a document of another space is a value at once, and read with the same methods as a place. A test writes documents of its own space alone.
func TestElsewhere_AnObjectIsReadWithGet(t *testing.T) {
	src := source(`
def read(e):
    last = doc("truck", space = "t1").last
    return [last.get(), last.get("n"), last.get("m", 7)]

handle("set", lambda e: cell("truck").set({"last": {"n": 5}}))
handle("read", read)
truck = cell("truck")
`, "elsewhere_test.star", `
load("test.star", "truck")

def test_get():
    send_to("t1", "set")
    equal(send("read"), [{"n": 5}, 5, 7])
    truck.last = {"n": 6}
    equal(truck.last.get("n"), 6)

def test_write():
    doc(truck, space = "t1").last = {"n": 6}
`)
	results, err := RunTests(t.Context(), src, "elsewhere_test.star", TestOptions{Engine: testEngine})
	if err != nil || len(results) != 2 {
		t.Fatal(results, err)
	}
	if results[0].Err != nil {
		t.Error(results[0].Err)
	}
	if err := results[1].Err; err == nil || !strings.Contains(err.Error(), `a test writes documents of its space "test"`) {
		t.Error(err)
	}
}

func TestDerived_MisuseIsRefused(t *testing.T) {
	for _, c := range []struct{ body, words string }{
		{"return twice.w", "twice has no field w: its default does not declare one"},
		{"twice.v = 1", "this document is the output of computation twice; change what that reads instead"},
		{"doc(twice, space = 'there').v = 1", "a program can only write documents of its own space"},
		{"return doc(twice)", `missing argument for space; doc of a place is the same place of another space, and takes nothing else: doc(PLACE, space = "name")`},
		{"return doc(twice, {}, space = 'x')", "for parameter space: got dict"},
		{"return doc(twice, space = 'a b')", "letters, digits"},
		{"return doc(twice, space = 'x', default = 1)", "unexpected keyword argument"},
		{"return doc(twice.v, space = 'x')", "not an int; a field with a string, number, bool or null is read where it is named: doc(PLACE, space = ...).field"},
	} {
		text := derivedByValue + "\ndef h(e):\n    " + c.body + "\nhandle('h', h)\n"
		if rc := newStage(t, compiled(t, text).Space()).send("h", nil); rc.Outcome != model.Failed || !strings.Contains(rc.Error, c.words) {
			t.Errorf("%s: %s %s; want %q", c.body, rc.Outcome, rc.Error, c.words)
		}
	}
	for _, c := range []struct{ text, words string }{
		{"compute('x', lambda: 1, output = None, writes = [cell('a')], default = 1)", "compute x: it has no output that could have a default"},
		{"compute('x', lambda: 1, default = lambda: 1)", "compute x: default: "},
	} {
		if _, err := Compile(source(c.text+"\n"), Options{}); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want %q", c.text, err, c.words)
		}
	}
}

// An event and a task have the fields that they have: a misspelt one would be None, and a condition with it would be false for good.
func TestEventAndTask_HaveNoOtherFields(t *testing.T) {
	for _, c := range []struct{ body, words string }{
		{"return event().nonsense", "an event has no field nonsense; it has by, id, origin, stream, timer"},
		{"return event().origni", "(did you mean .origin?)"},
		{"return event()['tmer']", "an event has no field tmer; it has by, id, origin, stream, timer"},
		{"return task(a, 'k').outptu", "a task has no field outptu; it has attempts, error, input, key, output, state (did you mean .output?)"},
	} {
		text := "a = action('a')\ndef h(e):\n    start_task(a, 'k')\n    " + c.body + "\nhandle('h', h)\n"
		if rc := newStage(t, compiled(t, text).Space()).send("h", nil); rc.Outcome != model.Failed || !strings.Contains(rc.Error, c.words) {
			t.Errorf("%s: %s %s; want %q", c.body, rc.Outcome, rc.Error, c.words)
		}
	}
	s := newStage(t, compiled(t, "def h(e):\n    return [event().stream, event().timer, event()['origin'], hasattr(event(), 'x')]\nhandle('h', h)\n").Space())
	if got := s.must("h", nil).String(); got != `["h",null,null,false]` {
		t.Errorf("what an event has: %s", got)
	}
}

func TestUnknownNames_AreComparedWithThoseThatThereAre(t *testing.T) {
	for _, c := range []struct{ body, words string }{
		{"start_task('chrge', 'k')", `start_task: the program has no action "chrge"; it has charge, mail; did you mean "charge"?`},
		{"cancel_task('mial_all', 'k')", `cancel_task: the program has no action "mial_all"; it has charge, mail`},
		{"return task('mall', 'k')", `task: the program has no action "mall"; it has charge, mail; did you mean "mail"?`},
		{"start_workflow('ordr', 'r')", `start_workflow: the program has no workflow "ordr"; it has order; did you mean "order"?`},
		{"start_workflow('ordr', 'r', space = space())", `did you mean "order"?`},
	} {
		text := "charge = action('charge')\nmail = action('mail')\ndef run():\n    return 1\nworkflow('order', run)\ndef h(e):\n    " + c.body + "\nhandle('h', h)\n"
		if rc := newStage(t, compiled(t, text).Space()).send("h", nil); rc.Outcome != model.Failed || !strings.Contains(rc.Error, c.words) {
			t.Errorf("%s: %s %s; want %q", c.body, rc.Outcome, rc.Error, c.words)
		}
	}
	s := newStage(t, compiled(t, "handle('open', lambda e: 1)\n").Space())
	if rc := s.send("opn", nil); !strings.HasSuffix(rc.Error, `it has: open; did you mean "open"?`) {
		t.Errorf("a misspelt stream: %s", rc.Error)
	}
	if rc := newStage(t, compiled(t, "def h(e):\n    start_task('a', 'k')\nhandle('h', h)\n").Space()).send("h", nil); !strings.Contains(rc.Error, `the program has no action "a", and no other; write action(...) at the top of the file`) {
		t.Errorf("no action at all: %s", rc.Error)
	}
	if _, err := Compile(source("handle('daily', lambda e: 1)\ncron('dail', '0 9 * * *')\n"), Options{}); err == nil || !strings.HasSuffix(err.Error(), `did you mean "daily"?`) {
		t.Errorf("a cron with a misspelt stream: %v", err)
	}
}
