package drain_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/drain"
	"github.com/settlehq/settle/model"
)

// A worker stops for a request to this life of it, whether that was stored before or after it has started; one to an earlier life, one to
// another worker, and one that cannot be read, it passes over.
func TestAwait_OnlyARequestToThisLifeOfTheWorkerCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := membus.NewServer(membus.Config{Partitions: 1}).Connect("c")
		defer b.Kill()
		ask := func(worker, life, by string) {
			t.Helper()
			if err := drain.Ask(t.Context(), b, worker, drain.Request{Life: life, By: by, At: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		ask("w1", "former", "ann")
		got := make(chan *drain.Request, 1)
		go func() { got <- drain.Await(t.Context(), b, "w1", "present", slog.New(slog.NewTextHandler(&log, nil))) }()
		none := func(after string) {
			t.Helper()
			synctest.Wait()
			select {
			case r := <-got:
				t.Fatalf("after %s, it stops for %+v", after, r)
			default:
			}
		}
		none("a request to its former life")
		ask("w2", "present", "ann")
		none("a request to another worker")
		r, err := b.LoadRecord(t.Context(), "drain.w1.request")
		if err != nil {
			t.Fatal(err)
		}
		for _, data := range []string{"{", `{"life":"present","by":"` + strings.Repeat("x", 5000) + `"}`, ""} {
			if r.Rev, err = b.SaveRecord(t.Context(), model.Record{Key: r.Key, Data: []byte(data), Rev: r.Rev}); err != nil {
				t.Fatal(err)
			}
			none(data[:min(20, len(data))])
		}
		if n := strings.Count(log.String(), "cannot be read"); n != 2 {
			t.Errorf("it has logged %d requests that cannot be read:\n%s", n, &log)
		}
		ask("w1", "present", "bob")
		if r := <-got; r == nil || r.By != "bob" {
			t.Errorf("it stops for %+v", r)
		}
		if r := drain.Await(t.Context(), b, "w1", "present", slog.New(slog.DiscardHandler)); r == nil {
			t.Error("a request that was stored before it listens is lost")
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if r := drain.Await(gone, b, "w1", "another", slog.New(slog.DiscardHandler)); r != nil {
			t.Errorf("at its end, it stops for %+v", r)
		}
	})
}
