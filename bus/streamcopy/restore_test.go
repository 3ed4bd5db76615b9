package streamcopy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

// restorer begins a restore on a server.
func restorer(t *testing.T, s *embedded.Server, backup string) (*Restorer, error) {
	t.Helper()
	r, err := BeginRestore(t.Context(), bus.Config{Server: s, Partitions: 1}, backup)
	if err == nil {
		t.Cleanup(r.b.Close)
	}
	return r, err
}

const logStream = "SETTLE_LOG_0"

// deployed returns a bus with a deployment of one partition on its own server.
func deployed(t *testing.T) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{Server: emptyServer(t), Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

func emptyServer(t *testing.T) *embedded.Server {
	t.Helper()
	return natstest.StartServer(t, embedded.Config{})
}

// Of two concurrent restores, the second one gets the deployment.
func TestRestorer_LeavesEverythingToALaterRestore(t *testing.T) {
	s := emptyServer(t)
	first, err := restorer(t, s, "b1")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.own(t.Context()); err != nil {
		t.Errorf("alone: %v", err)
	}
	second, err := restorer(t, s, "b1")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.own(t.Context()); !errors.Is(err, errOtherRestore) {
		t.Errorf("the first restore continues: %v", err)
	}
	if err := second.own(t.Context()); err != nil {
		t.Errorf("the second restore fails: %v", err)
	}
}

// A stream with the same name that no restore has created is left alone.
func TestRestorer_DeletesNothingThatNoRestoreHasMade(t *testing.T) {
	s := emptyServer(t)
	r, err := restorer(t, s, "b1")
	if err != nil {
		t.Fatal(err)
	}
	foreign := jetstream.StreamConfig{Name: logStream, Subjects: []string{"mine"}}
	if _, err := r.b.JetStream().CreateStream(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	if _, err := restorer(t, s, "b1"); err == nil || !strings.Contains(err.Error(), "no restore has made") {
		t.Errorf("error %v", err)
	}
	if _, err := r.b.JetStream().Stream(t.Context(), logStream); err != nil {
		t.Errorf("the stream is gone: %v", err)
	}
}

// A stream that is being restored accepts no messages, and republishes none of the restored ones.
func TestRestorer_AStreamThatIsBeingRestoredIsClosed(t *testing.T) {
	s := emptyServer(t)
	r, err := restorer(t, s, "b1")
	if err != nil {
		t.Fatal(err)
	}
	open, err := r.config(&Restored{Asset: provision.Asset{Stream: logStream, Component: provision.ComponentLog}})
	if err != nil || open.RePublish == nil {
		t.Fatal("a log republishes nothing, which the test needs", err)
	}
	c := r.closed(open)
	if c.RePublish != nil || len(c.Subjects) != 1 || strings.HasPrefix(c.Subjects[0], "settle.log") || c.Metadata[provision.MetaRestoring] != r.value(stageCopying) {
		t.Errorf("it is %+v", c)
	}
}

// A stream that differs from the backup after the copy is refused.
func TestRestorer_AStreamThatDiffersIsRefused(t *testing.T) {
	b := deployed(t)
	for i := range uint64(3) {
		done := make(chan error, 1)
		b.Append(model.Append{Space: "cart", ID: fmt.Sprint("a/0/", i+1), Expect: i}, func(_ uint64, err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	r := &Restorer{b: b}
	is, err := Reach(t.Context(), b, logStream)
	if err != nil {
		t.Fatal(err)
	}
	s := Restored{Asset: provision.Asset{Stream: logStream, Component: provision.ComponentLog}, First: is.First, Last: is.Last, Messages: is.Messages, Bytes: is.Bytes}
	if err := r.verify(t.Context(), &s); err != nil {
		t.Errorf("the same state: %v", err)
	}
	for name, change := range map[string]func(*Restored){
		"ends earlier":   func(s *Restored) { s.Last++ },
		"fewer messages": func(s *Restored) { s.Messages++ },
		"more messages":  func(s *Restored) { s.Messages-- },
		"a later end":    func(s *Restored) { s.Last-- },
	} {
		wrong := s
		change(&wrong)
		if err := r.verify(t.Context(), &wrong); err == nil {
			t.Errorf("a stream with %s is accepted", name)
		}
	}
}

// A copy ends at the requested sequence, even if that was deleted, or with the error of take.
func TestCopyStream_EndsAtTheRequestedSequenceOrWithAnError(t *testing.T) {
	b := deployed(t)
	stream, err := b.JetStream().CreateStream(t.Context(), jetstream.StreamConfig{Name: "PLAIN", Subjects: []string{"plain"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if _, err := b.JetStream().Publish(t.Context(), "plain", nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.DeleteMsg(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("no room")
	for name, c := range map[string]struct {
		upTo   uint64
		failAt uint64
		want   []uint64
		err    error
	}{
		"all":                                  {0, 0, []uint64{1, 3, 4}, nil},
		"up to a message":                      {3, 0, []uint64{1, 3}, nil},
		"up to a deleted message":              {2, 0, []uint64{1}, nil},
		"until take fails":                     {0, 3, []uint64{1, 3}, failure},
		"until take fails at the last message": {3, 3, []uint64{1, 3}, failure},
	} {
		var got []uint64
		err := Copy(t.Context(), b, "PLAIN", 0, c.upTo, func(m *Stored) error {
			if got = append(got, m.Seq); m.Seq == c.failAt {
				return failure
			}
			return nil
		})
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: copied %v, %v; want %v, %v", name, got, err, c.want, c.err)
		}
	}
}
