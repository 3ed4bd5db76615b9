package settle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

// A node registers nodes: those that a run does not register again are removed. Each is the form
// for lists.
func ExampleView_Node() {
	rooms := settle.NewCell[[]string]("rooms")
	p := settle.NewProgram("house").Effect("lamps", func(v *settle.View) error {
		for _, room := range rooms.Get(v) {
			v.Node(space.NodeSpec{ID: "lamp-" + room, Kind: space.Effect, Run: func(tx *settle.Tx) (settle.Value, error) {
				tx.Get("light-" + room)
				return settle.Value{}, nil
			}})
		}
		return nil
	})

	house := settletest.New(settletest.Must, p).Space("house")
	house.Mark()
	rooms.Set(house, []string{"hall", "bath"})
	fmt.Println(house.Ran())
	house.Mark()
	house.Set("light-bath", "on")
	fmt.Println(house.Ran())
	rooms.Set(house, []string{"hall"})
	house.Mark()
	house.Set("light-bath", "off")
	fmt.Println(house.Ran())
	// Output:
	// [lamps lamp-hall lamp-bath]
	// [lamp-bath]
	// []
}

// Fail is for helper functions that find that the run cannot continue.
func ExampleView_Fail() {
	config := settle.NewCell[string]("config")
	length := settle.NewDerived[int]("length")
	parsed := func(r settle.Reader) []string {
		name, rest, ok := strings.Cut(config.Get(r), ":")
		if !ok {
			r.Fail(errors.New("the configuration has no colon"))
		}
		return []string{name, rest}
	}
	p := settle.NewProgram("p")
	length.Compute(p, func(v *settle.View) (int, error) { return len(parsed(v)[1]), nil })

	w := settletest.New(settletest.Must, p, settletest.AllowErrors())
	s := w.Space("s")
	config.Set(s, "name")
	fmt.Println(length.Get(s), w.Problems()[0].Err)
	// Output:
	// 0 the configuration has no colon
}

// The value that a link points to, and whether there is one.
func ExampleRef_IsZero() {
	type Task struct {
		Next settle.Ref[string] `json:"next"`
	}
	var task Task
	fmt.Println(task.Next.IsZero())
	task.Next = settle.NewCell[string]("name").In("ann").Ref()
	fmt.Println(task.Next.IsZero(), task.Next.To())
	// Output:
	// true
	// false -> @ann/name
}

// Events that wait are sent with the transaction, and handled when their time has come.
func ExampleStream_SendAfter() {
	remind := settle.NewStream[string]("remind")
	plan := settle.NewTrigger("plan")
	heard := settle.NewCell[[]string]("heard")

	p := settle.NewProgram("diary")
	plan.Handle(p, func(tx *settle.Tx) error {
		remind.SendAfter(tx, settle.Here, 36*time.Hour, "water the plants")
		remind.SendAt(tx, settle.To("bob"), tx.Now().Add(time.Hour), "it is Ann's turn")
		return nil
	})
	remind.Handle(p, func(tx *settle.Tx, what string) error {
		heard.Update(tx, func(h *[]string) { *h = append(*h, what) })
		return nil
	})

	w := settletest.New(settletest.Must, p)
	ann, bob := w.Space("ann"), w.Space("bob")
	settletest.Call(ann, plan)
	w.Advance(24 * time.Hour)
	fmt.Println(heard.Get(ann), heard.Get(bob))
	w.Advance(12 * time.Hour)
	fmt.Println(heard.Get(ann))
	// Output:
	// [] [it is Ann's turn]
	// [water the plants]
}

// A worker of your own, and a client, as in processes of their own: over a connection to a shared
// server.
func ExampleStartWorker() {
	greet := settle.NewRequest[string, string]("greet")
	p := settle.NewProgram("greeter")
	greet.Handle(p, func(_ *settle.Tx, name string) (string, error) { return "hello " + name, nil })
	d, end := deployment(settle.NewProgram("nothing"))
	defer end()

	ctx := context.Background()
	config := bus.Config{Server: d.Server(), Name: "example", Prefix: "greeters"} // or URL: "nats://..."
	b, err := bus.Connect(ctx, config)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	if err := b.Provision(ctx); err != nil {
		log.Fatal(err)
	}
	w, err := settle.StartWorker(ctx, b, settle.WorkerConfig{ID: "w1", Programs: settle.Always(p)})
	if err != nil {
		log.Fatal(err)
	}
	client, err := settle.NewClient(b, settle.ClientConfig{ID: "example"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	fmt.Println(greet.Call(ctx, client.Space("alice"), settle.NewID(), "Alice"))
	fmt.Println(w.Stop(ctx))
	// Output:
	// hello Alice <nil>
	// <nil>
}
