package worker_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// BenchmarkRead_PresentStates measures a status query for the owner of watched documents.
func BenchmarkRead_PresentStates(b *testing.B) {
	for name, spaces := range map[string]int{"one space": 1, "a space each": 10_000} {
		b.Run(name, func(b *testing.B) { benchStates(b, spaces, 10_000) })
	}
}

func benchStates(b *testing.B, spaces, docs int) {
	server := membus.NewServer(membus.Config{Partitions: 1})
	bus := server.Connect("a")
	p := space.NewProgram("many")
	for i := range docs / spaces {
		doc := "d" + strconv.Itoa(i)
		if err := p.Add(space.NodeSpec{ID: doc, Kind: space.Computation, Output: doc, Run: func(tx *space.Tx) (model.Value, error) { return tx.Get("n"), nil }}); err != nil {
			b.Fatal(err)
		}
	}
	w, err := worker.New(bus, worker.Config{ID: "a", Programs: func(string) (*space.Program, error) { return p, nil }})
	if err == nil {
		err = w.Start(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	defer bus.Kill()
	defer w.Kill()
	var places []model.DocumentRef
	for s := range spaces {
		for i := range docs / spaces {
			at := model.DocumentRef{Space: "s" + strconv.Itoa(s), Document: "d" + strconv.Itoa(i)}
			places = append(places, at)
			if err := bus.Observe(model.Lease{Space: at.Space, Doc: at.Document, Watcher: "w", TTL: time.Hour}); err != nil {
				b.Fatal(err)
			}
		}
	}
	ask := func() (pending int) {
		ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
		defer cancel()
		states, _ := w.Read(ctx, model.ReadRequest{Documents: places})
		for _, g := range states {
			if g.Passing {
				pending++
			}
		}
		return pending
	}
	for pending := docs; pending > 0; {
		pending = ask()
	}
	for b.Loop() {
		if n := ask(); n > 0 {
			b.Fatal(n, "are pending")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(docs), "ns/document")
}
