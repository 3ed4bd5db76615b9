package live

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// sluggish is the host of a worker that owns all spaces: those named slow-… do not answer. It counts the reads under way.
type sluggish struct {
	mu         sync.Mutex
	now, most  int
	documentOf string // of a space that answers, what it has
}

func (*sluggish) ID() string { return "w" }

func (*sluggish) Owner(string) string { return "w" }

func (s *sluggish) Read(ctx context.Context, q model.ReadRequest) ([]model.DocumentState, error) {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now--
	}()
	if strings.HasPrefix(q.Documents[0].Space, "slow") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if q.Documents[0].Space == "unknown" {
		return nil, model.ErrNoProgram
	}
	if s.documentOf == q.Documents[0].Space {
		return []model.DocumentState{{Value: model.Int(7), Revision: 3}}, nil
	}
	return make([]model.DocumentState, 1), nil
}

// A space that reads thousands of documents which others do not have, and whose owners do not answer, has a limited number of questions under way, and the ones that
// could be answered get their turn before the time is over.
func TestComputed_HasALimitedNumberOfQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &sluggish{documentOf: "quick"}
		s := NewServer(nil, host, Config{})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for range 400 {
			go func() {
				if exists, err := s.Computed(ctx, "slow", "d"); exists || err != nil || time.Since(began) < 5*time.Second {
					t.Errorf("of a space that does not answer: %v, %v after %v", exists, err, time.Since(began))
				}
			}()
		}
		synctest.Wait()
		for name, want := range map[string]bool{"quick": true, "empty": false, "unknown": false} { // any order: each on its own
			go func() {
				exists, err := s.Computed(ctx, name, "d")
				if exists != want || err != nil || ctx.Err() != nil {
					t.Errorf("of space %s: %v, %v after %v, want %v in less than five seconds", name, exists, err, time.Since(began), want)
				}
			}()
		}
		<-ctx.Done()
		synctest.Wait()
		if host.most != maxComputing || host.now != 0 {
			t.Errorf("%d questions were under way at a time, want %d; %d are at the end", host.most, maxComputing, host.now)
		}
		s.end()
	})
}

// A process without a server asks as well, with the same limit, and until its context ends where no worker answers.
func TestComputed_OverTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := membus.NewServer(membus.Config{Partitions: 1})
		bus := server.Connect("app")
		defer bus.Close()
		computed := NewComputed(bus)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if exists, err := computed(ctx, "quick", "d"); exists || err != nil || time.Since(began) < 4*time.Second {
			t.Errorf("without a worker: %v, %v after %v", exists, err, time.Since(began))
		}
		host := &sluggish{documentOf: "quick"}
		over := server.Connect("w")
		defer over.Close()
		s := NewServer(over, host, Config{})
		running, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { s.Run(running, nil); close(ended) }()
		defer func() { stop(); <-ended }()
		synctest.Wait()
		for name, want := range map[string]bool{"quick": true, "empty": false, "unknown": false} { // any order: each on its own
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			if exists, err := computed(ctx, name, "d"); exists != want || err != nil || time.Since(began) > time.Second {
				t.Errorf("of space %s: %v, %v after %v, want %v", name, exists, err, time.Since(began), want)
			}
			cancel()
		}
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for range 400 {
			go func() { _, _ = computed(ctx, "slow", "d") }()
		}
		synctest.Wait()
		if host.now != maxComputing {
			t.Errorf("%d questions are under way, want %d", host.now, maxComputing)
		}
		<-ctx.Done()
		synctest.Wait()
	})
}
