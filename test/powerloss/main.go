// Command powerloss cuts the power of NATS servers under a running Settle deployment, and counts the
// acknowledged data that is lost.
//
// The servers are real processes; their disks are package lossyfs. A cut is SIGKILL for the
// server, and the data on its disk that was not synced is dropped.
//
//	go run . -nodes 1 -sync always -cuts 20
//	go run . -nodes 3 -hit 3 -sync default -cuts 20
//
// It needs Linux, /dev/fuse and root. See README.md for its results.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	var p plan
	flag.IntVar(&p.Nodes, "nodes", 1, "servers: 1, or a cluster of 3")
	flag.IntVar(&p.Hit, "hit", 1, "how many of them are cut at once")
	flag.StringVar(&p.Sync, "sync", "always", "sync_interval of the servers; default leaves it out, which is two minutes")
	flag.StringVar(&p.Fault, "fault", power, "power: the disk drops what was not synced; kill: only the process dies")
	flag.BoolVar(&p.Torn, "torn", false, "a random part of what was not synced survives a power cut")
	flag.IntVar(&p.Cuts, "cuts", 20, "how often")
	flag.Uint64Var(&p.Seed, "seed", 1, "of what is left to chance")
	flag.IntVar(&p.Spaces, "spaces", 40, "spaces, each with a client of its own")
	flag.BoolVar(&p.Verbose, "v", false, "show each cut")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	row, err := p.run(ctx, os.Stderr)
	_ = json.NewEncoder(os.Stdout).Encode(row)
	if err != nil {
		fmt.Fprintln(os.Stderr, "powerloss:", err)
		os.Exit(1)
	}
}
