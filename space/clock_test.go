package space

import (
	"testing"
	"time"

	"github.com/settlehq/settle/model"
)

// A host whose clock is set back does not delay nodes without gates.
func TestTimeDoesNotGoBack(t *testing.T) {
	p := newProgram(t).sum("out", "in")
	h := newWorld(t).owner("w1", p.Program)
	h.observe("out")
	for i, now := range []time.Duration{time.Hour, time.Second, -time.Second} {
		h.now = now
		h.given(put("in", i+1))
		if got := num(h.core.Value("out")); got != int64(i+1) {
			t.Errorf("at %s out is %d, want %d", now, got, i+1)
		}
	}
}

// Nor does one whose clock starts below zero.
func TestTimeIsNotNegative(t *testing.T) {
	h := newWorld(t).host("w1", newProgram(t).sum("out", "in").Program)
	h.now = -time.Hour
	h.takeOver()
	h.observe("out")
	h.given(put("in", 1))
	wantValue(t, h, "out", "1")
}

// A declared read of a node's own output has no effect on other nodes.
func TestADeclaredReadOfTheNodesOwnOutputHasNoEffect(t *testing.T) {
	h := newWorld(t).owner("w1", newProgram(t).Program)
	h.register(NodeSpec{
		ID: "n", Kind: Computation, Output: "o", DeclaredReads: []Address{{Doc: "o"}},
		Run: func(*Tx) (model.Value, error) { return model.Int(1), nil },
	})
	checkGraph(t, h.core.graph)
}
