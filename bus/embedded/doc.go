// Package embedded runs a NATS server with JetStream within the process, configured as Settle
// needs it. It is the only package that links nats-server, so a program that connects to servers
// elsewhere does not.
//
//	server, err := embedded.Start(ctx, embedded.Config{StoreDir: "data"})
//	b, err := bus.Connect(ctx, bus.Config{Server: server})
package embedded
