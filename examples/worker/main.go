// Command worker is a worker of a fleet with a Go program of its own, with all flags of spaceworker:
//
//	go run ./examples/worker --help
package main

import (
	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/counter"
	"github.com/settlehq/settle/spaceworker"
)

func main() {
	spaceworker.Main(settle.Always(counter.Program()))
}
