package settle_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/questions"
)

// A client of a server without a deployment learns what is missing and how to create it, whatever it asks for, and
// works as soon as there is one, with its number of partitions.
func TestClient_SaysThatThereIsNoDeployment(t *testing.T) {
	t.Parallel()
	server := natstest.StartServer(t, embedded.Config{})
	connect := func(cfg bus.Config) *bus.Bus {
		cfg.Server = server
		b, err := bus.Connect(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}
	c, err := settle.NewClient(connect(bus.Config{Prefix: "shop"}), settle.ClientConfig{ID: "web"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s, add := c.Space("s"), settle.NewRequest[int, int]("add")
	ref := history.EventRef{Space: "s", Stream: "add", Event: "e1"}
	uses := map[string]func(ctx context.Context) error{
		"Call": func(ctx context.Context) error { _, err := add.Call(ctx, s, settle.ID("e1"), 1); return err },
		"Post": func(ctx context.Context) error { _, err := add.Post(ctx, s, settle.ID("e1"), 1); return err },
		"Sender": func(ctx context.Context) error {
			o, err := add.Outgoing(settle.To("s"), settle.ID("e1"), 1)
			return errors.Join(err, c.Sender().Send(ctx, o, nil))
		},
		"Await":       func(ctx context.Context) error { _, err := s.Await(ctx, "add", settle.ID("e1")); return err },
		"FindReceipt": func(ctx context.Context) error { _, err := s.FindReceipt(ctx, "add", settle.ID("e1")); return err },
		"Receipts": func(ctx context.Context) (err error) {
			for _, err = range s.Receipts(ctx, history.ReceiptFilter{}) {
				break
			}
			return err
		},
		"Log": func(ctx context.Context) error { _, err := s.Log(ctx, history.LogQuery{}); return err },
		"FollowLog": func(ctx context.Context) (err error) {
			for _, err = range s.FollowLog(ctx, history.LogQuery{}) {
				break
			}
			return err
		},
		"Why":        func(ctx context.Context) error { _, err := s.Why(ctx, "count", questions.Query{}); return err },
		"Lane":       func(ctx context.Context) error { _, err := s.Lane(ctx, questions.Query{}); return err },
		"Graph":      func(ctx context.Context) error { _, err := s.Graph(ctx, questions.Query{}); return err },
		"Top":        func(ctx context.Context) error { _, err := c.Top(ctx, "w1", 0); return err },
		"Get":        func(ctx context.Context) error { _, _, err := s.Get(ctx, "count"); return err },
		"GetCurrent": func(ctx context.Context) error { _, err := s.GetCurrent(ctx, "count"); return err },
		"Watch": func(ctx context.Context) (err error) {
			for _, err = range s.Watch(ctx, "count") {
				break
			}
			return err
		},
		"DeadLetters": func(ctx context.Context) (err error) {
			for _, err = range c.DeadLetters(ctx) {
				break
			}
			return err
		},
		"CountDead":     func(ctx context.Context) error { _, err := s.CountDead(ctx); return err },
		"CountOpenDead": func(ctx context.Context) error { _, err := c.CountOpenDead(ctx, history.DeadFilter{}); return err },
		"OpenDead":      func(ctx context.Context) error { _, err := c.OpenDead(ctx, history.DeadFilter{}); return err },
		"Dismiss":       func(ctx context.Context) error { _, _, err := s.Dismiss(ctx, "add", settle.ID("e1"), ""); return err },
		"Redrive":       func(ctx context.Context) error { _, _, err := s.Redrive(ctx, "add", settle.ID("e1")); return err },
		"Cancel":        func(ctx context.Context) error { _, err := c.Cancel(ctx, ref, ""); return err },
		"CancelAll":     func(ctx context.Context) error { _, err := c.CancelAll(ctx, []history.EventRef{ref}, ""); return err },
		"Tree": func(ctx context.Context) error {
			_, err := c.Tree(ctx, history.TreeQuery{Space: "s", Stream: "add", Event: "e1"})
			return err
		},
		"WaitTree": func(ctx context.Context) error { _, err := s.WaitTree(ctx, "add", settle.ID("e1")); return err },
		"Attach":   func(ctx context.Context) error { _, err := s.Attach(ctx, settle.AttachConfig{ID: "a"}); return err },
	}
	for name, use := range uses { // any order: each by itself
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := use(ctx)
		cancel()
		if !errors.Is(err, provision.ErrNoDeployment) || !strings.Contains(err.Error(), "no deployment with prefix shop on ") || !strings.Contains(err.Error(), "`settle provision`") {
			t.Errorf("%s: %v", name, err)
		}
	}

	if err := connect(bus.Config{Prefix: "shop", Partitions: 3}).Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := add.Post(t.Context(), s, settle.ID("e1"), 1); err != nil {
		t.Errorf("with a deployment: %v", err)
	}
}
