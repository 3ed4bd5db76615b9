package live

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
)

func TestGet_IsLimited(t *testing.T) {
	s := NewServer(nil, nil, Config{MaxGets: 2})
	for i := range 5 {
		if err := s.beginGet(); (err == nil) != (i < 2) {
			t.Errorf("get %d of two: %v", i+1, err)
		}
	}
	s.endGet()
	if err := s.beginGet(); err != nil {
		t.Errorf("after one get ended: %v", err)
	}
	if err := s.beginGet(); err == nil {
		t.Error("a get was admitted before another had ended")
	}
}

func TestGet_APathIsAPartOfTheDocument(t *testing.T) {
	doc := model.DocumentState{Value: model.Object(model.F("a", model.Object(model.F("b", 7)))), Revision: 3}
	for path, want := range map[string]string{"": `{"a":{"b":7}}`, "a": `{"b":7}`, "a.b": "7", "a.c": ""} { // any order: the cases are independent
		q := Get{Space: "s", Document: "d"}
		if path != "" {
			q.Path = strings.Split(path, ".")
		}
		if a := q.answer(doc); string(a.Value) != want || a.Found != (want != "") || a.Revision != 3 {
			t.Errorf("at %q: %+v, want %s", path, a, want)
		}
	}
}

// The longest id leaves no room for the prefix.
func TestOwnEndpoint_IsUniqueToAWorker(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"a", "b", strings.Repeat("x", model.MaxNameLen-1) + "1", strings.Repeat("x", model.MaxNameLen-1) + "2"} {
		name := ownEndpoint(id)
		if err := model.CheckName("endpoint", name); err != nil {
			t.Error(err)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s have the endpoint %s", id, other, name)
		}
		seen[name] = id
	}
}

// moving is the host of a space that moves from one worker to another.
type moving struct {
	Host
	gone atomic.Bool
}

func (m *moving) Owner(string) string {
	if m.gone.Load() {
		return "b"
	}
	return "a"
}

// A get does not wait for a worker that has lost the space.
func TestGet_FollowsASpaceThatMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &moving{}
		s := NewServer(nil, host, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		defer s.tasks.Wait()
		defer cancel()
		ownerChanged := s.ownerChanged(ctx, "a", "s")
		time.Sleep(time.Minute)
		select {
		case <-ownerChanged:
			t.Error("the space has not moved")
		default:
		}
		host.gone.Store(true)
		time.Sleep(time.Second)
		select {
		case <-ownerChanged:
		default:
			t.Error("the space moved a second ago")
		}
	})
}

func TestRetryable_DistinguishesTransientErrors(t *testing.T) {
	if err := model.CheckName("space", "a.b"); err == nil || retryable(fmt.Errorf("query: %w", err)) {
		t.Errorf("%v would be retried", err)
	}
	for _, err := range []error{model.ErrNoProgram, model.ErrStopped, model.ErrTooLarge} {
		if retryable(err) {
			t.Errorf("%v would be retried", err)
		}
	}
	for _, err := range []error{model.ErrElsewhere, model.ErrNoResponder, context.DeadlineExceeded} {
		if !retryable(err) {
			t.Errorf("%v would not be retried", err)
		}
	}
}
