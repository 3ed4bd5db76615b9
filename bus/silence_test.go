package bus

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/model"
)

// silentBus returns a bus whose server does not answer store requests, like one with a full disk.
func silentBus(t *testing.T) (b *Bus, silent *atomic.Bool) {
	t.Helper()
	silent = &atomic.Bool{}
	b = embeddedBus(t, Config{AckTimeout: 20 * time.Millisecond, Faults: func(faults.Attempt) faults.Fault {
		if silent.Load() {
			return faults.DropRequest
		}
		return faults.Deliver
	}})
	return b, silent
}

// untilRefused waits until the bus reports that a message was not stored.
func untilRefused(t *testing.T, b *Bus) (why string) {
	t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(5 * time.Minute)
	for {
		at, why := b.Refusal()
		if !at.IsZero() {
			return why
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatal("the missing answers are not reported")
		}
	}
}

// A server with a full disk does not answer writes, but answers everything else. The error names the stream
// that does not store, whatever was to be stored there.
func TestSilence_AStreamThatAnswersAndDoesNotStoreIsNamed(t *testing.T) {
	t.Parallel()
	for stream, store := range map[string]func(b *Bus) error{
		"SETTLE_LOG_0": func(b *Bus) error {
			done := make(chan error, 1)
			b.Append(model.Append{Space: "cart", ID: "a/0/1", Data: []byte("1")}, func(_ uint64, err error) { done <- err })
			return <-done
		},
		"KV_SETTLE_STATE_0": func(b *Bus) error { return b.SavePosition(t.Context(), 0, "lane", 1) },
		"KV_SETTLE_WORKERS": func(b *Bus) error { return b.Announce(t.Context(), model.Member{ID: "w1", Beat: 1}) },
		"KV_SETTLE_PROGRAMS": func(b *Bus) error {
			_, err := b.SaveRecord(t.Context(), model.Record{Key: "program.p", Data: []byte("{}")})
			return err
		},
	} {
		t.Run(stream, func(t *testing.T) {
			b, silent := silentBus(t)
			silent.Store(true)
			done := make(chan error, 1)
			go func() { done <- store(b) }() // ends when the server is not silent any more
			if why := untilRefused(t, b); !strings.Contains(why, ": stream "+stream+" is there and does not store, and does not say why") {
				t.Errorf("it says %q", why)
			}
			silent.Store(false)
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// A stream that does not answer at all is no evidence of a full disk, and neither are one or two attempts
// that got lost.
func TestSilence_AnUnreachableStreamIsNotReportedAsFull(t *testing.T) {
	t.Parallel()
	b, silent := silentBus(t)
	asked := make(chan struct{}, 1000)
	relayed(t, b, func(_ *nats.Conn, request string, _ *nats.Msg) bool {
		if !isInfo(request) {
			return false
		}
		asked <- struct{}{}
		return true // and never answered
	})
	silent.Store(true)
	done := make(chan error, 1)
	go func() { done <- b.SavePosition(t.Context(), 0, "lane", 1) }() // ends when the server is not silent any more
	for range 3 {
		<-asked
	}
	silent.Store(false)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if at, why := b.Refusal(); !at.IsZero() {
		t.Errorf("it says %q", why)
	}
}
