package dev

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/pause"
)

// sensors are those of the sample, and the temperatures in °C about which they move. A reading that is sent by hand cools
// down to that.
var sensors = []struct {
	name  string
	about float64
}{{"top", 5.5}, {"middle", 4.8}, {"door", 6.9}}

// cooling is the part of the difference that is left after a reading.
const cooling = 0.9

// live sends readings of the sensors of the sample, one at a time, until ctx ends.
func (d *dev) live(ctx context.Context) {
	space := d.run.Client().Space(SampleSpace)
	for n := 0; pause.For(ctx, d.cfg.SampleEvery) == nil; n++ {
		s := sensors[n%len(sensors)]
		c := s.about + 0.3*math.Sin(float64(n)/4)
		if readings, _, err := space.Get(ctx, "readings"); err == nil {
			if now, is := readings.Get(s.name).AsFloat(); is {
				c += cooling * (now - s.about)
			}
		}
		_, err := d.run.Client().Send(ctx, settle.Outgoing{
			Space: SampleSpace, Stream: "temp", ID: settle.NewID(),
			Payload: map[string]any{"sensor": s.name, "c": math.Round(10*c) / 10},
		})
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(d.cfg.Out, "%s  the sensors of the sample have stopped: %v\n", now(), err)
			return
		}
	}
}

// sampleEvery is the default of Config.SampleEvery.
const sampleEvery = 2 * time.Second
