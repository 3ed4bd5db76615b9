package space

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

// changing is a program whose node makes a child of the kind that the document kind names, and fails if fail is set.
func changing(t *testing.T, ran *[]string) program {
	return newProgram(t).set().add(NodeSpec{ID: "maker", Kind: Effect, Run: func(tx *Tx) (model.Value, error) {
		kind, _ := tx.Get("kind").AsString()
		run := func(tx *Tx) (model.Value, error) {
			*ran = append(*ran, fmt.Sprint(kind, " ", tx.Get("in")))
			return tx.Get("in"), nil
		}
		switch kind {
		case "computation":
			tx.Node(NodeSpec{ID: "child", Kind: Computation, Output: "out", Run: run})
		case "effect":
			tx.Node(NodeSpec{ID: "child", Kind: Effect, Run: run})
		case "elsewhere":
			tx.Node(NodeSpec{ID: "child", Kind: Computation, Output: "other", Run: run})
		}
		if !tx.Get("fail").IsAbsent() {
			return model.Value{}, fmt.Errorf("as told")
		}
		return model.Value{}, nil
	}})
}

type kindTest struct {
	*host
	ran   []string
	saved memory
	n     int
}

func newKindTest(t *testing.T) *kindTest {
	k := &kindTest{saved: memory{}}
	k.host = newWorld(t).owner("w1", changing(t, &k.ran).Program)
	return k
}

func (k *kindTest) set(docs map[string]any) {
	k.t.Helper()
	k.n++
	k.w.send(home, "set", fmt.Sprint("e", k.n), docs)
	k.host.run()
}

func (k *kindTest) want(what string, ran ...string) {
	k.t.Helper()
	if !slices.Equal(k.ran, ran) {
		k.t.Errorf("%s: the child ran as %q, want %q", what, k.ran, ran)
	}
	k.ran = nil
}

// A computation that its maker registers as an effect becomes one: it runs without a reader. It never becomes a
// computation again, and its document stays.
func TestChildren_AComputationIsPromotedToAnEffectAndNeverDemoted(t *testing.T) {
	k := newKindTest(t)
	k.set(map[string]any{"in": 1, "kind": "computation"})
	k.want("it is made", "computation 1")
	k.set(map[string]any{"in": 2})
	k.want("it is dormant")
	k.set(map[string]any{"kind": "effect"})
	k.want("it is promoted", "effect 2")
	wantValue(t, k.host, "out", "1") // an effect has no output
	k.set(map[string]any{"in": 3})
	k.want("an effect runs by itself", "effect 3")
	k.set(map[string]any{"kind": "computation"})
	k.set(map[string]any{"in": 4})
	k.want("it is not demoted", "computation 4")
	wantValue(t, k.host, "out", "4")
	if err := k.core.graph.byID["maker"].more.lastErr; err != nil {
		t.Errorf("the maker has failed: %v", err)
	}
}

// The kind is that of the last registration that took effect.
func TestChildren_APromotionIsUndoneWithItsRun(t *testing.T) {
	k := newKindTest(t)
	k.set(map[string]any{"in": 1, "kind": "computation"})
	k.want("it is made", "computation 1")
	k.set(map[string]any{"kind": "effect", "fail": true})
	k.ran = nil
	k.set(map[string]any{"in": 2})
	k.want("the promotion has failed")
}

// Its places are fixed.
func TestChildren_AKindMayChangeAndAnOutputMayNot(t *testing.T) {
	k := newKindTest(t)
	k.set(map[string]any{"in": 1, "kind": "computation"})
	k.set(map[string]any{"kind": "elsewhere"})
	err := k.core.graph.byID["maker"].more.lastErr
	if err == nil || err.Error() != `register node "child": it is there with other outputs, writes or envelope; those are fixed, use another id` {
		t.Errorf("the maker says %v", err)
	}
}

// An effect stays an effect over a restart, as over a takeover.
func TestChildren_APromotionHoldsOverARestart(t *testing.T) {
	for _, after := range []string{"effect", "computation"} {
		t.Run(after, func(t *testing.T) {
			k := newKindTest(t)
			k.set(map[string]any{"in": 1, "kind": "computation"})
			k.set(map[string]any{"kind": "effect"})
			k.set(map[string]any{"kind": after})
			k.restart(k.saved)
			k.ran = nil
			k.set(map[string]any{"in": 2})
			k.want("after the restart", after+" 2")
		})
	}
}
