package flow_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/settletest"
)

// The arguments of an action are decoded as payloads are: what does not fit, is unknown or is missing fails the attempt
// with the place.
func TestPerform_ArgumentsHaveToFit(t *testing.T) {
	type charge struct {
		Amount int    `json:"amount"`
		Note   string `json:"note,omitzero"`
	}
	for call, want := range map[string]string{
		"charge(amount = 5)":                         "5",
		"charge({\"amount\": 6, \"note\": \"tip\"})": "6",
		"charge(amuont = 5)":                         "/amuont: there is no such field",
		"charge()":                                   "/amount: the field is missing",
		"charge(amount = \"five\")":                  "/amount: a string is here; an integer is wanted",
		"charge(5, amount = 5)":                      "it takes one positional argument or keyword arguments, and is called with 1 and 1",
		"none()":                                     "0",
		"none(5)":                                    "an integer is here; an object is wanted",
		"some()":                                     "0",
	} {
		p := settle.NewProgram("shop")
		w := flow.New(p)
		w.Starlark("shop.star", []byte("load(\"actions\", \"charge\", \"none\", \"some\")\ndef run():\n    return "+call+"\nworkflow(\"run\", run)\n"))
		flow.Perform(w, "charge", func(_ context.Context, c charge) (int, error) { return c.Amount, nil })
		flow.Perform(w, "none", func(context.Context, struct{}) (int, error) { return 0, nil })
		flow.Perform(w, "some", func(_ context.Context, in struct {
			N *int `json:"n"`
		},
		) (int, error) {
			return 0, nil
		})
		if err := w.Register(); err != nil {
			t.Fatal(err)
		}
		s := settletest.New(t, p).Space("s")
		s.Call("workflow-start", map[string]any{"workflow": "run", "run": "r"})
		perform(s)
		got := fmt.Sprint(s.Get("run_r", "result"))
		if fmt.Sprint(s.Get("run_r", "state")) != `"done"` {
			got = fmt.Sprint(s.Get("run_r", "error", "type"), ": ", s.Get("run_r", "error", "message"))
			want = `"ArgumentError": "` + want
		}
		if !strings.HasPrefix(strings.ReplaceAll(got, `\"`, `"`), want) {
			t.Errorf("%s gives %s, not %s", call, got, want)
		}
	}
}

// An action whose arguments or result cannot be documents is refused when it is registered.
func TestPerform_RefusesTypesThatAreNoDocuments(t *testing.T) {
	p := settle.NewProgram("shop")
	w := flow.New(p)
	flow.Perform(w, "charge", func(context.Context, chan int) (int, error) { return 0, nil })
	if err := w.Register(); err == nil || !strings.Contains(err.Error(), "action charge: the arguments: ") {
		t.Error(err)
	}
}
