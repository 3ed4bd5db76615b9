package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// internalStreams are the streams of package runs on which only spaces send.
var internalStreams = []string{runs.StreamTimer, runs.StreamChild, runs.StreamChildEnd, runs.StreamChildCancel, runs.StreamChildSent, runs.StreamMet}

// forge draws events of clients on the internal streams, with payloads that would change runs: a step, and the end, the start and the
// cancellation of a child.
func (p *plan) forge(c *chance) {
	starts := slices.DeleteFunc(slices.Clone(p.items), func(it item) bool { return it.stream != runs.StreamStart })
	for range 1 + c.below(4) {
		start := oneOf(c, starts...)
		var of struct{ Run string }
		if err := json.Unmarshal([]byte(start.payload), &of); err != nil {
			panic(err)
		}
		stream, run := oneOf(c, internalStreams...), of.Run
		if stream == runs.StreamChild {
			run += "forged"
		}
		p.add(p.ofRun(c, start.at+c.between(0, 2*time.Second), start.space, stream, run,
			`"step":"more","call":"0","calls":["0"],"state":"done","value":1,"wait":"wait 0","workflow":"leaf","args":{"n":1},"parent":%q`, of.Run))
	}
}

// forged reports whether a client has sent an event on a stream on which only spaces send.
func forged(stream string, ev *model.Event) bool {
	return slices.Contains(internalStreams, stream) && model.IsChosen(ev.ID)
}

// refused takes an event that a client has forged. It is rejected, unless it was cancelled or given up before, and changes no run.
func (k *clerk) refused(stream string, ev *model.Event) {
	rc := k.tx.Receipt
	rejected := rc.Outcome == model.Rejected && rc.Code == model.InternalStream
	givenUp := rc.Outcome == model.Failed && strings.HasPrefix(rc.Error, "the handler never came back")
	if !rejected && !givenUp && rc.Outcome != model.Cancelled && rc.Outcome != model.Expired {
		k.f.wrong("runs", "%s %s %s was sent by a client, and is %s: %s", stream, ev.ID, ev.Payload, rc.Outcome, rc.Error)
	}
	if rejected {
		k.f.w.count("events that clients have forged")
	}
	for doc := range k.after { // any order: each on its own
		if isRunDoc(doc) {
			k.f.wrong("runs", "%s %s was sent by a client, and has written %s", stream, ev.ID, doc)
		}
	}
	if len(k.tx.Sends) > 0 {
		k.f.wrong("runs", "%s %s was sent by a client, and has sent %d events", stream, ev.ID, len(k.tx.Sends))
	}
}

// takeMet takes the report of a condition, which no workflow of the simulation waits for.
func (k *clerk) takeMet(ev *model.Event) {
	k.f.wrong("runs", "%s reports a condition", ev.ID)
}
