package main

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// byHand is how payments are handled by a JetStream consumer and a KV bucket: read the account,
// write it, acknowledge the message.
type byHand struct {
	accounts jetstream.KeyValue
	consumer jetstream.Consumer
}

func newByHand(t *testing.T, js jetstream.JetStream) *byHand {
	t.Helper()
	ctx := t.Context()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "PAYMENTS", Subjects: []string{"payments.>"}, Duplicates: time.Minute})
	must(t, err)
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{Durable: "pay", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 200 * time.Millisecond, MaxAckPending: 1})
	must(t, err)
	accounts, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "accounts"})
	must(t, err)
	return &byHand{accounts, consumer}
}

// handleNext handles the next payment of alice. crash stands for the death of the process when
// the account is written and the message is not acknowledged.
func (h *byHand) handleNext(ctx context.Context, crash bool) error {
	m, err := h.consumer.Next(jetstream.FetchMaxWait(patience))
	if err != nil {
		return err
	}
	var a Account
	var p Payment
	if e, err := h.accounts.Get(ctx, "alice"); err == nil {
		err = json.Unmarshal(e.Value(), &a)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, jetstream.ErrKeyNotFound) {
		return err
	}
	if err := json.Unmarshal(m.Data(), &p); err != nil {
		return err
	}
	a.Cents += p.Cents
	a.Payments++
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	if _, err := h.accounts.Put(ctx, "alice", data); err != nil || crash {
		return err
	}
	return m.DoubleAck(ctx)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Package ordered solves this problem. No order of the two requests helps: if the message is
// acknowledged first, the payment is lost instead.
func TestByHand_ACrashBetweenThePutAndTheAckAppliesTwice(t *testing.T) {
	js := connect(t, startServer(t), nil).JetStream()
	h := newByHand(t, js)
	_, err := js.Publish(t.Context(), "payments.alice", []byte(`{"cents":500}`), jetstream.WithMsgID("invoice-1"))
	must(t, err)
	must(t, h.handleNext(t.Context(), true))
	must(t, h.handleNext(t.Context(), false)) // the next process gets it again
	e, err := h.accounts.Get(t.Context(), "alice")
	must(t, err)
	if got := string(e.Value()); got != `{"cents":1000,"payments":2}` {
		t.Errorf("alice has %s: this test is to show that 500 cents become 1000", got)
	}
}
