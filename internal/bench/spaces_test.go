package bench

import (
	"context"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
)

// Many spaces, few of them active at a time: those at rest are not in memory, and cost the server no
// additional assets.
func TestSpaces_WhatIsDormantIsNowhere(t *testing.T) {
	server := natstest.StartServer(t, embedded.Config{Listen: "127.0.0.1:0"})
	const spaces, active = 600, 50
	got, err := RunSpaces(t.Context(), SpacesConfig{
		URL: server.ClientURL(), Server: func(context.Context) (ServerState, error) { return LocalState(server), nil },
		Spaces: spaces, Active: active, Single: 20, Partitions: 4, Idle: 200 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.AtRest.Awake != 0 || got.First.Awake > active || got.Last.Awake > active || got.MostAwake > active {
		t.Errorf("%d awake at most, %d at the end, want %d at most and none", got.MostAwake, got.AtRest.Awake, active)
	}
	if got.Before != got.After {
		t.Errorf("assets: %v before, %v after %d spaces", got.Before, got.After, spaces)
	}
	if more := got.AtRest.Goroutines - got.Start.Goroutines; more > active/2 {
		t.Errorf("%d more goroutines when all is at rest than before", more)
	}
}
