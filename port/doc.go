// Package port declares what Settle needs from the outside world: the log, the lanes, the saved
// state, the members and the questions of a deployment, as interfaces over the types of package
// model.
//
// Package bus implements all of them over NATS JetStream and package bus/membus in memory. The
// suite bus/buscontract checks that both mean the same, and is the precise meaning of every
// method.
//
// # Which interface a caller takes
//
//	Client   sends events, reads documents, receipts and dead letters, asks workers
//	Survey   looks at a deployment: its members, logs and lanes
//	Bus      hosts spaces or releases events: everything
//
// A function takes the smallest one that has what it needs.
//
// # Conventions
//
// A method whose name begins with Follow blocks until its context ends or the source is lost for
// good. It delivers in order, from one goroutine, and never delivers one sequence twice in one
// call.
//
// Some reads ask the leader of a stream, others any replica. A reader of a replica may miss the
// newest messages; the methods state which of them do. A leader that has been deposed without
// knowing it may answer from the past as well, for up to Deployment.Hindsight.
package port
