package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// book records what clients received.
type book struct {
	mu       sync.Mutex
	events   map[event]bool // acknowledged
	receipts map[event]bool // shown
	lost     int            // of the acknowledged events
}

type event struct{ space, id string }

// forget removes what is lost.
func (b *book) forget(f found) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range f.events {
		delete(b.events, e)
		delete(b.receipts, e)
		b.lost++
	}
	for _, e := range f.receipts {
		delete(b.receipts, e)
	}
}

func (e event) String() string { return e.space + "/" + e.id }

func newBook() *book { return &book{events: map[event]bool{}, receipts: map[event]bool{}} }

func (b *book) acked(space, id string) { b.note(b.events, event{space, id}) }
func (b *book) shown(space, id string) { b.note(b.receipts, event{space, id}) }

func (b *book) note(in map[event]bool, e event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in[e] = true
}

func (b *book) counts() (acked, shown int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.events) + b.lost, len(b.receipts)
}

func (b *book) of(in map[event]bool, space string) (ids []event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range in { // any order: it is a set
		if e.space == space {
			ids = append(ids, e)
		}
	}
	return ids
}

// all is larger than the number of events of any space.
const all = 1 << 20

// unseen is how long data may appear to be missing, because a replica can be behind.
const unseen = 3 * time.Second

// missing returns the events and receipts that clients received and that are lost.
func (d *deployment) missing(ctx context.Context) (f found, err error) {
	b, err := d.look(ctx)
	if err != nil {
		return f, err
	}
	defer b.Kill()
	for deadline := time.Now().Add(unseen); ; pause(ctx, 200*time.Millisecond) {
		if f, err = d.missingNow(ctx, b); err != nil || !f.lost() || time.Now().After(deadline) {
			return f, err
		}
	}
}

func (d *deployment) look(ctx context.Context) (*bus.Bus, error) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.connect(bounded, "client/look")
}

func (d *deployment) missingNow(ctx context.Context, b *bus.Bus) (f found, err error) {
	client, err := settle.NewClient(b, settle.ClientConfig{ID: "look"})
	if err != nil {
		return f, err
	}
	defer client.Close()
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i := range d.spaces {
		space := spaceName(i)
		lane, err := b.ReadLane(bounded, space, 0, all)
		if err != nil {
			return f, err
		}
		there := map[string]bool{}
		for j := range lane {
			there[lane[j].ID] = true
		}
		for _, e := range d.book.of(d.book.events, space) {
			if !there[e.id] {
				f.events = append(f.events, e)
			}
		}
		had, _, _, err := d.readReceipts(bounded, b, space)
		if err != nil {
			return f, err
		}
		for _, e := range d.book.of(d.book.receipts, space) {
			if had[e.id] > 0 {
				continue
			}
			// The log before a checkpoint may have been purged.
			if r, err := client.Space(space).FindReceipt(bounded, "order", settle.ID(e.id)); err != nil || r == nil {
				f.receipts = append(f.receipts, e)
			}
		}
	}
	return f, nil
}

// readReceipts counts the receipts of a space's events, and those out of the lane's order.
func (d *deployment) readReceipts(ctx context.Context, b *bus.Bus, space string) (had map[string]int, duplicates, disorder int, err error) {
	log, err := b.ReadLog(ctx, space, 0, all)
	if err != nil {
		return nil, 0, 0, err
	}
	had = map[string]int{}
	last := uint64(0)
	for i := range log {
		c, err := model.DecodeCommit(log[i].Data)
		if err != nil {
			return nil, 0, 0, err
		}
		for j := range c.Txs {
			tx := &c.Txs[j]
			if _, ok := receipts.Stream(tx.By); !ok || tx.Receipt == nil {
				continue
			}
			if had[tx.Receipt.Event]++; had[tx.Receipt.Event] > 1 {
				duplicates++
			}
			if tx.Receipt.Lane <= last && !d.lossy { // a lane that has lost its end assigns sequences again
				disorder++
			}
			last = tx.Receipt.Lane
		}
	}
	return had, duplicates, disorder, nil
}

// settled waits until every acknowledged event has its receipt. If data was lost, a worker may refuse to
// continue instead.
func (d *deployment) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	b, err := d.look(ctx)
	if err != nil {
		return err
	}
	defer b.Kill()
	missing := -1
	for ctx.Err() == nil {
		if d.lossy && d.complaints() > 0 {
			return nil
		}
		if missing, err = d.unhandled(ctx, b); err == nil && missing == 0 {
			return nil
		}
		pause(ctx, 100*time.Millisecond)
	}
	return fmt.Errorf("%w: %d after %v (complaints: %d): %w", errUnsettled, missing, patience, d.complaints(), errors.Join(err, context.Cause(ctx)))
}

func (d *deployment) unhandled(ctx context.Context, b *bus.Bus) (missing int, err error) {
	for i := range d.spaces {
		had, _, _, err := d.readReceipts(ctx, b, spaceName(i))
		if err != nil {
			return 0, err
		}
		for _, e := range d.book.of(d.book.events, spaceName(i)) {
			if had[e.id] == 0 {
				missing++
			}
		}
		if d.lossy {
			continue // some of its sends, or their effects, are lost
		}
		tallied, _, _, err := d.readReceipts(ctx, b, other(spaceName(i)))
		if err != nil {
			return 0, err
		}
		missing += max(0, len(had)-len(tallied)) // each order has sent one
	}
	return missing, nil
}

// audit counts duplicates and events that were handled out of order.
func (d *deployment) audit(ctx context.Context) (duplicates, disorder int, err error) {
	b, err := d.look(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer b.Kill()
	for i := range d.spaces {
		for _, space := range []string{spaceName(i), other(spaceName(i))} {
			_, twice, order, err := d.readReceipts(ctx, b, space)
			if err != nil {
				return 0, 0, err
			}
			duplicates += twice
			disorder += order
		}
	}
	return duplicates, disorder, nil
}
