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

type params struct {
	FanOut    int `json:"fan_out"`
	LoopIters int `json:"loop_iters"`
}

type scored struct{ ID, Score int }

type chunk struct {
	ID    int
	Items []scored
	Valid bool
}

var (
	fetchItems     = flow.NewAction[int, []int]("fetch_items")
	processItem    = flow.NewAction[int, scored]("process_item")
	validateChunk  = flow.NewAction[chunk, bool]("validate_chunk")
	aggregateChunk = flow.NewAction[chunk, int]("aggregate_chunk")
	finalize       = flow.NewAction[[]int, int]("finalize")
)

// pipeline is examples/pipeline with the steps in Go, too.
func pipeline(w *flow.Workflows) {
	flow.Define(w, "data_pipeline", "1", func(b *flow.Builder, in flow.Value[params]) flow.Value[int] {
		items := flow.Call(b, fetchItems, flow.Map(b, in, func(p params) int { return p.FanOut }))
		processed := flow.Each(b, processItem, items)
		chunks := flow.Map2(b, in, processed, func(p params, all []scored) (chunks []chunk) {
			for size, i := len(all)/p.LoopIters, 0; i < p.LoopIters; i++ {
				chunks = append(chunks, chunk{ID: i, Items: all[i*size : (i+1)*size]})
			}
			return chunks
		})
		totals := flow.Loop(b, chunks, func(b *flow.Builder, c flow.Value[chunk]) flow.Value[int] {
			valid := flow.Call(b, validateChunk, c)
			return flow.Call(b, aggregateChunk, flow.Map2(b, c, valid, func(c chunk, valid bool) chunk {
				c.Valid = valid
				return c
			}))
		})
		return flow.Call(b, finalize, totals)
	})
}

// performed counts the calls of actions.
func performers(w *flow.Workflows, performed *int) {
	fetchItems.Perform(w, func(_ context.Context, n int) ([]int, error) {
		*performed++
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		return items, nil
	})
	processItem.Perform(w, func(_ context.Context, id int) (scored, error) {
		*performed++
		return scored{id, 10 * id}, nil
	})
	validateChunk.Perform(w, func(_ context.Context, c chunk) (bool, error) {
		*performed++
		for _, it := range c.Items {
			if it.Score <= 0 {
				return false, nil
			}
		}
		return true, nil
	})
	aggregateChunk.Perform(w, func(_ context.Context, c chunk) (total int, err error) {
		*performed++
		for _, it := range c.Items {
			if c.Valid {
				total += it.Score
			}
		}
		return total, nil
	})
	finalize.Perform(w, func(_ context.Context, totals []int) (sum int, err error) {
		*performed++
		for _, n := range totals {
			sum += n
		}
		return sum, nil
	})
}

// A workflow that is built in Go has the values of the one in Starlark.
func TestDefine_ThePipelineHasTheSameValues(t *testing.T) {
	for _, c := range [][4]int{{8, 4, 270, 18}, {16, 8, 1190, 34}, {0, 4, 0, 10}, {3, 8, 0, 21}, {9, 4, 270, 19}} {
		p := settle.NewProgram("pipeline")
		w := flow.New(p)
		pipeline(w)
		performed := 0
		performers(w, &performed)
		if err := w.Register(); err != nil {
			t.Fatal(err)
		}
		s := settletest.New(t, p).Space("s")
		s.Call("workflow-start", map[string]any{"workflow": "data_pipeline", "run": "r", "args": params{c[0], c[1]}})
		perform(s)
		s.Expect("run_r", "done", "state")
		s.Expect("run_r", c[2], "result")
		if performed != c[3] {
			t.Errorf("%v: %d actions", c, performed)
		}
	}
}

// Without chunks the function that makes them panics: the run fails, and the worker goes on.
func TestDefine_APanicOfAFunctionFailsTheRun(t *testing.T) {
	p := settle.NewProgram("pipeline")
	w := flow.New(p)
	pipeline(w)
	n := 0
	performers(w, &n)
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	s := settletest.New(t, p).Space("s")
	s.Call("workflow-start", map[string]any{"workflow": "data_pipeline", "run": "r", "args": params{1, 0}})
	perform(s)
	s.Expect("run_r", "failed", "state")
	if got := fmt.Sprint(s.Get("run_r", "error", "message")); !strings.HasSuffix(got, `panic: runtime error: integer divide by zero"`) {
		t.Error(got)
	}
}
