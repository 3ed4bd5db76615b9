package history_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

func anyDocument(string) bool { return true }

// locked is an oracle that several goroutines may ask.
type locked struct {
	*oracle
	mu sync.Mutex
}

func (l *locked) Head(ctx context.Context, space string) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oracle.Head(ctx, space)
}

func (l *locked) LoadMark(ctx context.Context, space string) (model.StateDoc, time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oracle.LoadMark(ctx, space)
}

func (l *locked) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oracle.LoadPart(ctx, space, key)
}

func (l *locked) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oracle.ReadLog(ctx, space, after, limit)
}

// checkSince compares a value with what the document was at any position from one on, in a state of the store since an epoch. A deletion that
// an owner has stored again, because a deposed one had undone it, counts as one at the mark of that time.
func (o *oracle) checkSince(doc string, v model.Value, seq, head, epoch uint64) {
	o.Helper()
	for e := epoch; e <= o.epoch; e++ {
		for at := range o.truth[e] { // any order: whether there is one
			if e == epoch && at < head {
				continue
			}
			want := o.truth[e][at][doc]
			if model.Equal(v, want.Value) && (seq == want.Seq || v.IsAbsent() && seq <= at) {
				return
			}
		}
	}
	o.Fatalf("%s was read as %v@%d, and was never that from %d on", doc, v, seq, head)
}

// Documents that are read together, again and again, are those that a full load finds, at the head of the last Refresh or later, whatever happens
// between the requests; and none is older than one that was asked for before.
func TestDocuments_AreWhatAFullLoadSaysWhileEverythingMoves(t *testing.T) {
	rounds := 0
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOracle(t, seed)
				docs := history.NewDocuments(&locked{oracle: o}, "s", anyDocument)
				for range 40 {
					o.moves = 10
					o.move()
					o.moves, o.lags = o.rng.IntN(60), o.rng.IntN(6)
					head, epoch := o.head(), o.epoch
					o.must(docs.Refresh(o.Context()))
					if o.rng.IntN(2) == 0 {
						if err := docs.Load(o.Context(), oracleDocs); err != nil && !errors.Is(err, model.ErrRewound) {
							t.Fatal(err)
						}
					}
					for range 1 + o.rng.IntN(6) {
						doc := oracleDocs[o.rng.IntN(len(oracleDocs))]
						v, seq, err := docs.Get(o.Context(), doc)
						if errors.Is(err, model.ErrRewound) {
							break
						}
						o.must(err)
						o.checkSince(doc, v, seq, head, epoch)
						if o.epoch == epoch {
							head = max(head, seq) // what is asked for later is not older
						}
						rounds++
					}
				}
			})
		})
	}
	if rounds < 10_000 {
		t.Errorf("only %d documents were read", rounds)
	}
}

// countingLog counts the commits that are read, and the requests.
type countingLog struct {
	*oracle
	commits, parts, heads int
}

func (c *countingLog) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	found, err := c.oracle.ReadLog(ctx, space, after, limit)
	c.commits += len(found)
	return found, err
}

func (c *countingLog) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	c.parts++
	return c.oracle.LoadPart(ctx, space, key)
}

func (c *countingLog) Head(ctx context.Context, space string) (uint64, error) {
	c.heads++
	return c.oracle.Head(ctx, space)
}

// Each commit behind the checkpoint is read once for all documents, and once for all times.
func TestDocuments_EachCommitIsReadOnce(t *testing.T) {
	o := newOracle(t, 1)
	o.moves = 0
	for range 30 {
		o.write()
	}
	c := &countingLog{oracle: o}
	docs := history.NewDocuments(c, "s", anyDocument)
	read := func(want string) {
		t.Helper()
		o.must(docs.Refresh(t.Context()))
		for _, doc := range oracleDocs {
			v, seq, err := docs.Get(t.Context(), doc)
			o.must(err)
			o.checkSince(doc, v, seq, o.head(), o.epoch)
		}
		if got := fmt.Sprintf("%d heads, %d parts, %d commits", c.heads, c.parts, c.commits); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		c.commits, c.parts, c.heads = 0, 0, 0
	}
	read("1 heads, 4 parts, 31 commits")
	read("1 heads, 0 parts, 0 commits")
	o.write()
	o.write()
	read("1 heads, 0 parts, 2 commits")

	// A document that is asked for later needs no commit that was read.
	later := history.NewDocuments(c, "s", anyDocument)
	o.must(later.Refresh(t.Context()))
	_, _, err := later.Get(t.Context(), "a")
	o.must(err)
	c.commits = 0
	o.must(later.Refresh(t.Context()))
	v, seq, err := later.Get(t.Context(), "b")
	o.must(err)
	o.checkSince("b", v, seq, o.head(), o.epoch)
	if c.commits != 0 {
		t.Errorf("another document has read %d commits again", c.commits)
	}
}

func TestDocuments_OthersThanThoseThatWereNamedAreRefused(t *testing.T) {
	o := newOracle(t, 1)
	docs := history.NewDocuments(o, "s", func(doc string) bool { return doc == "a" })
	o.must(docs.Refresh(t.Context()))
	if _, _, err := docs.Get(t.Context(), "b"); err == nil {
		t.Error("another document was read")
	}
}
