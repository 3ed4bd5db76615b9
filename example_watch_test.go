package settle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/settlehq/settle"
)

// A watch delivers what is in the log. WithStatus reports whether that is current: here a
// computation fails, and the value delivered before is stale.
func ExampleWithStatus() {
	depth := settle.NewCell[float64]("depth")
	full := settle.NewDerived[string]("full")
	measure := settle.NewStream[float64]("measure")
	p := settle.NewProgram("tanks")
	measure.Handle(p, func(tx *settle.Tx, metres float64) error {
		depth.Set(tx, metres)
		return nil
	})
	full.Compute(p, func(v *settle.View) (string, error) {
		d := depth.Get(v)
		if d < 0 {
			return "", errors.New("the sensor is broken")
		}
		return fmt.Sprintf("%.0f %%", d/3*100), nil
	})
	d, end := deployment(p)
	defer end()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tank := d.Client().Space("tank-1")
	send := func(id string, metres float64) {
		if err := measure.Call(ctx, tank, settle.ID(id), metres); err != nil {
			log.Fatal(err)
		}
	}

	send("m-1", 1.5)
	for share, err := range full.Watch(ctx, tank, settle.WithStatus()) {
		if err != nil {
			log.Fatal(err)
		}
		switch {
		case share.Current:
			fmt.Println(share.Value)
			send("m-2", -1)
		case strings.Contains(share.Reason, "sensor"): // a real sign shows the reason
			fmt.Println(share.Value, "may be old:", share.Reason)
			stop() // ends the loop
		}
	}
	// Output:
	// 50 %
	// 50 % may be old: full could not be computed: the sensor is broken
}

// A client that has a document as of a revision receives what is newer.
func ExampleFrom() {
	count := settle.NewCell[int]("count")
	add := settle.NewStream[int]("add")
	p := settle.NewProgram("counter")
	add.Handle(p, func(tx *settle.Tx, by int) error {
		count.Update(tx, func(n *int) { *n += by })
		return nil
	})
	d, end := deployment(p)
	defer end()
	ctx, alice := context.Background(), d.Client().Space("alice")
	if err := add.Call(ctx, alice, settle.ID("a-1"), 2); err != nil {
		log.Fatal(err)
	}
	had, err := alice.GetCurrent(ctx, "count")
	fmt.Println(had.Value, err)
	if err := add.Call(ctx, alice, settle.ID("a-2"), 3); err != nil {
		log.Fatal(err)
	}
	for u, err := range count.Watch(ctx, alice, settle.From(had.Revision)) {
		fmt.Println(u.Value, u.Revision > had.Revision, err)
		break
	}
	// Output:
	// 2 <nil>
	// 5 true <nil>
}

// A loop that waits for a state may begin with the value that its client has received last.
func ExampleFromLastSeen() {
	count := settle.NewCell[int]("count")
	add := settle.NewStream[int]("add")
	p := settle.NewProgram("counter")
	add.Handle(p, func(tx *settle.Tx, by int) error {
		count.Update(tx, func(n *int) { *n += by })
		return nil
	})
	d, end := deployment(p)
	defer end()
	ctx, alice := context.Background(), d.Client().Space("alice")
	if err := add.Call(ctx, alice, settle.ID("a-1"), 2); err != nil {
		log.Fatal(err)
	}
	for n, err := range count.Watch(ctx, alice, settle.FromLastSeen()) {
		if err != nil {
			log.Fatal(err)
		}
		if n.Value >= 2 {
			fmt.Println(n.Value)
			break
		}
	}
	// Output: 2
}
