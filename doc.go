// Package settle is a distributed, demand-driven, transactional reactive scheduler
// over NATS JetStream.
//
// A space (a tenant, an airport, a device) holds documents. Handlers change documents in response
// to events: each event takes effect exactly once and in order, whatever crashes. Computations
// derive documents from other documents, and run only while something observes the result. Events
// that a handler sends to another space are delivered if and only if the handler's transaction
// commits.
//
// # A program
//
// A program is a set of functions registered under typed names. A name holds no data, so the
// program, its tests and its clients share it.
//
//	var (
//		count  = settle.NewCell[int]("count")           // a document that handlers write
//		double = settle.NewDerived[int]("double")       // a derived document
//		add    = settle.NewRequest[int, int]("add")     // events: payload, result
//	)
//
//	p := settle.NewProgram("counter")
//	add.Handle(p, func(tx *settle.Tx, by int) (int, error) {
//		count.Update(tx, func(n *int) { *n += by })
//		return count.Get(tx), nil
//	})
//	double.Compute(p, func(v *settle.View) (int, error) { return 2 * count.Get(v), nil })
//
//	names         Cell, Field, Derived, Part, Rows, DerivedRows, Ref, Stream, Request, Trigger,
//	              Action, Input
//	functions     Handle (of the three kinds of events), Compute, Each, Program.ComputeInto, Materialize,
//	              Effect, Cron, Action.Perform, Input.Fetch
//	through       Tx (handlers), View (computations and effects), Draft (nodes that write)
//	options       of nodes: Debounce, Throttle, NoAutoDebounce, ChangeGroup, Volatile, Version,
//	              Expects, Using; of Perform and Fetch: Attempts, Backoff, Timeout, AtATime, Keep
//
// Program.Handle, Compute and Node are the untyped forms. Package settletest tests programs in
// memory and in virtual time.
//
// # Running it
//
// Start runs a whole deployment in one process: an embedded server, workers and a coordinator. The
// same program runs in a fleet, where workers and coordinators are separate processes around a NATS
// server or cluster.
//
//	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p)})
//	...
//	defer d.Stop(ctx)
//	n, err := add.Call(ctx, d.Client().Space("alice"), settle.ID("order-17"), 2)
//
// Another process connects as a client to send events, wait for receipts and watch documents:
//
//	b, err := bus.Connect(ctx, bus.Config{URL: "nats://127.0.0.1:4222", Name: "shop"})
//	...
//	client, err := settle.NewClient(b, settle.ClientConfig{ID: "shop"})
//
// An application can also take part in a space itself, beside the worker that owns it: see Space.Attach.
// The methods of Tx are documented in package space, those of Event, Value and receipts in package model, and
// those of workers and attachments in package worker.
//
// docs/ has a page for each primitive; ARCHITECTURE.md shows how the parts fit together; the
// package comments of space, bus, lanes, lineage, worker and coordinator explain how each of them
// works.
package settle
