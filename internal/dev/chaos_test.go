package dev_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/dev"
)

// The owner of a space is killed, the other worker serves the space, and the first one comes back under its id.
func TestKill_AnotherWorkerTakesOverAndTheFirstComesBack(t *testing.T) {
	quietHome(t)
	s := start(t, t.TempDir(), func(c *dev.Config) { c.RestartAfter, c.SampleEvery = 10*time.Millisecond, 10*time.Millisecond })
	b := s.bus()
	k, err := dev.Kill(t.Context(), b, dev.KillRequest{Space: dev.SampleSpace})
	if err != nil || len(k.Others) != 1 || k.Others[0] == k.Worker {
		t.Fatalf("killed %+v, %v", k, err)
	}
	s.await("worker "+k.Worker+" was killed", "worker "+k.Worker+" is back")
	client := s.client()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := client.Call(ctx, settle.Outgoing{Space: dev.SampleSpace, Stream: "door", ID: settle.ID("after"), Payload: map[string]any{"open": false}}); err != nil {
		t.Errorf("an event after that: %v", err)
	}
}

// As long as a worker is missing no other one is killed, and one that does not exist is refused.
func TestKill_IsRefused(t *testing.T) {
	quietHome(t)
	s := start(t, t.TempDir(), func(c *dev.Config) { c.RestartAfter, c.SampleEvery = time.Hour, time.Hour })
	b := s.bus()
	refused := func(q dev.KillRequest, why string) {
		t.Helper()
		if k, err := dev.Kill(t.Context(), b, q); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("kill %+v: %+v, %v; want %q", q, k, err, why)
		}
	}
	refused(dev.KillRequest{Worker: "w9"}, `there is no worker "w9"`)
	refused(dev.KillRequest{Space: "no space"}, "space")
	refused(dev.KillRequest{}, "is empty")
	if _, err := dev.Kill(t.Context(), b, dev.KillRequest{Worker: "w2"}); err != nil {
		t.Fatal(err)
	}
	refused(dev.KillRequest{Worker: "w1"}, "is not back yet")
}

// The sensors of the sample report by themselves, and what was sent to one of them by hand cools down.
func TestSample_RunsByItself(t *testing.T) {
	quietHome(t)
	s := start(t, t.TempDir(), func(c *dev.Config) { c.SampleEvery = time.Millisecond })
	client := s.client()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := client.Call(ctx, settle.Outgoing{Space: dev.SampleSpace, Stream: "temp", ID: settle.ID("hot"), Payload: map[string]any{"sensor": "top", "c": 50}}); err != nil {
		t.Fatal(err)
	}
	for u, err := range client.Space(dev.SampleSpace).Watch(ctx, "readings") {
		if err != nil {
			t.Fatal(err)
		}
		if c, is := u.Value.Get("top").AsFloat(); is && c < 8 {
			return
		}
	}
	t.Error("the watch has ended before it was cool again")
}
