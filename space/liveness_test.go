package space

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/model"
)

// The counts that say what is live agree with a rebuild from the roots, whatever is
// wired to what, circles and self-references included. (host.settle compares.)
func TestI2_LivenessAgreesWithARebuildFromItsRoots(t *testing.T) {
	const nodes = 7
	docs := []string{"base"}
	for i := range nodes {
		docs = append(docs, fmt.Sprint("out", i))
	}
	rapid.Check(t, func(t *rapid.T) {
		p := NewProgram("wired")
		for i := range nodes {
			// What a node reads stands in a document. What it computes never changes,
			// so that circles come to rest.
			err := p.Add(NodeSpec{ID: fmt.Sprint("n", i), Kind: Computation, Output: fmt.Sprint("out", i), Run: func(tx *Tx) (model.Value, error) {
				for e := range tx.Get("wires", fmt.Sprint(i)).Elements() {
					doc, _ := e.AsString()
					tx.Get(doc)
				}
				return model.Int(1), nil
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		err := p.Handle("wire", func(tx *Tx, ev *model.Event) (model.Value, error) {
			for k, v := range ev.Payload.All() {
				tx.Set("wires", v, k)
			}
			return model.Value{}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t)
		h := w.owner("w1", p)
		observed := map[string]bool{}
		for i := range 60 {
			switch rapid.SampledFrom([]string{"nothing", "wire", "wire", "observe", "unobserve"}).Draw(t, "move") {
			case "wire":
				n := fmt.Sprint(rapid.IntRange(0, nodes-1).Draw(t, "node"))
				reads := rapid.SliceOfNDistinct(rapid.SampledFrom(docs), 0, 3, rapid.ID).Draw(t, "reads")
				w.send(home, "wire", fmt.Sprint("e", i), map[string]any{n: reads})
			case "observe":
				doc := rapid.SampledFrom(docs).Draw(t, "doc")
				if !observed[doc] {
					observed[doc] = true
					h.observe(doc)
				}
			case "unobserve":
				if some := slices.Sorted(maps.Keys(observed)); len(some) > 0 {
					doc := rapid.SampledFrom(some).Draw(t, "doc")
					delete(observed, doc)
					h.core.Unobserve(doc)
				}
			}
			if rapid.Bool().Draw(t, "run") {
				h.run()
			} else {
				checkGraph(t, h.core.graph)
			}
		}
		for _, doc := range slices.Sorted(maps.Keys(observed)) {
			h.core.Unobserve(doc)
		}
		h.run()
		for _, n := range h.core.Nodes() {
			if n.Live {
				t.Fatalf("%s is live, and nobody observes anything", n.ID)
			}
		}
	})
}
