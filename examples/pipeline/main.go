// Command pipeline runs the workflow of pipeline.star with actions in Go, and prints its result.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"log"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/flow"
)

//go:embed pipeline.star
var source []byte

type item struct {
	ID    int    `json:"id"`
	Value string `json:"value"`
}

type processed struct {
	ID    int    `json:"id"`
	Hash  string `json:"hash"`
	Score int    `json:"score"`
}

type chunkResult struct {
	Chunk int `json:"chunk_id"`
	Total int `json:"total"`
}

func program() (*settle.Program, error) {
	p := settle.NewProgram("pipeline")
	w := flow.New(p)
	w.Starlark("pipeline.star", source)
	flow.Perform(w, "fetch_items", func(_ context.Context, in struct {
		Count int `json:"count"`
	},
	) ([]item, error) {
		items := make([]item, in.Count)
		for i := range items {
			items[i] = item{i, fmt.Sprintf("item_%d", i)}
		}
		return items, nil
	})
	flow.Perform(w, "process_item", func(_ context.Context, in struct {
		Item item `json:"item"`
	},
	) (processed, error) {
		return processed{in.Item.ID, fmt.Sprintf("hash_%d", in.Item.ID), in.Item.ID * 10}, nil
	})
	flow.Perform(w, "validate_chunk", func(_ context.Context, in struct {
		Chunk int         `json:"chunk_id"`
		Items []processed `json:"items"`
	},
	) (bool, error) {
		for _, it := range in.Items {
			if it.Score <= 0 {
				return false, nil
			}
		}
		return true, nil
	})
	flow.Perform(w, "aggregate_chunk", func(_ context.Context, in struct {
		Chunk int         `json:"chunk_id"`
		Items []processed `json:"items"`
		Valid bool        `json:"is_valid"`
	},
	) (chunkResult, error) {
		r := chunkResult{Chunk: in.Chunk}
		for _, it := range in.Items {
			if in.Valid {
				r.Total += it.Score
			}
		}
		return r, nil
	})
	flow.Perform(w, "finalize", func(_ context.Context, in struct {
		Results []chunkResult `json:"results"`
	},
	) (total int, err error) {
		for _, r := range in.Results {
			total += r.Total
		}
		return total, nil
	})
	return p, w.Register()
}

func main() {
	result, err := run(context.Background(), 8, 4, embedded.Config{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result)
}

// run starts a deployment in this process, and a run of the workflow in it. The ID of the run is made of its arguments, so
// a second one with the same arguments has the result of the first.
func run(ctx context.Context, fanOut, loopIters int, server embedded.Config) (result int, err error) {
	p, err := program()
	if err != nil {
		return 0, err
	}
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p), Server: server})
	if err != nil {
		return 0, err
	}
	defer func() { err = cmp.Or(err, d.Stop(ctx)) }()
	runs := flow.In(d.Client().Space("pipeline"))
	id := fmt.Sprintf("run-%d-%d", fanOut, loopIters)
	if _, err := runs.Start(ctx, "data_pipeline", id, map[string]int{"fan_out": fanOut, "loop_iters": loopIters}); err != nil {
		return 0, err
	}
	return flow.Result[int](ctx, runs, id)
}
