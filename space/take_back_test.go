package space

import (
	"errors"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

// makers returns two nodes that make the child kid depending on documents: each makes it while its document
// has its name, and b fails while the document fail exists. kid writes its maker.
func makers(t *testing.T, ran *[]string) program {
	p := newProgram(t)
	for _, name := range []string{"a", "b"} {
		p.compute(name, func(tx *Tx) any {
			if tx.Get(name + "-has").IsAbsent() {
				return "none"
			}
			tx.Node(NodeSpec{ID: "kid", Kind: Computation, Output: "kid", Run: func(tx *Tx) (model.Value, error) {
				*ran = append(*ran, name)
				return model.MustOf(name + tx.Get("base").String()), nil
			}})
			if name == "b" && !tx.Get("fail").IsAbsent() {
				return errors.New("no")
			}
			return name
		})
	}
	return p
}

func parentOf(h *host) string {
	n, _ := h.core.Inspect().Node("kid")
	return n.Parent
}

// A run that fails changes nothing: a child that it has adopted from another node returns to that node, with
// its function, and is removed when that node no longer makes it.
func TestAFailedRunReturnsTheChildItAdopted(t *testing.T) {
	var ran []string
	w := newWorld(t)
	h := w.owner("w1", makers(t, &ran).Program)
	for _, doc := range []string{"a", "b", "kid"} {
		h.observe(doc)
	}
	h.given(put("a-has", 1), put("base", 1))
	if got := parentOf(h); got != "a" {
		t.Fatalf("kid belongs to %q", got)
	}
	h.given(put("fail", 1), put("b-has", 1))
	if got := parentOf(h); got != "a" {
		t.Errorf("after b has failed, kid belongs to %q", got)
	}
	if b, _ := h.core.Inspect().Node("b"); len(b.Children) > 0 {
		t.Errorf("b has %v", b.Children)
	}
	if a, _ := h.core.Inspect().Node("a"); !slices.Equal(a.Children, []string{"kid"}) {
		t.Errorf("a has %v", a.Children)
	}
	h.given(put("base", 2))
	wantValue(t, h, "kid", `"a2"`)
	h.given(model.Write{Doc: "a-has", Delete: true})
	if got := parentOf(h); got != "" {
		t.Errorf("a no longer makes kid, but it exists and belongs to %q", got)
	}
	// A run that does not fail keeps the child.
	h.given(put("a-has", 1))
	h.given(model.Write{Doc: "fail", Delete: true})
	if got := parentOf(h); got != "b" {
		t.Errorf("b was the last to make kid, but it belongs to %q", got)
	}
	h.given(put("base", 3))
	wantValue(t, h, "kid", `"b3"`)
}
