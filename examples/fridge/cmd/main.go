// Command cmd opens the door of a fridge for too long, on a clock that runs ten times as fast.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/examples/fridge"
)

func main() {
	dir, err := os.MkdirTemp("", "fridge-")
	check(err)
	defer os.RemoveAll(dir)
	ctx, began := context.Background(), time.Now()
	fast := func() time.Time { return began.Add(10 * time.Since(began)) }
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(fridge.Program()), Server: embedded.Config{StoreDir: dir}, Now: fast,
	})
	check(err)
	defer func() { check(d.Stop(ctx)) }()

	for i, c := range []float64{4, 4.5, 3.5} {
		_, err := fridge.Temp.Post(ctx, d.Client().Space("kitchen"), settle.ID(fmt.Sprint("r", i)), fridge.Reading{Sensor: fmt.Sprint(i), C: c})
		check(err)
	}
	_, err = fridge.Door.Post(ctx, d.Client().Space("kitchen"), settle.ID("d1"), fridge.Movement{Open: true})
	check(err)
	fmt.Println("the door is open; in half a minute of the fridge there is an alarm")
	alarmed, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	for line, err := range fridge.Status.Watch(alarmed, d.Client().Space("kitchen")) {
		check(err)
		fmt.Println(fast().Format(time.TimeOnly), line.Value)
		if strings.HasSuffix(line.Value, "ALARM") {
			break
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
