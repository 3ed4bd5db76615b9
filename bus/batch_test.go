package bus

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

// What the server says at the end of a batch (nats-server, getDirectMulti and
// getDirectRequest).
func TestBatch_ItsEndIsTakenForOneOnlyIfAllHasArrived(t *testing.T) {
	for _, c := range []struct {
		name, status, description string
		found                     int
		multi, more, fails        bool
		pending                   string
	}{
		{name: "nothing matches a pattern", status: "404", description: "No Results", multi: true},
		{name: "the first of a pattern is gone", status: "404", description: "Message Not Found", multi: true, fails: true},
		{name: "another one is", status: "404", description: "Message Not Found", found: 2, multi: true, fails: true},
		{name: "nothing after a sequence", status: "404", description: "Message Not Found"},
		{name: "something, and then it is not", status: "404", description: "Message Not Found", found: 1, fails: true},
		{name: "all", status: "204", description: "EOB", found: 2, multi: true, pending: "0"},
		{name: "a part", status: "204", description: "EOB", found: 2, pending: "3", more: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := nats.Header{}
			h.Set(headerStatus, c.status)
			h.Set(headerDescription, c.description)
			if c.status == "204" {
				h.Set(headerLastSequence, "7")
				h.Set(headerNumPending, c.pending)
			}
			found, more, err := endOfBatch(make([]storedMsg, c.found), 7, h, c.multi)
			if errors.Is(err, errTransient) != c.fails || err != nil && !c.fails {
				t.Errorf("error %v", err)
			}
			if err == nil && (len(found) != c.found || more != c.more) {
				t.Errorf("%d messages, and more: %v", len(found), more)
			}
		})
	}
}
