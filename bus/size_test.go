package bus_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
)

// A state that is larger than one answer of the server is loaded completely.
func TestLoadLargeState(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	large := bytes.Repeat([]byte("x"), b.MaxPayload()-1000)
	var docs []model.StateDoc
	for i := range 40 {
		docs = append(docs, model.StateDoc{Doc: fmt.Sprintf("d%02d", i), Data: large, Seq: uint64(i + 1)})
	}
	mark := model.StateDoc{Data: []byte("1"), Seq: 40}
	if err := b.SaveState(t.Context(), "cart", docs, &mark); err != nil {
		t.Fatal(err)
	}
	state, err := b.LoadState(t.Context(), "cart")
	if err != nil || len(state.Docs) != len(docs) || state.Mark.Seq != 40 {
		t.Fatalf("%d documents, mark %d, %v", len(state.Docs), state.Mark.Seq, err)
	}
	for i, d := range state.Docs {
		if d.Doc != docs[i].Doc || d.Rev != docs[i].Rev || !bytes.Equal(d.Data, large) {
			t.Errorf("document %s is not as it was saved", d.Doc)
		}
	}
}

// Commits and events of the largest size are read in as many pages as necessary.
func TestReadLargeMessages(t *testing.T) {
	t.Parallel()
	b := provisioned(t, bus.Config{Partitions: 1})
	large := bytes.Repeat([]byte("x"), b.MaxPayload()-1000)
	var head uint64
	for i := range 12 {
		seq, err := appendOne(b, model.Append{Space: "cart", ID: fmt.Sprintf("a/0/%d", i), Expect: head, Data: large})
		if err != nil {
			t.Fatal(err)
		}
		head = seq
		sent := make(chan error, 1)
		b.Send(model.Message{Space: "cart", Stream: "add", ID: fmt.Sprintf("e%d", i), Payload: large}, func(_ model.SendResult, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	entries, err := b.ReadLog(t.Context(), "cart", 0, 100)
	if err != nil || len(entries) != 12 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	events, err := b.ReadLane(t.Context(), "cart", 0, 100)
	if err != nil || len(events) != 12 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	f := followSpace(t, b, "cart")
	for i := range 12 {
		f.want(fmt.Sprintf("a/0/%d", i))
	}
}
