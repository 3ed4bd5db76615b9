package wire

import (
	"cmp"
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

// These are the server's messages at the end of a batch (nats-server, getDirectMulti and getDirectRequest).
func TestBatch_EndsOnlyWhenAllMessagesArrived(t *testing.T) {
	for _, c := range []struct {
		name, status, description string
		found                     int
		multi, more, fails        bool
		pending, last             string
	}{
		{name: "nothing matches a pattern", status: "404", description: "No Results", multi: true},
		{name: "the first of a pattern is gone", status: "404", description: "Message Not Found", multi: true, fails: true},
		{name: "another one is", status: "404", description: "Message Not Found", found: 2, multi: true, fails: true},
		{name: "nothing after a sequence", status: "404", description: "Message Not Found"},
		{name: "something, and then it is not", status: "404", description: "Message Not Found", found: 1, fails: true},
		{name: "all", status: "204", description: "EOB", found: 2, multi: true, pending: "0"},
		{name: "all, and one was lost", status: "204", description: "EOB", found: 2, pending: "0", last: "9", fails: true},
		{name: "a part", status: "204", description: "EOB", found: 2, pending: "3", more: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := nats.Header{}
			h.Set(HeaderStatus, c.status)
			h.Set(HeaderDescription, c.description)
			if c.status == "204" {
				h.Set(HeaderLastSequence, cmp.Or(c.last, "7"))
				h.Set(headerNumPending, c.pending)
			}
			found, more, err := endOfBatch(make([]StoredMsg, c.found), 7, h, c.multi)
			if errors.Is(err, ErrTransient) != c.fails || err != nil && !c.fails {
				t.Errorf("error %v", err)
			}
			if err == nil && (len(found) != c.found || (more > 0) != c.more) {
				t.Errorf("%d messages, and more: %v", len(found), more)
			}
		})
	}
}

// Each message of a batch names the one before it.
func TestBatch_APartThatWasLostIsNoticed(t *testing.T) {
	part := func(seq, before uint64) *nats.Msg {
		m := &nats.Msg{Header: nats.Header{}}
		SetNumber(m.Header, HeaderSequence, seq)
		SetNumber(m.Header, HeaderLastSequence, before)
		return m
	}
	end := &nats.Msg{Header: nats.Header{HeaderStatus: {"204"}, HeaderLastSequence: {"9"}}}
	b := aLink()
	for name, c := range map[string]struct {
		parts []*nats.Msg
		want  error
	}{
		"all messages arrived": {[]*nats.Msg{part(4, 0), part(6, 4), part(9, 6), end}, nil},
		"the first is not":     {[]*nats.Msg{part(6, 4), part(9, 6), end}, ErrTransient},
		"another is not":       {[]*nats.Msg{part(4, 0), part(9, 6), end}, ErrTransient},
		"the last is not":      {[]*nats.Msg{part(4, 0), part(6, 4), end}, ErrTransient},
	} {
		replies := make(chan *nats.Msg, len(c.parts))
		for _, m := range c.parts {
			replies <- m
		}
		if found, _, err := b.collect(t.Context(), replies, false); !errors.Is(err, c.want) {
			t.Errorf("%s: %d messages, %v", name, len(found), err)
		}
	}
}
