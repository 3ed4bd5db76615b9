package settle_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/settlehq/settle"
)

// A watch delivers what is in the log. WatchStatus reports whether that is current: here a
// computation fails, and the value delivered before is stale.
func ExampleWatchStatus() {
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
	client := d.Client()
	send := func(id string, metres float64) {
		if err := measure.Call(ctx, client.Space("tank-1"), settle.ID(id), metres); err != nil {
			log.Fatal(err)
		}
	}

	send("m-1", 1.5)
	err := full.Watch(ctx, client.Space("tank-1"), func(share string, _ uint64) {
		fmt.Println(share)
	}, settle.WatchStatus(func(s settle.Status) {
		switch {
		case s.Current:
			send("m-2", -1)
		case strings.Contains(s.Why, "sensor"): // a real sign shows the reason
			fmt.Println("that may be old:", s.Why)
			stop()
		}
	}))
	fmt.Println(err)
	// Output:
	// 50 %
	// that may be old: full could not be computed: the sensor is broken
	// context canceled
}
