package space

import (
	"cmp"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestClash_IsOfComputationsThatWriteOnePlaceOrOneInsideTheOther(t *testing.T) {
	at := func(doc string, path ...string) []Address { return []Address{{Doc: doc, Path: path}} }
	run := func(*Tx) (model.Value, error) { return model.Value{}, nil }
	for name, c := range map[string]struct {
		nodes []NodeSpec
		want  string
	}{
		"one place":        {[]NodeSpec{{ID: "a", Writes: at("x")}, {ID: "b", Writes: at("x")}}, "a b"},
		"one inside":       {[]NodeSpec{{ID: "a", Writes: at("x", "k")}, {ID: "b", Envelope: at("x")}}, "a b"},
		"the output":       {[]NodeSpec{{ID: "a", Output: "x"}, {ID: "b", Writes: at("x", "k")}}, "a b"},
		"beside":           {[]NodeSpec{{ID: "a", Writes: at("x", "k")}, {ID: "b", Writes: at("x", "l")}}, ""},
		"a node by itself": {[]NodeSpec{{ID: "a", Writes: append(at("x"), at("x", "k")...)}}, ""},
		"an effect":        {[]NodeSpec{{ID: "a", Writes: at("x")}, {ID: "e", Kind: Effect, Writes: at("x")}}, ""},
		"what is wanted":   {[]NodeSpec{{ID: "a", Output: "a", Writes: at("rate-wanted")}, {ID: "b", Output: "b", Writes: at("rate-wanted")}}, ""},
	} {
		p := NewProgram("p")
		if err := p.Action(&ActionSpec{Name: "rate", Input: true}); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.nodes {
			n.Run, n.Kind = run, cmp.Or(n.Kind, Computation)
			if err := p.Add(n); err != nil {
				t.Fatal(name, err)
			}
		}
		got := ""
		if clash := p.WriteConflict(); clash != nil {
			got = clash.First.Node + " " + clash.Second.Node
		}
		if got != c.want {
			t.Errorf("%s: the clash is of %q, want %q", name, got, c.want)
		}
	}
}
