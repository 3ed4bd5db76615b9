package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// stuckHost owns all spaces; a read of one that is stuck blocks.
type stuckHost struct {
	Host
	stuck func(space string) bool
}

func (stuckHost) ID() string          { return "a" }
func (stuckHost) Owner(string) string { return "a" }

func (h stuckHost) Read(ctx context.Context, q model.ReadRequest) ([]model.DocumentState, error) {
	out := make([]model.DocumentState, len(q.Documents))
	for i, at := range q.Documents {
		if h.stuck(at.Space) {
			<-ctx.Done()
			out[i] = model.DocumentState{Stale: "it is at work", Passing: true}
		}
	}
	return out, nil
}

// Spaces that do not answer delay no others, which are still polled every two seconds, in whatever order the
// spaces sort.
func TestPollFreshness_SpacesThatDoNotAnswerDelayNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := membus.NewServer(membus.Config{Partitions: 4}).Connect("a")
		defer bus.Close()
		s := NewServer(bus, stuckHost{stuck: func(space string) bool { return space[len(space)-1] == '0' }}, Config{})
		var fine []*feed
		for i := range 10_000 {
			space := fmt.Sprintf("s%04d", i/10)
			f := &feed{space: space, doc: strconv.Itoa(i % 10), subs: map[*sub]bool{}, cancel: func() {}}
			f.take(history.Change{Read: 1})
			s.feeds[place{f.space, f.doc}] = f
			if space[4] != '0' {
				fine = append(fine, f)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx, nil) // ends with ctx
		time.Sleep(20 * time.Second)
		now := time.Now()
		late := slices.ContainsFunc(fine, func(f *feed) bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.status.Kind != Current || now.Sub(f.polled) > statusEvery || f.polling && now.Sub(f.polled) > 0
		})
		if late {
			t.Error("some documents of responsive spaces were not polled for more than two seconds")
		}
		stop()
		synctest.Wait()
	})
}

// brief is a bus on which the owner answers for fewer documents than the query names.
type brief struct{ port.Client }

func (brief) Ask(context.Context, string, []byte) ([]byte, error) { return []byte(`[{}]`), nil }

func TestQueryStatus_AnAnswerThatLacksDocumentsIsAnError(t *testing.T) {
	s := NewServer(brief{}, stuckHost{}, Config{})
	if found, err := s.queryStatus(t.Context(), "b", []*feed{{doc: "x"}, {doc: "y"}}); err == nil {
		t.Errorf("got %+v", found)
	}
}
