package space

import (
	"fmt"
	"testing"

	"github.com/settlehq/settle/model"
)

// links is a chain of documents, each with the value of the one before; seen has what its functions have read, and
// what an effect at its end has seen.
func links(t *testing.T, n int) (p program, seen map[string]int) {
	seen = map[string]int{}
	p = newProgram(t).set()
	for i := 1; i <= n; i++ {
		from := fmt.Sprint("c", i-1)
		p = p.compute(fmt.Sprint("c", i), func(tx *Tx) any {
			v := tx.Get(from)
			seen[v.String()]++
			return v
		})
	}
	return p, seen
}

// A chain that is read for the first time nests its runs. However long it is, neither its functions, nor its
// documents, nor the effect at its end see a value that no input ever had.
func TestI9_AChainOfAnyLengthShowsNoValueThatNoInputHad(t *testing.T) {
	const n = 20_000
	p, seen := links(t, n)
	w := newWorld(t)
	w.put(home, put("c0", "first"))
	var watched []string
	end := fmt.Sprint("c", n)
	p = p.add(NodeSpec{ID: "watch", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		if tx.Get("on").IsAbsent() {
			return model.Value{}, nil
		}
		watched = append(watched, tx.Get(end).String())
		return model.Value{}, nil
	}})
	h := w.owner("w1", p.Program)
	h.core.cfg.Trace.Changed = func(i ChangeInfo) {
		if v := i.After.String(); v != `"first"` && v != `"second"` && v != "true" {
			t.Fatalf("%s becomes %s", i.Doc, v)
		}
	}
	w.send(home, "set", "e1", map[string]any{"on": true})
	h.run()
	w.send(home, "set", "e2", map[string]any{"c0": "second"})
	h.run()
	if fmt.Sprint(watched) != `["first" "second"]` {
		t.Errorf("the watch has seen %v", watched)
	}
	// A commit without room repeats a run.
	if len(seen) != 2 || seen[`"second"`] < n || seen[`"second"`] > n+100 {
		t.Errorf("the functions have read %v", seen)
	}
	if runs := h.core.Stats().Runs; runs > 4*n {
		t.Errorf("%d runs for two changes of %d links", runs, n)
	}
	if h.core.Stats().Deferred != 0 || h.now != 0 {
		t.Errorf("%d nodes deferred", h.core.Stats().Deferred)
	}
}

// The same for a chain whose links know each other already, and that is dormant.
func TestI9_ALongDormantChainIsReadAtItsEndWithoutOldValues(t *testing.T) {
	const n = 5_000
	p, _ := links(t, n)
	end := fmt.Sprint("c", n)
	w := newWorld(t)
	w.put(home, put("c0", "first"))
	h := w.owner("w1", p.Program)
	h.observe(end)
	h.run()
	h.core.Unobserve(end)
	w.send(home, "set", "e1", map[string]any{"c0": "second"})
	h.run()
	var got []string
	err := h.core.Register(NodeSpec{ID: "reader", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		got = append(got, tx.Get(end).String())
		return model.Value{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	h.run()
	if fmt.Sprint(got) != `["second"]` {
		t.Errorf("the reader has seen %v", got)
	}
}
