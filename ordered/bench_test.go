package ordered_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// BenchmarkBesideAConsumerByHand handles b.N events that are in the stream: each adds one to the balance of a
// key. By hand that is a durable consumer, a get and a put of a bucket, and an acknowledgement, in one loop
// or in one goroutine per key; unlike this package, it applies an event twice after a crash at the wrong
// moment. The ratio is this package by hand-written code.
//
//	go test ./ordered -run '^$' -bench Beside -benchtime 20000x
func BenchmarkBesideAConsumerByHand(b *testing.B) {
	for _, fsync := range []struct {
		name string
		mode embedded.Fsync
	}{{"fsync=interval", embedded.FsyncInterval}, {"fsync=always", embedded.FsyncAlways}} {
		for _, keys := range []int{1, 100} {
			b.Run(fmt.Sprintf("%s/keys=%d", fsync.name, keys), func(b *testing.B) {
				ours := timeOrdered(b, fsync.mode, keys)
				loop := timeByHand(b, fsync.mode, keys, 1)
				perKey := timeByHand(b, fsync.mode, keys, keys)
				rate := func(d time.Duration) float64 { return float64(b.N) / d.Seconds() }
				b.ReportMetric(rate(ours), "ordered-ev/s")
				b.ReportMetric(rate(loop), "loop-ev/s")
				b.ReportMetric(rate(perKey), "perkey-ev/s")
				b.ReportMetric(rate(ours)/rate(loop), "x-loop")
				b.ReportMetric(rate(ours)/rate(perKey), "x-perkey")
			})
		}
	}
}

func benchKey(i, keys int) string { return "k" + strconv.Itoa(i%keys) }

func timeOrdered(b *testing.B, fsync embedded.Fsync, keys int) time.Duration {
	s := startNATS(b, fsync)
	bs := connectNATS(b, s, 1)
	publishAll(b, bs.JetStream(), b.N, func(i int) string { return fmt.Sprintf("settle.send.0.%s.add.e%d", benchKey(i, keys), i) })
	var last sync.WaitGroup
	last.Add(keys)
	want := map[string]int64{}
	for i := range b.N {
		want[benchKey(i, keys)]++
	}
	last.Add(len(want) - keys)
	for key, n := range want {
		go func() { // ends when the key has all of its events, or with the bus
			defer last.Done()
			seen := int64(0)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			_ = bs.FollowSpace(ctx, key, 0, func(e model.LogEntry) {
				c, err := model.DecodeCommit(e.Data)
				if err != nil {
					b.Error(err)
				}
				if seen += int64(len(c.Txs)); seen >= n {
					cancel()
				}
			})
		}()
	}
	began := time.Now()
	end := run(b, bs, ordered.Config{Handlers: map[string]ordered.Handler{"add": ordered.On(func(tx *ordered.Tx, by int64) (int64, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+by)
		return n + by, nil
	})}})
	last.Wait()
	took := time.Since(began)
	end()
	bs.Close()
	s.Shutdown()
	return took
}

func timeByHand(b *testing.B, fsync embedded.Fsync, keys, lanes int) time.Duration {
	s := startNATS(b, fsync)
	bs := connectNATS(b, s, 1)
	js := bs.JetStream()
	stream, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "HAND", Subjects: []string{"hand.>"}})
	check(b, err)
	kv, err := js.CreateKeyValue(b.Context(), jetstream.KeyValueConfig{Bucket: "hand"})
	check(b, err)
	publishAll(b, js, b.N, func(i int) string { return "hand." + benchKey(i, keys) })
	consumer, err := stream.CreateConsumer(b.Context(), jetstream.ConsumerConfig{Durable: "hand", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 5000})
	check(b, err)
	began := time.Now()
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan struct{})
	queues := make([]chan jetstream.Msg, lanes)
	for i := range queues {
		queues[i] = make(chan jetstream.Msg, 10_000)
		go func() { // ends with its queue
			for m := range queues[i] {
				apply(b, kv, m)
				if left.Add(-1) == 0 {
					close(done)
				}
			}
		}()
	}
	consuming, err := consumer.Consume(func(m jetstream.Msg) {
		key, _ := strconv.Atoi(strings.TrimPrefix(m.Subject(), "hand.k"))
		queues[key%lanes] <- m
	})
	check(b, err)
	<-done
	took := time.Since(began)
	consuming.Stop()
	for _, q := range queues {
		close(q)
	}
	bs.Close()
	s.Shutdown()
	return took
}

// apply is a handler written by hand.
func apply(b *testing.B, kv jetstream.KeyValue, m jetstream.Msg) {
	ctx, key := context.Background(), strings.TrimPrefix(m.Subject(), "hand.")
	n := 0
	e, err := kv.Get(ctx, key)
	if err == nil {
		n, err = strconv.Atoi(string(e.Value()))
	}
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		b.Error(err)
	}
	if _, err = kv.PutString(ctx, key, strconv.Itoa(n+1)); err == nil {
		err = m.Ack()
	}
	if err != nil {
		b.Error(err)
	}
}

func publishAll(b *testing.B, js jetstream.JetStream, n int, subject func(i int) string) {
	for i := range n {
		_, err := js.PublishAsync(subject(i), []byte("1"), jetstream.WithStallWait(time.Minute))
		check(b, err)
	}
	<-js.PublishAsyncComplete()
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
