package main

import (
	"testing"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/settletest"
)

func TestPipeline(t *testing.T) {
	dir := t.TempDir()
	for _, c := range [][3]int{{8, 4, 270}, {0, 4, 0}, {3, 8, 0}} {
		got, err := run(t.Context(), c[0], c[1], embedded.Config{StoreDir: dir})
		if err != nil || got != c[2] {
			t.Errorf("(%d, %d): %d, %v; want %d", c[0], c[1], got, err, c[2])
		}
	}
}

// It performs 2 + fan_out + 2 * loop_iters actions, each once.
func TestPipeline_PerformsEachActionOnce(t *testing.T) {
	for _, c := range []struct{ fanOut, loopIters, result, actions int }{
		{8, 4, 270, 18}, {16, 8, 1190, 34}, {0, 4, 0, 10}, {3, 8, 0, 21}, {9, 4, 270, 19},
	} {
		p, err := program()
		if err != nil {
			t.Fatal(err)
		}
		s := settletest.New(t, p).Space("pipeline")
		s.Call("workflow-start", map[string]any{"workflow": "data_pipeline", "run": "r", "args": map[string]any{"fan_out": c.fanOut, "loop_iters": c.loopIters}})
		actions := 0
		for n := s.Perform(); n > 0; n = s.Perform() {
			actions += n
		}
		s.Expect("run_r", "done", "state")
		s.Expect("run_r", c.result, "result")
		if actions != c.actions {
			t.Errorf("(%d, %d): %d actions, want %d", c.fanOut, c.loopIters, actions, c.actions)
		}
	}
}
