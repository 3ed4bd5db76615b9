package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// many is an oracle that many goroutines ask. Its gates, if there are any, hold up the reading of heads and the loading of documents.
type many struct {
	countingLog
	mu                      sync.Mutex
	gateOfHeads, gateOfDocs chan struct{}
}

func pass(ctx context.Context, gate chan struct{}) error {
	if gate == nil {
		return nil
	}
	select {
	case <-gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *many) Epoch() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.oracle.Epoch()
}

func (m *many) Head(ctx context.Context, space string) (uint64, error) {
	if err := pass(ctx, m.gateOfHeads); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.countingLog.Head(ctx, space)
}

func (m *many) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	if err := pass(ctx, m.gateOfDocs); err != nil {
		return model.SpaceState{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.countingLog.LoadPart(ctx, space, key)
}

func (m *many) LoadMark(ctx context.Context, space string) (model.StateDoc, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.oracle.LoadMark(ctx, space)
}

func (m *many) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.countingLog.ReadLog(ctx, space, after, limit)
}

// read reads a document, and compares it with what it was from the beginning of the reading on.
func (m *many) read(ctx context.Context, together *history.Together, doc string) error {
	m.mu.Lock()
	head, epoch := m.oracle.head(), m.epoch
	m.mu.Unlock()
	d, err := together.Read(ctx, "s", doc)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.checkSince(doc, d.Value, d.Seq, head, epoch)
	return nil
}

// Documents that many callers read at a time are those that a full load finds, at the time of the call or later, whatever happens between
// the requests, and whichever callers give up.
func TestTogether_ReadsWhatAFullLoadSaysWhileEverythingMoves(t *testing.T) {
	whole := 0
	for seed := range uint64(150) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &many{countingLog: countingLog{oracle: newOracle(t, seed)}}
				together := history.NewTogether(m)
				rounds := rand.New(rand.NewPCG(seed, 19))
				for range 10 {
					m.moves, m.lags = rounds.IntN(200), rounds.IntN(20)
					var callers sync.WaitGroup
					for n := range 12 {
						rng := rand.New(rand.NewPCG(rounds.Uint64(), seed))
						ctx, cancel := context.WithCancel(t.Context())
						callers.Go(func() {
							defer cancel()
							for range 3 {
								err := m.read(ctx, together, oracleDocs[rng.IntN(len(oracleDocs))])
								if err != nil && ctx.Err() == nil {
									t.Error(err)
								}
								if n%4 == 0 && rng.IntN(4) == 0 {
									cancel()
								}
							}
						})
						if n%4 == 1 {
							callers.Go(cancel)
						}
					}
					callers.Wait()
					whole++
				}
			})
		})
	}
	if whole < 1500 {
		t.Errorf("only %d rounds", whole)
	}
}

// Callers that come while four documents of the space are read share the next reading: one of each document and of each commit.
func TestTogether_TheLogIsReadOnceForAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newGated(t)
		m.gateOfHeads = make(chan struct{})
		together := history.NewTogether(m)
		var callers sync.WaitGroup
		for n := range 101 {
			callers.Go(func() { m.must(m.read(t.Context(), together, oracleDocs[n%len(oracleDocs)])) })
		}
		synctest.Wait()
		close(m.gateOfHeads)
		synctest.Wait()
		close(m.gateOfDocs)
		callers.Wait()
		if got := fmt.Sprintf("%d heads, %d parts, %d commits", m.heads, m.parts, m.commits); got != "5 heads, 8 parts, 155 commits" {
			t.Errorf("%s; want 1 head, 1 part and 31 commits for each of the first four, and 1 head, 4 parts and 31 commits for the others", got)
		}
	})
}

// A caller that gives up fails alone, whether it waits, is to read for others, or reads for them.
func TestTogether_ACallerThatGivesUpHasNoOthersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newGated(t)
		together := history.NewTogether(m)
		var callers sync.WaitGroup
		call := func(gone bool) (give func()) {
			ctx, cancel := context.WithCancel(t.Context())
			callers.Go(func() {
				if err := m.read(ctx, together, "a"); gone != errors.Is(err, context.Canceled) || !gone && err != nil {
					t.Errorf("a caller that gives up: %t; its error: %v", gone, err)
				}
			})
			synctest.Wait()
			return cancel
		}
		first := call(true)
		for range 3 { // as many as read alone
			defer call(false)()
		}
		second, third := call(true), call(true)
		defer call(false)()
		third() // waits
		synctest.Wait()
		first() // reads: the turn is the second one's, which reads for the last one, too
		synctest.Wait()
		second()
		synctest.Wait()
		close(m.gateOfDocs)
		callers.Wait()
		m.must(m.read(t.Context(), together, "b")) // nothing is left of them
	})
}

// unreadable is an oracle of which one document is stored in a form that cannot be read.
type unreadable struct{ *many }

func (u unreadable) LoadPart(ctx context.Context, space, key string) (model.SpaceState, error) {
	st, err := u.many.LoadPart(ctx, space, key)
	if key == "b" && err == nil {
		st.Docs = []model.StateDoc{{Doc: "b", Seq: 1, Rev: 1, Data: []byte("{")}}
	}
	return st, err
}

// A document that cannot be read is the error of those that want it, and of no others that are read with it.
func TestTogether_ADocumentThatCannotBeReadHasNoOthersFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newGated(t)
		together := history.NewTogether(unreadable{m})
		var callers sync.WaitGroup
		for n := range 20 {
			doc := "a" // the first one reads for all that wait
			if n >= 10 {
				doc = "b"
				synctest.Wait()
			}
			callers.Go(func() {
				if err := m.read(t.Context(), together, doc); (err != nil) != (doc == "b") {
					t.Errorf("%s: %v", doc, err)
				}
			})
		}
		synctest.Wait()
		close(m.gateOfDocs)
		callers.Wait()
	})
}

// newGated returns an oracle with 31 commits behind its checkpoint, and a gate for its documents.
func newGated(t *testing.T) *many {
	m := &many{countingLog: countingLog{oracle: newOracle(t, 1)}}
	m.moves = 0
	for range 30 {
		m.write()
	}
	m.gateOfDocs = make(chan struct{})
	return m
}
