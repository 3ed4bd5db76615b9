package star_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/program/star"
)

const familyProgram = `
reserve = action("reserve")
ship = action("ship")

def deliver(address, express = False):
    if not express:
        sleep("24h")
    return ship(to = address)

shipping = workflow("shipping", deliver)

def run(orders):
    for o in orders:
        reserve(o)
    alone = child(shipping, {"address": "Riga", "express": True}, id = "riga")
    rest = parallel([child("shipping", {"address": o}, space = "order-" + o) for o in orders], on_error = "collect")
    late = attempt(timeout(child(shipping, {"address": "Oslo"}), "1h"))
    return [alone, rest, late.error.type]

workflow("orders", run)
`

// The children of a run are part of a test in Starlark: in whatever space they live, their time is that of the test, and
// mocks perform their actions.
func TestChild_InATestInStarlark(t *testing.T) {
	runTests(t, familyProgram, `
def nothing(*args, **kwargs): return None
def shipped(to):
    if to == "nowhere":
        return failure("Lost", "no such place")
    return "parcel for " + to

def test_children():
    mock("reserve", nothing)
    mock("ship", shipped)
    start_workflow("orders", "o", {"orders": ["a", "nowhere"]})
    equal(doc("run_riga").result, "parcel for Riga")
    equal(doc("run_o").state, "running")
    restart()
    advance("23h")
    equal(len(calls("ship")), 1)
    advance("2h")
    equal(len(calls("ship")), 3)
    advance("1h")
    expect(doc("run_o").result, ["parcel for Riga", ["parcel for a", {"type": "Lost", "message": "no such place"}], "TimeoutError"])

def test_a_cancelled_parent():
    mock("reserve", nothing)
    mock("ship", shipped)
    start_workflow("orders", "o", {"orders": ["a", "b"]})
    send("workflow-cancel", {"run": "o"})
    advance("48h")
    equal(len(calls("ship")), 1)

def test_ends_are_not_forged():
    start_workflow("orders", "o", {"orders": []})
    send("workflow-child-end", {"run": "o"}, rejects = "internal-stream")
`)
}

// A call of a child that cannot be meant is refused, with its place and what to write.
func TestChild_IsRefusedWithItsPlace(t *testing.T) {
	for _, c := range [][2]string{
		{"def run():\n    child('x', {})\nworkflow('w', run)\n", `workflow w starts runs of workflow "x", and this program has w`},
		{"def run(name):\n    child(name, {})\nworkflow('w', run)\n", "p.star:2:5: child takes the name of a workflow first, written out"},
		{"def run():\n    child()\nworkflow('w', run)\n", "p.star:2:5: child takes the name of a workflow first"},
		{"def run():\n    child('w', n = 1)\nworkflow('w', run)\n", `p.star:2:16: write child("workflow", {"argument": value})`},
		{"def run():\n    child('w', {}, {})\nworkflow('w', run)\n", `p.star:2:20: write child("workflow", {"argument": value})`},
		{"def run():\n    child('w', [1])\nworkflow('w', run)\n", `p.star:2:16: write child("workflow", {"argument": value})`},
		{"def run():\n    return child('w', {}) + 1\nworkflow('w', run)\n", ""},
		{"def run():\n    retry(child('w', {}, id = 'x'), attempts = 2)\nworkflow('w', run)\n", "p.star:2:5: a child with an id is one run"},
		{"def other():\n    return 1\nother_workflow = workflow('other', other)\ndef run():\n    other_workflow(n = 1)\nworkflow('w', run)\n", "p.star:5:5: other_workflow is a workflow: write child(other_workflow, {...})"},
		{"def h(e):\n    child('w', {})\nhandle('h', h)\ndef run():\n    return 1\nworkflow('w', run)\n", ""},
		{"def run(n):\n    child('w', {'n': n - 1}, space = 'x', id = None)\nworkflow('w', run)\n", ""},
		// Programs from before there was a builtin of this name mean what they meant.
		{"def child(n): return n + 1\ndef run():\n    return child(1)\nworkflow('w', run)\n", ""},
		{"child = action('child')\ndef run():\n    x = child(1)\n    return x\nworkflow('w', run)\n", ""},
		{"a = action('a')\ndef child(n):\n    return a(n)\ndef run():\n    x = child(1)\n    return x\nworkflow('w', run)\n", ""},
		{"def run(children):\n    n = 0\n    for child in children:\n        n += child\n        sleep(1)\n    return n\nworkflow('w', run)\n", ""},
		{"def f(child): return child\ndef run():\n    return child('w', {})\nworkflow('w', run)\n", "p.star:3:12: child is a variable elsewhere in this file"},
	} {
		src := star.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": c[0]}}
		_, err := star.Compile(src, star.Options{})
		if (err == nil) != (c[1] == "") || err != nil && !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", c[0], err, c[1])
		}
	}
}
