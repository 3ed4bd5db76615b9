package space

import (
	"errors"
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
)

// Computations that fail are listed while something needs them, with the observed documents that follow from them, and a number shows
// that the list may have changed. It ends with a run that succeeds, and with the demand.
func TestFailing_ListsWhatIsNeededAndFails(t *testing.T) {
	p := newProgram(t).set().sum("c", "b").sum("b", "a").sum("spare", "base")
	for _, id := range []string{"a", "z"} {
		p.add(NodeSpec{ID: id, Kind: Computation, Output: id, Run: func(tx *Tx) (model.Value, error) {
			if n, _ := tx.Get("base").AsInt(); n < 0 {
				return model.Value{}, fmt.Errorf("%d is negative", n)
			} else if n == 13 {
				panic(errors.New("unlucky"))
			}
			return tx.Get("base"), nil
		}})
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program)
	at := h.core.FailingChanges()
	lists := func(when, want string, news bool) {
		t.Helper()
		h.run()
		f := h.core.Failing(1)
		text := fmt.Sprintf("%d%v", f.Count, f.Docs)
		for _, n := range f.Nodes {
			text += fmt.Sprint(" ", n.Node, ": ", n.Err)
		}
		if now := h.core.FailingChanges(); text != want || (now != at) != news {
			t.Errorf("%s: %s, want %s; changes %d after %d", when, text, want, now, at)
		} else {
			at = now
		}
	}
	set := func(n int) { w.send(home, "set", fmt.Sprint("e", w.laneSeq), map[string]any{"base": n}) }
	set(-1)
	lists("nothing is observed", "0[]", false)
	h.observe("c")
	lists("one is needed", "1[c] a: -1 is negative", true)
	lists("nothing has happened", "1[c] a: -1 is negative", false)
	h.observe("z")
	h.observe("spare")
	lists("two are needed", "2[c z] a: -1 is negative", true)
	set(-2)
	lists("the errors are others", "2[c z] a: -2 is negative", true)
	set(13)
	lists("they panic", "2[c z] a: node a panicked: unlucky", true)
	h.core.Unobserve("c")
	lists("one is needed no more", "1[z] z: node z panicked: unlucky", true)
	h.observe("c")
	lists("it is needed again", "2[c z] a: node a panicked: unlucky", true)
	set(5)
	lists("they succeed", "0[]", true)
	set(6)
	lists("they succeed again", "0[]", false)
}
