package membus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// stateClient saves and loads documents and positions.
type stateClient struct{ *client }

// DueSpaces lists the spaces of a partition that have a wakeup.
func (c *stateClient) DueSpaces(ctx context.Context, partition int) ([]model.Due, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return recall(ctx, c.client, Op{Label: "due", Key: number(partition)}, func(behind int) []model.Due {
		return c.server.dueBehind(partition, behind)
	})
}

// LoadItem returns one item of a space, or its mark if key is "".
func (c *stateClient) LoadItem(ctx context.Context, space, key string) (model.StateDoc, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, err
	}
	if key != mark {
		if err := model.CheckStateKey(key); err != nil {
			return model.StateDoc{}, err
		}
	}
	return ask(ctx, c.client, Op{Label: "load-item", Space: space, Key: key}, func(int) model.StateDoc {
		d, _ := c.server.Saved(space, key)
		d.Doc, d.Data = key, bytes.Clone(d.Data)
		return d
	})
}

// MovePosition stores a number that may be smaller than the stored one. See port.State.
func (c *stateClient) MovePosition(ctx context.Context, partition int, name string, seq uint64) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	_, err := store(ctx, c.client, Op{Label: "move-position", Key: number(partition)}, func(Op) struct{} {
		c.server.MovePosition(partition, name, seq)
		return struct{}{}
	})
	return err
}

// PositionStored returns when a number was last stored. See port.State.
func (c *stateClient) PositionStored(ctx context.Context, partition int, name string) (time.Time, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return time.Time{}, err
	}
	return ask(ctx, c.client, Op{Label: "position-stored", Key: number(partition)}, func(int) time.Time {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		return c.server.partitions[partition].positions[name].stored
	})
}

// SavedSpaces lists the spaces of a partition that have a mark. See port.State.
func (c *stateClient) SavedSpaces(ctx context.Context, partition int) ([]string, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return nil, err
	}
	return ask(ctx, c.client, Op{Label: "saved-spaces", Key: number(partition)}, func(int) []string {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		var spaces []string
		for space, items := range c.server.partitions[partition].state.spaces { // any order: sorted below
			if _, is := items[mark]; is {
				spaces = append(spaces, space)
			}
		}
		slices.Sort(spaces)
		return spaces
	})
}

// LoadMark returns the mark of a space, and when it was stored.
func (c *stateClient) LoadMark(ctx context.Context, space string) (mark model.StateDoc, stored time.Time, err error) {
	if err := model.CheckName("space", space); err != nil {
		return model.StateDoc{}, time.Time{}, err
	}
	type answer struct {
		mark   model.StateDoc
		stored time.Time
	}
	a, err := recall(ctx, c.client, Op{Label: "load-mark", Space: space}, func(behind int) answer {
		st := c.server.loadStateBehind(space, behind)
		return answer{st.Mark, c.server.marked(space)}
	})
	return a.mark, a.stored, err
}

// PurgeState removes markers of deleted items.
func (c *stateClient) PurgeState(ctx context.Context, space string, markers []model.StateDoc) error {
	if err := checkState(space, markers); err != nil {
		return err
	}
	for _, m := range markers {
		_, err := ask(ctx, c.client, Op{Label: "purge-state", Space: space, Key: m.Doc}, func(int) bool {
			c.server.PurgeState(space, m)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// LoadState returns what is stored of a space.
func (c *stateClient) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.SpaceState{}, err
	}
	return recall(ctx, c.client, Op{Label: "load", Space: space}, func(behind int) model.SpaceState {
		return c.server.loadStateBehind(space, behind)
	})
}

// LoadPart returns the mark and one item of a space.
func (c *stateClient) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.SpaceState{}, err
	}
	if err := model.CheckStateKey(key); err != nil {
		return model.SpaceState{}, err
	}
	return recall(ctx, c.client, Op{Label: "load-part", Space: space, Key: key}, func(behind int) model.SpaceState {
		st := c.server.loadStateBehind(space, behind)
		return st.Part(key)
	})
}

// Forget does nothing: this client caches nothing.
func (c *stateClient) Forget(string) {}

// SaveState stores the documents and, if none of them was refused, the mark.
func (c *stateClient) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if err := checkState(space, docs); err != nil {
		return err
	}
	ctx = port.WithEpoch(ctx, c.Epoch()) // the mark must be of the documents' epoch
	var refused []error
	for i := range docs {
		err := c.save(ctx, space, docs[i].Doc, &docs[i])
		if err != nil && !definite(err) {
			return err
		}
		refused = append(refused, err)
	}
	if err := errors.Join(refused...); err != nil || mark == nil {
		return err
	}
	return c.save(ctx, space, "", mark)
}

func (c *stateClient) save(ctx context.Context, space, key string, d *model.StateDoc) error {
	doc := *d
	answer, err := store(ctx, c.client, Op{Label: "save", Space: space}, func(op Op) saved {
		rev, err := c.server.put(space, key, doc)
		c.report(Step{Moment: Arrives, Op: op, Doc: &doc, Seq: rev, Err: err})
		if (op.Try > 1 || c.net != nil) && errors.Is(err, model.ErrOutdated) && c.holds(space, key, doc) {
			err = nil // an earlier try or a copy was stored, and its answer lost
		}
		return saved{rev, err}
	})
	if err != nil {
		return err
	}
	if answer.err != nil { // d.Rev stays: d is not what is stored
		return fmt.Errorf("save document %q of space %s at %d: %w", d.Doc, space, d.Seq, answer.err)
	}
	d.Rev = answer.rev
	return nil
}

// holds reports whether exactly this document is stored.
func (c *stateClient) holds(space, key string, d model.StateDoc) bool {
	stored, there := c.server.Saved(space, key)
	return there && stored.Seq == d.Seq && bytes.Equal(stored.Data, d.Data)
}

// LoadPosition returns the number stored for a partition under a name.
func (c *stateClient) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	if err := c.checkPosition(partition, name); err != nil {
		return 0, err
	}
	return ask(ctx, c.client, Op{Label: "load-position", Key: name + number(partition)}, func(int) uint64 {
		return c.server.LoadPosition(partition, name)
	})
}

// SavePosition stores seq if it is larger than the stored number.
func (c *stateClient) SavePosition(ctx context.Context, partition int, name string, seq uint64) error {
	if err := c.checkPosition(partition, name); err != nil {
		return err
	}
	_, err := ask(ctx, c.client, Op{Label: "save-position", Key: name + number(partition)}, func(int) bool {
		c.server.SavePosition(partition, name, seq)
		return true
	})
	return err
}

// LoadAhead returns how far a partition has handled its lane, except for a few spaces.
func (c *stateClient) LoadAhead(ctx context.Context, partition int) (model.Ahead, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return model.Ahead{}, err
	}
	return ask(ctx, c.client, Op{Label: "load-position", Key: "ahead" + number(partition)}, func(int) model.Ahead {
		return c.server.LoadAhead(partition)
	})
}

// SaveAhead stores a if it reaches further than what is stored.
func (c *stateClient) SaveAhead(ctx context.Context, partition int, a model.Ahead) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	_, err := ask(ctx, c.client, Op{Label: "save-position", Key: "ahead" + number(partition)}, func(int) bool {
		c.server.SaveAhead(partition, a)
		return true
	})
	return err
}

func (c *stateClient) checkPosition(partition int, name string) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	return model.CheckName("position", name)
}

// checkState checks all names before anything is stored.
func checkState(space string, docs []model.StateDoc) error {
	if err := model.CheckName("space", space); err != nil {
		return err
	}
	for _, d := range docs {
		if err := model.CheckStateKey(d.Doc); err != nil {
			return err
		}
	}
	return nil
}

// definite reports whether an error concerns one document, so that the others can still be saved.
func definite(err error) bool {
	return errors.Is(err, model.ErrOutdated) || errors.Is(err, model.ErrTooLarge)
}

// saved is the answer for one document.
type saved struct {
	rev uint64
	err error
}
