//go:build unix

package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
)

// The defects that can be introduced on purpose, to test the checker.
const (
	breakFence   = "fence"
	breakRelease = "release"
)

// unfenced is a bus that repeats a refused append after the entry that refused it, as if
// the head of the space were not compared.
type unfenced struct{ *bus.Bus }

// Append appends unconditionally.
func (b unfenced) Append(a model.Append, done func(uint64, error)) {
	b.Bus.Append(a, func(seq uint64, err error) {
		if !errors.Is(err, model.ErrRefused) {
			done(seq, err)
			return
		}
		go func() { // ends with the answer
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			head, headErr := b.Head(ctx, a.Space)
			if headErr != nil {
				done(0, err)
				return
			}
			a.Expect, a.ID = head, a.ID+"x"
			b.Append(a, done)
		}()
	})
}

// forgetful is a bus that sometimes acknowledges a send without sending it.
type forgetful struct {
	*bus.Bus
	n atomic.Int64
}

// Send sends most messages.
func (b *forgetful) Send(m model.Message, done func(model.SendResult, error)) {
	if b.n.Add(1)%200 == 0 {
		go done(model.SendResult{Seq: 1}, nil) // ends at once
		return
	}
	b.Bus.Send(m, done)
}
