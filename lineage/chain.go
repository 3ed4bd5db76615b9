package lineage

import (
	"fmt"

	"github.com/settlehq/settle/model"
)

// DefaultMaxChain is the maximum length of a chain of events, each of which is sent by the handling of the
// one before.
const DefaultMaxChain = 10_000

// Next returns the depth of the events that the handling of an event sends without a delay: one more than its
// own (docs/adr/0030). A depth above most is an error, unless most is negative.
func Next(of *model.Event, most int) (uint64, error) {
	if most < 0 || of.Depth < uint64(most) {
		return of.Depth + 1, nil
	}
	return 0, fmt.Errorf("event %s of stream %s is the last of a chain of events that send each other: its depth is %d, and %d is the most (MaxChain). "+
		"If the chain is to go on, put a time between its events (SendAfter in Go, after = \"1ms\" in Starlark, a timer); redriving this one has it go on for as many again", of.ID, of.Stream, of.Depth, most)
}
