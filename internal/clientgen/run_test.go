package clientgen_test

import (
	"context"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/clientgen/kinds"
	"github.com/settlehq/settle/program"
)

// A client in Go sends and reads with the names of the generated package, and the program takes its payloads.
func TestGenerate_TheProgramTakesWhatAClientSends(t *testing.T) {
	src, err := program.Read("kinds", "testdata/kinds.star")
	if err != nil {
		t.Fatal(err)
	}
	d, err := settle.Start(t.Context(), settle.Config{Hosted: true, Bus: bus.Config{Server: natstest.StartServer(t, embedded.Config{}), Partitions: 2}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	v, err := program.NewVersion(src, "test", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := program.Publish(t.Context(), d.Bus(), v); err != nil {
		t.Fatal(err)
	}
	if _, err := program.Decide(t.Context(), d.Bus(), "*", func(program.Rule) (program.Choice, error) {
		return program.Choice{Target: v.Target(), By: v.By, At: v.At}, nil
	}); err != nil {
		t.Fatal(err)
	}
	s := d.Client().Space("a")
	var absent settle.Value
	half := 0.5
	all := kinds.AllOfItPayload{S: "x", I: 1, B: true, D: map[string]settle.Value{}, L: []map[string]settle.Value{}, X2nd: "x", SField: "x", F: &half}
	for i, payload := range []kinds.AllOfItPayload{all, {D: all.D, L: all.L}} { // without what is optional
		if _, err := kinds.AllOfIt.Call(t.Context(), s, settle.NewID(), payload); err != nil {
			t.Errorf("payload %d: %v", i, err)
		}
	}
	if _, err := kinds.Number.Call(t.Context(), s, settle.NewID(), 7); err != nil {
		t.Error(err)
	}
	if _, err := kinds.Total.Call(t.Context(), s, settle.NewID(), absent); err != nil {
		t.Error(err)
	}
	if n, err := kinds.Twice.Fetch(t.Context(), s); err != nil || n.String() != "2" {
		t.Errorf("twice is %s: %v", n, err)
	}
}
