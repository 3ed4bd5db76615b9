package questions_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/questions"
)

// The graphs of the spaces on a circle over several spaces have the way round, and mark the nodes through which it leads, and no others.
func TestGraph_MarksARoundOverSpaces(t *testing.T) {
	t.Parallel()
	ping, pong, half, aside := settle.NewDerived[int]("ping").Or(0), settle.NewDerived[int]("pong").Or(0), settle.NewDerived[int]("half"), settle.NewDerived[int]("aside")
	p := settle.NewProgram("tennis")
	p.Handle("serve", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil })
	ping.Compute(p, func(v *settle.View) (int, error) { return pong.In("east").Get(v) + 1, nil })
	half.Compute(p, func(v *settle.View) (int, error) { return ping.In("west").Get(v), nil })
	pong.Compute(p, func(v *settle.View) (int, error) { return half.Get(v) + 1, nil })
	aside.Compute(p, func(v *settle.View) (int, error) { return half.Get(v), nil })
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(p), Bus: bus.Config{Server: natstest.StartServer(t, embedded.Config{Listen: ":0"}), Partitions: 4}, Workers: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	for _, space := range []string{"west", "east"} {
		if _, err := d.Client().Call(t.Context(), settle.Outgoing{Space: space, Stream: "serve", ID: settle.ID("e1")}); err != nil {
			t.Fatal(err)
		}
	}
	watching, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() { // ends with watching
		defer close(watched)
		for _, err := range ping.Watch(watching, d.Client().Space("west")) { // observes it
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() { stop(); <-watched })
	for space, marked := range map[string][]string{"west": {"ping"}, "east": {"half", "pong"}} { // any order: each on its own
		var g *questions.Graph
		for deadline := time.Now().Add(2 * time.Minute); g == nil || len(g.Rounds) == 0; {
			if time.Now().After(deadline) {
				t.Fatalf("the graph of %s has no round: %+v", space, g)
			}
			if g, err = d.Client().Space(space).Graph(t.Context(), questions.Query{}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(g.Rounds[0], []string{"east/pong", "west/ping"}) {
			t.Errorf("the rounds of %s are %q", space, g.Rounds)
		}
		var on []string
		for i := range g.Nodes {
			if g.Nodes[i].Round == 1 {
				on = append(on, g.Nodes[i].ID)
			}
		}
		if slices.Sort(on); !slices.Equal(on, marked) {
			t.Errorf("the nodes of %s on the round are %q, want %q", space, on, marked)
		}
	}
}
