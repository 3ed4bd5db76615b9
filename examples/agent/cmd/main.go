// Command cmd has a scripted model send a mail, which a person approves.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/agent"
)

func main() {
	dir, err := os.MkdirTemp("", "agent-")
	check(err)
	defer os.RemoveAll(dir)
	tools := agent.Tools{"mail": func(_ context.Context, key, text string) (string, error) {
		fmt.Printf("    a mail goes out under the key %s: %s\n", key, text)
		return "sent", nil
	}}
	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(agent.Program(agent.Script, tools)), Server: embedded.Config{StoreDir: dir},
	})
	check(err)
	defer func() { check(d.Stop(ctx)) }()

	desk := d.Client().Space("desk")
	_, err = agent.Tell.Post(ctx, desk, settle.ID("m1"), "mail: hello")
	check(err)
	for u, err := range agent.View.Watch(ctx, desk) {
		check(err)
		s := u.Value
		fmt.Printf("%-9s %s %s\n", s.State, s.Last, s.Ask)
		if s.Ask != "" {
			_, err := agent.Approve.Post(ctx, desk, settle.ID("a1"), agent.Verdict{Turn: 1, OK: true})
			check(err)
		} else if s.State == agent.Idle && s.Messages > 1 {
			break
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
