package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// stored is a space in an embedded server, as its owner saves it.
type stored struct {
	*testing.T
	b    *bus.Bus
	name string
	head uint64
}

// commit appends a commit that writes a document.
func (s *stored) commit(doc string, n int64) {
	s.Helper()
	tx := model.Tx{N: 1, By: "test", Writes: []model.Write{{Doc: doc, Value: model.Int(n)}}}
	c := &model.Commit{Version: model.CommitVersion, Space: s.name, Runtime: "w", Epoch: 1, Txs: []model.Tx{tx}}
	done := make(chan error, 1)
	a := model.Append{Space: s.name, Expect: s.head, ID: c.ID(), Data: model.AppendCommit(nil, c, model.AppendTx(nil, &tx))}
	s.b.Append(a, func(seq uint64, err error) {
		s.head = seq
		done <- err
	})
	if err := <-done; err != nil {
		s.Fatal(err)
	}
}

// save stores documents, each with its number, and the mark, as of the head of the log.
func (s *stored) save(documents int) {
	s.Helper()
	data, err := (&model.Mark{Version: model.MarkVersion, Epoch: 1, Owner: "w"}).Encode()
	if err != nil {
		s.Fatal(err)
	}
	var docs []model.StateDoc
	for i := range documents {
		docs = append(docs, model.StateDoc{Doc: fmt.Sprintf("d%d", i), Data: fmt.Append(nil, i), Seq: s.head})
	}
	if err := s.b.SaveState(s.Context(), s.name, docs, &model.StateDoc{Data: data, Seq: s.head}); err != nil {
		s.Fatal(err)
	}
}

// traffic returns how many messages a connection sends and receives while do runs.
func traffic(b *bus.Bus, do func()) uint64 {
	before := b.Traffic()
	do()
	after := b.Traffic()
	return after.InMsgs + after.OutMsgs - before.InMsgs - before.OutMsgs
}

// To read or to begin to watch one document costs a few messages, whatever the size of the space: the head of its log, the mark and
// the document, and the commits behind the mark.
func TestRead_CostsTheSameInASpaceOfAnySize(t *testing.T) {
	b := provisioned(t, bus.Config{Partitions: 1})
	for _, size := range []int{1, 1000, 3000} {
		s := &stored{T: t, b: b, name: fmt.Sprintf("s%d", size)}
		s.commit("d0", 0)
		s.save(size)
		asks := func(what string, want int64, most uint64, do func() (*model.Value, error)) {
			t.Helper()
			n := traffic(b, func() {
				v, err := do()
				if err != nil || v.String() != model.Int(want).String() {
					t.Errorf("%s of %d documents: %v, %v", what, size, v, err)
				}
			})
			if n > most {
				t.Errorf("%s of %d documents took %d messages; %d are enough", what, size, n, most)
			}
		}
		read := func() (*model.Value, error) {
			d, err := history.Read(t.Context(), b, s.name, "d0")
			if err != nil {
				return nil, err
			}
			return &d.Value, nil
		}
		watch := func() (v *model.Value, err error) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			w := history.Watch{Bus: b, Space: s.name, Doc: "d0"}
			err = w.Changes(ctx, func(c history.Change) { v = &c.Value; end() })
			if v != nil {
				err = nil
			}
			return v, err
		}
		asks("reading one", 0, 6, read)
		asks("watching one", 0, 8, watch)
		s.commit("d0", 5)
		asks("reading one, with a commit behind the mark,", 5, 6+2, read)
		s.commit("d0", 6)
		s.commit("d0", 7)
		asks("reading one, with three commits behind the mark,", 7, 6+2+1+4, read)
	}
}

// subscribing counts what its connections tell a server about subscriptions.
type subscribing struct {
	server nats.InProcessConnProvider
	count  atomic.Int64
}

func (s *subscribing) InProcessConn() (net.Conn, error) {
	c, err := s.server.InProcessConn()
	return &subscribingConn{c, s}, err
}

type subscribingConn struct {
	net.Conn
	s *subscribing
}

func (c *subscribingConn) Write(p []byte) (int, error) {
	c.s.count.Add(int64(bytes.Count(p, []byte("SUB _INBOX")) + bytes.Count(p, []byte("UNSUB "))))
	return c.Conn.Write(p)
}

// All reads of a process share one subscription, and each gets its own answers.
func TestRead_NeedsNoSubscriptionOfItsOwn(t *testing.T) {
	spy := &subscribing{server: natstest.StartServer(t, embedded.Config{})}
	b := provisioned(t, bus.Config{Partitions: 1, Options: []nats.Option{nats.InProcessServer(spy)}})
	const spaces = 8
	for n := range spaces {
		s := &stored{T: t, b: b, name: fmt.Sprintf("s%d", n)}
		s.commit("d0", 0)
		s.save(1)
		s.commit("d1", int64(n))
	}
	if _, err := history.Read(t.Context(), b, "s0", "d1"); err != nil {
		t.Fatal(err)
	}
	before := spy.count.Load()
	var reads sync.WaitGroup
	for n := range 20 * spaces {
		reads.Go(func() { // ends with its read
			space := n % spaces
			if d, err := history.Read(t.Context(), b, fmt.Sprintf("s%d", space), "d1"); err != nil || d.Value.String() != fmt.Sprint(space) {
				t.Errorf("space %d: read %+v, %v", space, d, err)
			}
		})
	}
	reads.Wait()
	if n := spy.count.Load() - before; n > 0 || before == 0 {
		t.Errorf("reading changed subscriptions %d times, and %d times before", n, before)
	}
}
