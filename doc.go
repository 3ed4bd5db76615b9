// Package settle is a distributed, demand-driven, transactional reactive scheduler
// over NATS JetStream.
//
// A space (a tenant, an airport, a device) holds documents. Handlers change
// documents in answer to events, each event exactly once and in order, whatever
// crashes. Computations derive documents from documents, and run only while
// something observes the result. Events that a handler sends to another space
// leave exactly if the handler's transaction is in the log.
//
// # A program
//
//	p := settle.NewProgram("counter")
//	p.Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
//		by, _ := ev.Payload.Get("by").AsInt()
//		n, _ := tx.Get("count").AsInt()
//		tx.Set("count", n+by)
//		return tx.Get("count"), nil
//	})
//	p.Compute("double", func(v *settle.View) (settle.Value, error) {
//		n, _ := v.Get("count").AsInt()
//		return settle.ValueOf(2*n)
//	})
//
// # Running it
//
// Start runs a whole deployment in one process: an embedded server, workers and a
// coordinator. The same program runs on a fleet: workers and coordinators as
// processes of their own, around a NATS server or cluster.
//
//	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p)})
//	...
//	defer d.Stop(ctx)
//	receipt, err := d.Client().Call(ctx, settle.Outgoing{
//		Space: "alice", Stream: "add", ID: "event-1", Payload: map[string]int{"by": 2},
//	})
//
// Another process sends, waits and watches as a client of its own:
//
//	b, err := bus.Connect(ctx, bus.Config{URL: "nats://127.0.0.1:4222", Name: "shop"})
//	...
//	client, err := settle.NewClient(b, settle.ClientConfig{ID: "shop"})
//
// An application can also take part in a space itself, beside the worker that owns it:
// see Attach. The methods of Tx are documented in package space, those of Event and Value
// in package model, those of Attachment in package worker.
//
// ARCHITECTURE.md shows how the parts fit together; the package comments of space,
// bus, lanes, lineage, worker and coordinator say how each of them works.
package settle
