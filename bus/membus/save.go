package membus

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/settlehq/settle/model"
)

// LoadState returns what is stored of a space.
func (c *stateClient) LoadState(ctx context.Context, space string) (model.SpaceState, error) {
	if err := model.CheckName("space", space); err != nil {
		return model.SpaceState{}, err
	}
	return recall(ctx, c.client, Op{Label: "load", Space: space}, func(behind int) model.SpaceState {
		return c.server.loadStateBehind(space, behind)
	})
}

// Forget has nothing to let go of.
func (c *stateClient) Forget(string) {}

// SaveState writes the documents and, if none of them was refused, the mark.
func (c *stateClient) SaveState(ctx context.Context, space string, docs []model.StateDoc, mark *model.StateDoc) error {
	if err := checkState(space, docs); err != nil {
		return err
	}
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

// checkState looks at all names before anything is stored.
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

// definite errors are about one document; the others can still be saved.
func definite(err error) bool {
	return errors.Is(err, model.ErrOutdated) || errors.Is(err, model.ErrTooLarge)
}

// saved is the answer to one document.
type saved struct {
	rev uint64
	err error
}

func (c *stateClient) save(ctx context.Context, space, key string, d *model.StateDoc) error {
	doc := *d
	answer, err := store(ctx, c.client, Op{Label: "save", Space: space}, func(op Op) saved {
		rev, err := c.server.put(space, key, doc)
		c.tell(Step{Moment: Arrives, Op: op, Doc: &doc, Seq: rev, Err: err})
		if (op.Try > 1 || c.net != nil) && errors.Is(err, model.ErrOutdated) && c.holds(space, key, doc) {
			err = nil // an earlier try was stored, or a copy, and its answer lost
		}
		return saved{rev, err}
	})
	if err != nil {
		return err
	}
	if answer.err != nil { // and d.Rev stays: it is not d that is stored there
		return fmt.Errorf("save document %q of space %s at %d: %w", d.Doc, space, d.Seq, answer.err)
	}
	d.Rev = answer.rev
	return nil
}

// holds reports whether the stored state is exactly this one.
func (c *stateClient) holds(space, key string, d model.StateDoc) bool {
	stored, there := c.server.Saved(space, key)
	return there && stored.Seq == d.Seq && bytes.Equal(stored.Data, d.Data)
}

// LoadPosition returns the number kept for a partition under a name.
func (c *stateClient) LoadPosition(ctx context.Context, partition int, name string) (uint64, error) {
	if err := c.checkPosition(partition, name); err != nil {
		return 0, err
	}
	return ask(ctx, c.client, Op{Label: "load-position", Key: name + number(partition)}, func(int) uint64 {
		return c.server.LoadPosition(partition, name)
	})
}

// SavePosition keeps seq if it is larger than what is kept.
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

// LoadAhead returns how far a partition is done with its lane but for a few spaces.
func (c *stateClient) LoadAhead(ctx context.Context, partition int) (model.Ahead, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return model.Ahead{}, err
	}
	return ask(ctx, c.client, Op{Label: "load-position", Key: "ahead" + number(partition)}, func(int) model.Ahead {
		return c.server.LoadAhead(partition)
	})
}

// SaveAhead keeps a if it reaches further than what is kept.
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
