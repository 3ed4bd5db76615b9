package compile

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/workflow"
)

const parent = `
load("actions", "pack")
again = workflow("again", run)

def step(x):
    return child(again, {"n": x})

def run(n):
    a = step(n)
    b = parallel(child("other", args = {"x": [a, n]}, id = "b-" + str(n), space = "away"), pack(n), step(n + 1))
    c = attempt(timeout(retry(child("other", space = None), attempts = 2), "5m"))
    return [a, b, c.ok]
`

// A call of a child becomes work of the engine with the arguments of its run, and survives encoding and snapshots.
func TestChild_IsWorkOfTheEngine(t *testing.T) {
	t.Parallel()
	src := strings.Replace(parent, "again = workflow(\"again\", run)\n", "", 1) + "again = workflow(\"again\", run)\n"
	g, err := Compile("w.star", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	data, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if g, err = workflow.Decode(data); err != nil {
		t.Fatal(err)
	}
	if got := g.Children(); !slices.Equal(got, []string{"again"}) || !slices.Equal(g.Actions(), []string{"pack"}) {
		t.Errorf("children of its space %v, actions %v", got, g.Actions())
	}
	p, err := workflow.Prepare(g)
	if err != nil {
		t.Fatal(err)
	}
	run := workflow.New(p)
	var log []string
	for inputs := []workflow.Input{{Begin: jsontext.Value(`{"n":1}`)}}; len(inputs) > 0; inputs = inputs[1:] {
		e, err := run.Step(inputs[0])
		if err != nil {
			t.Fatal(err)
		}
		snapshot, err := run.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if run, err = workflow.Load(p, snapshot); err != nil {
			t.Fatal(err)
		}
		for _, o := range run.Open() {
			if o.Child == "" && o.Action != "pack" {
				t.Errorf("%+v", o)
			}
		}
		for _, w := range e.Start {
			log = append(log, w.Action+w.Child+" "+string(w.Args)+" "+string(w.Named))
			if w.Child == "other" && w.Timeout != 0 {
				log[len(log)-1] += " 5m"
				inputs = append(inputs, workflow.Input{Failed: &workflow.Failed{Work: w.ID, Attempt: w.Attempt, Type: "No"}})
				continue
			}
			inputs = append(inputs, workflow.Input{Done: &workflow.Done{Work: w.ID, Attempt: w.Attempt, Result: jsontext.Value(`7`)}})
		}
		if e.Outcome != nil {
			log = append(log, string(e.Outcome.Result))
		}
	}
	want := []string{
		`again {"n":1} {}`,
		`other {"x":[7,1]} {"id":"b-1","space":"away"}`, `pack [1] {}`, `again {"n":2} {}`,
		`other {} {} 5m`, `other {} {} 5m`,
		`[7,[7,7,7],false]`,
	}
	if !slices.Equal(log, want) {
		t.Errorf("%q, want %q", log, want)
	}
}

// Arguments that no run can have fail the call, with words.
func TestChild_ArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		`child("w", n)`:                    `arguments of child w: a dict by name, such as {"n": 1}, is needed, not a int`,
		`child("w", {n: 1})`:               "arguments of child w: a dict with the key 1 cannot be given away",
		`child("w", {}, id = n)`:           `arguments of child w: "id" must be a text, not a int`,
		`child("w", {}, space = [n])`:      `arguments of child w: "space" must be a text, not a list`,
		`child("w", {"f": lambda: n})`:     "arguments of child w: a function cannot be given away",
		`parallel([child("w", n), cw(n)])`: "arguments of child w",
	} {
		g, err := Compile("w.star", []byte("def cw(n): child(\"w\", {})\ndef run(n):\n    "+call+"\nworkflow(\"w\", run)\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := workflow.Prepare(g)
		if err != nil {
			t.Fatal(err)
		}
		e, err := workflow.New(p).Step(workflow.Input{Begin: jsontext.Value(`{"n":1}`)})
		if err != nil || e.Outcome == nil || e.Outcome.Error == nil || !strings.Contains(e.Outcome.Error.Message, want) {
			t.Errorf("%s: %v %+v, want %s", call, err, e, want)
		}
	}
}

// A graph whose nodes and calls do not belong together is refused when it is read.
func TestChild_OfAnInvalidGraphIsRefused(t *testing.T) {
	t.Parallel()
	g, err := Compile("w.star", []byte("def run():\n    child(\"w\", {})\nworkflow(\"w\", run)\n"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := g.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`"kind":"child"`: `"kind":"action"`,
		`"child":"w"`:    `"action":"w"`,
		`"child":"w",`:   `"child":"w","action":"w",`,
		`{"child":"w",`:  `{"away":true,"action":"w",`,
	} {
		text := strings.Replace(string(data), from, to, 1)
		if text == string(data) {
			t.Fatalf("%s is not in %s", from, data)
		}
		if _, err := workflow.Decode([]byte(text)); err == nil {
			t.Errorf("%s in place of %s is accepted", to, from)
		}
	}
}
