package dev

import (
	"context"

	"github.com/settlehq/settle"
)

// SampleSpace is the space that runs the sample.
const SampleSpace = "fridge"

// sampleDocument is the document to watch.
const sampleDocument = "status"

// sampleEvents fill the sample at the first start. Their ids are constant, so each takes effect
// once, however often the server is started.
var sampleEvents = []settle.Outgoing{
	{Stream: "temp", ID: settle.ID("sample-1"), Payload: map[string]any{"sensor": "top", "c": 5.5}},
	{Stream: "temp", ID: settle.ID("sample-2"), Payload: map[string]any{"sensor": "middle", "c": 4.8}},
	{Stream: "temp", ID: settle.ID("sample-3"), Payload: map[string]any{"sensor": "door", "c": 6.9}},
	{Stream: "door", ID: settle.ID("sample-4"), Payload: map[string]any{"open": false}},
}

func (d *dev) fillSample(ctx context.Context) error {
	for _, e := range sampleEvents {
		e.Space = SampleSpace
		if _, err := d.run.Client().Call(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
