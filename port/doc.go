// Package port declares what Settle needs from the outside world: the log, the lanes, the saved state, the
// members and the services of a deployment, as interfaces over the types of package model.
//
// Package bus implements all of them over NATS JetStream, and package bus/membus in memory. The suite
// bus/buscontract checks that both behave the same, and defines every method precisely.
//
// # Which interface a caller takes
//
//	Client   sends events, reads documents, receipts and dead letters, asks workers
//	Survey   examines a deployment: its members, logs and lanes
//	Bus      hosts spaces or releases events: everything
//
// A function takes the smallest one that has what it needs.
//
// # Conventions
//
// A method whose name begins with Follow blocks until its context ends or the source is lost permanently. It
// delivers in order, from one goroutine, and never delivers a sequence twice in one call.
//
// Some reads ask the leader of a stream, others any replica. A replica may miss the newest messages; the
// methods state this where it applies. A leader that has been deposed without knowing it may also answer from
// an earlier state, for up to Deployment.StaleWindow.
package port
