package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

const (
	// observing is how long a document stays observed after the switch was turned on.
	observing = 10 * time.Minute
	// maxObserved bounds the documents that a console observes at a time.
	maxObserved = 100
)

// observation is demand that a visitor has switched on. Nothing else of a console is demand.
type observation struct {
	Space, Document string
	Until           time.Time
	By              string
	end             context.CancelFunc
}

func observationKey(space, doc string) string { return space + "/" + doc }

// observe holds a lease on a document for a while.
func (c *Console) observe(space, doc, by string) (until time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := observationKey(space, doc)
	if old := c.watched[key]; old != nil {
		old.end()
	} else if len(c.watched) >= maxObserved {
		return until, fmt.Errorf("this console observes %d documents, its limit; end one first", maxObserved)
	}
	if c.ctx.Err() != nil {
		return until, model.ErrStopped
	}
	ctx, cancel := context.WithTimeout(c.ctx, observing)
	o := &observation{Space: space, Document: doc, Until: time.Now().Add(observing), By: by, end: cancel}
	c.watched[key] = o
	l := &history.Lease{Bus: c.cfg.Bus, Space: space, Doc: doc, Watcher: "console-" + rand.Text()[:8], Logger: c.log}
	c.tasks.Go(func() { // ends with ctx
		if err := l.Hold(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			c.log.Warn("observe a document for the console", "space", space, "document", doc, "error", err)
		}
		cancel()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watched[key] == o {
			delete(c.watched, key)
		}
	})
	return o.Until, nil
}

// unobserve ends an observation, and reports whether there was one.
func (c *Console) unobserve(space, doc string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.watched[observationKey(space, doc)]
	if o == nil {
		return false
	}
	delete(c.watched, observationKey(space, doc))
	o.end()
	return true
}

// observations returns what the console observes in a space, by document.
func (c *Console) observations(space string) (all []observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.watched { // any order: sorted below
		if o.Space == space {
			all = append(all, *o)
		}
	}
	slices.SortFunc(all, func(a, b observation) int { return cmp.Compare(a.Document, b.Document) })
	return all
}

// observeAction keeps a document up to date for a while, as a watch does.
func observeAction() action {
	return action{
		name: "observe",
		may:  func(a *act) error { return a.Visitor.MayRead(a.Get("space"), a.Get("document")) },
		do: func(_ context.Context, a *act) (*done, error) {
			space, doc := a.Get("space"), a.Get("document")
			if err := errors.Join(need("space", space), need("document", doc)); err != nil {
				return nil, err
			}
			d := &done{To: a.Get("back"), Command: "settle watch " + space + " " + doc}
			if a.Get("end") != "" {
				a.unobserve(space, doc)
				d.Text, d.Command = "Document "+doc+" is not observed by this console any more", "end: "+d.Command
				return d, nil
			}
			until, err := a.observe(space, doc, a.Visitor.Name())
			if err != nil {
				return nil, err
			}
			d.Text = "Document " + doc + " is observed until " + until.UTC().Format("15:04:05 UTC")
			return d, nil
		},
	}
}
