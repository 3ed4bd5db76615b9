package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// A partition that lacks a stream is reported, and the advice is not to create an empty one in its
// place. Every command works for the spaces of the other partitions, and so do a worker, a coordinator
// and a deployment that are started then.
func TestIncident_APartitionWithoutOneOfItsStreams(t *testing.T) {
	t.Parallel()
	for component, name := range map[string]string{"log": "SETTLE_LOG_1", "lane": "SETTLE_LANE_1", "state": "KV_SETTLE_STATE_1"} {
		t.Run(component, func(t *testing.T) {
			server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
			pointAt(t, server.ClientURL())
			here, beside, there := spaceIn(0), besideIn(0), spaceIn(1)
			cfg := settle.Config{Programs: settle.Always(passing()), Bus: bus.Config{URL: server.ClientURL(), Partitions: 2}}
			d := begun(t, cfg)
			stream := func() error {
				_, err := d.Bus().JetStream().Stream(t.Context(), name)
				return err
			}
			want(t, 0, "stored", "send", here, "fail", "--id", "f1", "--wait=none")
			want(t, 0, "stored", "send", there, "fail", "--id", "f2", "--wait=none")
			want(t, 0, "handled", "send", there, "add", "--id", "a1", "--wait")
			want(t, 0, "settled", "send", here, "pass", strconv.Quote(there), "--id", "p1", "--wait=tree")
			wantSoon(t, 0, "2 dead letters, 2 open", "dead")
			untilSaved(t, d, "sent") // which a coordinator that is started compares with the lane
			saysNot(t, want(t, 0, "", "fleet"), "cannot be")
			if err := d.Bus().JetStream().DeleteStream(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			serves := func(id string) {
				t.Helper()
				want(t, 0, "handled", "send", here, "add", "--id", id, "--wait")
				want(t, 0, "2 events: 2 handled; settled", "send", here, "pass", strconv.Quote(beside), "--id", id, "--wait=tree")
				wantSoon(t, 0, "1 worker, 1 coordinator, 2 partitions | partition 1 cannot be used now, others can: stream "+name+" ("+component+"): no such stream; `settle doctor` says what to do | ! partition 1 cannot be read: ", "fleet")
			}
			serves("b1")
			wantSoon(t, 2, "stream "+name+" ("+component+") is missing | The spaces of partition 1 stand still | an empty one in its place has forgotten", "doctor", "--json")
			saysNot(t, want(t, 2, "", "doctor"), "could not be compared")
			want(t, 0, "1\n", "get", here, "n")
			want(t, 0, "add | b1", "receipts", here)
			want(t, 0, "nothing waits", "timers", here)
			want(t, 0, "2 dead letters, 2 open", "dead")
			want(t, 1, "a missing stream cannot be accepted as a loss: partition 1", "accept-loss")
			want(t, 0, "b1  handled", "tree", "b1", "--space", here, "--stream", "add")
			refused := "space " + there + " is in partition 1, which cannot be used now: stream " + name + " (" + component + "): no such stream; `settle doctor` says what to do"
			want(t, 1, refused, "send", there, "add", "--id", "b1")
			want(t, 1, refused, "get", there, "n")
			want(t, 1, refused, "receipts", there)
			want(t, 1, refused, "tree", "a1", "--space", there)
			want(t, 1, refused, "export", here, there)
			want(t, 1, name+" ("+component+"): no such stream", "backup", t.TempDir())

			switch component {
			case "log":
				want(t, 0, "p1 | handled | ! "+there+"/add | unknown | read stream "+name+": no such stream | 1 unknown; not settled | The streams of unknown events are missing", "tree", "p1")
				want(t, 1, here+" | the spaces of partition 1 are not listed: stream "+name, "ls")
			case "lane":
				want(t, 0, "p1 | handled | ! "+there+"/add | unknown | read stream "+name+": no such stream", "tree", "p1")
				want(t, 1, "event a1 is in no lane that can be read", "tree", "a1")
				want(t, 1, "f1: sent again | f2 of "+there+"/fail: find event f2:r1 to stream fail of space "+there+": read stream "+name+": no such stream | 1 of 2 could not be sent again", "redrive", "--all", "--confirm", "2")
			}
			killed(t, d)
			d = begun(t, cfg)
			serves("b2")
			if err := stream(); !errors.Is(err, jetstream.ErrStreamNotFound) {
				t.Errorf("the deployment that was started has put an empty stream in its place: %v", err)
			}
		})
	}
}

// untilSaved waits until a position of partition 1 is saved.
func untilSaved(t *testing.T, d *settle.Deployment, name string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		switch at, err := d.Bus().LoadPosition(t.Context(), 1, name); {
		case err != nil:
			t.Fatal(err)
		case at > 0:
			return
		case time.Since(begun) > patience:
			t.Fatalf("position %s is not saved", name)
		}
	}
}

// besideIn returns the name of another space of one of two partitions.
func besideIn(partition int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint("beside", i); model.PartitionOf(name, 2) == partition {
			return name
		}
	}
}

// passing returns a counter that forwards events to the space that they name, and fails all others.
func passing() *settle.Program {
	return counter().
		Handle("pass", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			to, _ := ev.Payload.AsString()
			tx.Send(to, "add", nil)
			return settle.ValueOf("passed")
		}).
		Handle("fail", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			return settle.Value{}, errors.New("the shelf is empty")
		})
}

// begun returns a deployment that is killed at the end of the test, because a partition that lacks a
// stream cannot be saved.
func begun(t *testing.T, cfg settle.Config) *settle.Deployment {
	t.Helper()
	d, err := settle.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killed(t, d) })
	return d
}

// killed ends a deployment without saving.
func killed(t *testing.T, d *settle.Deployment) {
	t.Helper()
	for _, id := range d.Workers() {
		d.KillWorker(id)
	}
	if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// A setting that was altered by hand is reported, with the stream and the command that restores it: as a
// failure if a promise does not hold, and as a warning if work can stop. Once it is restored, the doctor
// reports nothing.
func TestIncident_AStreamWhoseSettingsWereAltered(t *testing.T) {
	t.Parallel()
	d := running(t)
	saysNot(t, wantSoon(t, 1, "9 of 9 streams have every setting", "doctor", "--json"), "must be")
	for _, c := range []struct {
		stream, says string
		code         int
		alter        func(*jetstream.StreamConfig)
	}{
		{"SETTLE_LANE_1", "maximum messages is 3, must be unlimited | `nats stream edit SETTLE_LANE_1 --max-msgs=-1`", 1, func(c *jetstream.StreamConfig) { c.MaxMsgs = 3 }},
		{"SETTLE_LANE_1", "maximum bytes is 5000, must be at least 1048576 (max_payload), or unlimited | `nats stream edit SETTLE_LANE_1 --max-bytes=-1`", 1, func(c *jetstream.StreamConfig) { c.MaxBytes = 5000 }},
		{"SETTLE_LANE_1", "maximum age is 1m0s, must be unlimited | `nats stream edit SETTLE_LANE_1 --max-age=0s`", 2, func(c *jetstream.StreamConfig) { c.MaxAge = time.Minute }},
		{"SETTLE_LANE_1", "largest message is 1000, must be unlimited | `nats stream edit SETTLE_LANE_1 --max-msg-size=-1`", 2, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 }},
		{"SETTLE_LANE_1", "duplicate window is 2m0s, must be 100ms | acknowledge it without storing it", 2, func(c *jetstream.StreamConfig) { c.Duplicates = 2 * time.Minute }},
		{"SETTLE_LOG_0", "messages per subject is 5, must be unlimited | `nats stream edit SETTLE_LOG_0 --max-msgs-per-subject=-1`", 2, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }},
		{"SETTLE_LOG_0", "maximum consumers is 1, must be unlimited | max_consumers: -1", 1, func(c *jetstream.StreamConfig) { c.MaxConsumers = 1 }},
		{"KV_SETTLE_STATE_0", "discard per subject is on, must be off | `nats stream edit KV_SETTLE_STATE_0 --no-discard-per-subject`", 1, func(c *jetstream.StreamConfig) { c.DiscardNewPerSubject = true }},
		{"KV_SETTLE_STATE_0", "discard policy is DiscardOld, must be DiscardNew | `nats stream edit KV_SETTLE_STATE_0 --discard=new`", 2, func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"SETTLE_DEAD", "maximum messages is 10, must be unlimited | `nats stream edit SETTLE_DEAD --max-msgs=-1`", 1, func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 }},
		{"KV_SETTLE_PROGRAMS", "maximum age is 1h0m0s, must be unlimited | `nats stream edit KV_SETTLE_PROGRAMS --max-age=0s`", 2, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"KV_SETTLE_WORKERS", "maximum age is 1s, must be 1h0m0s | `nats stream edit KV_SETTLE_WORKERS --max-age=1h0m0s`", 1, func(c *jetstream.StreamConfig) { c.MaxAge = time.Second }},
	} {
		s, err := d.Bus().JetStream().Stream(t.Context(), c.stream)
		if err != nil {
			t.Fatal(err)
		}
		altered := s.CachedInfo().Config
		c.alter(&altered)
		if _, err := d.Bus().JetStream().UpdateStream(t.Context(), altered); err != nil {
			t.Fatal(err)
		}
		wantSoon(t, c.code, `"check": "streams" | stream `+c.stream+": "+c.says+" | 8 of 9 streams have every setting", "doctor", "--json")
		if _, err := d.Bus().JetStream().UpdateStream(t.Context(), s.CachedInfo().Config); err != nil {
			t.Fatal(err)
		}
	}
	saysNot(t, wantSoon(t, 1, "9 of 9 streams have every setting", "doctor", "--json"), "must be")
}

// A failed event, and a document that exceeds its limit, become dead letters with the reason; the rest of the
// space continues.
func TestIncident_AHandlerThatFailsAndADocumentThatIsTooLarge(t *testing.T) {
	t.Parallel()
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(settle.NewProgram("fragile").
			Handle("fail", func(*settle.Tx, *settle.Event) (settle.Value, error) {
				return settle.Value{}, errors.New("the shelf is empty")
			}).
			Handle("grow", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
				tx.Set("all", strings.Repeat("x", 2<<20))
				return settle.Value{}, nil
			}).
			Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) { return settle.ValueOf("added") })),
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"}, Bus: bus.Config{Partitions: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	pointAt(t, d.Server().ClientURL())
	want(t, 0, "stored", "send", "cart", "fail", "--id", "f1", "--wait=none")
	want(t, 0, "stored", "send", "cart", "grow", "--id", "g1", "--wait=none")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a1", "--wait")
	wantSoon(t, 1, "2 events, ever; 2 open, the oldest for | because: the shelf is empty (event f1 of space cart) | because: write all: the document would have | (event g1 of space cart)", "doctor", "--json")
	want(t, 0, "the shelf is empty | the document would have | split it into several documents", "dead", "cart", "--full")
	out := wantSoon(t, 0, "1 worker, 1 coordinator, 1 partition", "fleet")
	if strings.Contains(out, "STUCK") {
		t.Errorf("the space is said to stand still:\n%s", out)
	}
}

// backwards is a server whose files are reset to an earlier state.
type backwards struct {
	*testing.T
	dir  string
	port int
	*embedded.Server
}

func startBackwards(t *testing.T) *backwards {
	t.Helper()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	s := &backwards{T: t, dir: t.TempDir(), port: ports[0]}
	s.start("old")
	t.Cleanup(func() { s.Shutdown() })
	pointAt(t, s.ClientURL())
	return s
}

func (s *backwards) start(files string) {
	s.Helper()
	var err error
	s.Server, err = embedded.Start(s.Context(), embedded.Config{StoreDir: filepath.Join(s.dir, files), Fsync: embedded.FsyncInterval, Listen: fmt.Sprintf("127.0.0.1:%d", s.port)})
	if err != nil {
		s.Fatal(err)
	}
}

// again starts the server again with a copy of the files that it began with.
func (s *backwards) again(now string) {
	s.Helper()
	s.Shutdown()
	if err := os.CopyFS(filepath.Join(s.dir, now), os.DirFS(filepath.Join(s.dir, "old"))); err != nil {
		s.Fatal(err)
	}
	s.start(now)
}

// adding starts a deployment of one partition on the server.
func (s *backwards) adding() *settle.Deployment {
	s.Helper()
	d, err := settle.Start(s.Context(), settle.Config{
		Programs: settle.Always(settle.NewProgram("counter").Handle("add", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.ValueOf("added") })),
		Bus:      bus.Config{URL: s.ClientURL(), Partitions: 1, Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond)}},
	})
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *backwards) stop(d *settle.Deployment) {
	s.Helper()
	if err := d.Stop(context.WithoutCancel(s.Context())); err != nil {
		s.Error(err)
	}
}

// A worker that knows newer data than the store continues with the store's state, and reports that, even
// after its restart, until an operator acknowledges it.
func TestIncident_AStoreThatHasGoneBack(t *testing.T) {
	t.Parallel()
	s := startBackwards(t)
	d := s.adding()
	defer func() { s.stop(d) }()
	want(t, 0, "handled", "send", "cart", "add", "--id", "a1", "--wait")
	s.again("new")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a2", "--wait")
	saved(t, d, "cart")
	for _, command := range []string{"fleet", "doctor"} {
		if out, _ := try(t, 0, "", command); strings.Contains(out, "gone back") {
			t.Errorf("a store that has not gone back is said to have:\n%s", out)
		}
	}
	s.again("older")
	const each = "stream SETTLE_LANE_0 was known up to | stream SETTLE_LOG_0 was known up to | stream KV_SETTLE_STATE_0 was known up to"
	wantSoon(t, 0, "the store has gone back to an earlier state; | "+each, "fleet")
	wantSoon(t, 1, "the store has gone back to an earlier state; | "+each+" | Senders that have the events can send them again", "doctor", "--json")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a2", "--wait")
	s.stop(d)
	d = s.adding()
	wantSoon(t, 1, "the store has gone back to an earlier state; | "+each+" | settle doctor --acknowledge", "doctor", "--json")
	wantSoon(t, 0, "the store has gone back to an earlier state; | "+each, "fleet")
	acknowledged(t)
}

// acknowledged acknowledges the rewinds, which must not be reported any more afterwards.
func acknowledged(t *testing.T) {
	t.Helper()
	if out, _ := try(t, 0, "", "doctor", "--acknowledge"); strings.Contains(out, "gone back") {
		t.Errorf("the doctor says what is acknowledged:\n%s", out)
	}
	if out, _ := try(t, 0, "", "fleet"); strings.Contains(out, "gone back") {
		t.Errorf("the fleet says what is acknowledged:\n%s", out)
	}
}

// A loss that only a coordinator could notice is reported, also after the coordinator has ended.
func TestIncident_AStoreHasGoneBackAndACoordinatorAloneKnewIt(t *testing.T) {
	t.Parallel()
	s := startBackwards(t)
	d := s.adding()
	want(t, 0, "handled", "send", "cart", "add", "--id", "a1", "--wait")
	s.stop(d)
	s.again("new")
	b, err := bus.Connect(t.Context(), bus.Config{URL: s.ClientURL(), Name: "coordinator/c1", Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond)}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := coordinator.New(b, coordinator.Config{ID: "c1"})
	c.Start()
	defer c.Stop()
	d = s.adding()
	want(t, 0, "handled", "send", "cart", "add", "--id", "a2", "--wait")
	s.stop(d)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		f, err := fleet.Look(t.Context(), b)
		if err != nil || time.Since(begun) > patience {
			t.Fatalf("c1 has not read the log: %+v, %v", f, err)
		}
		if slices.ContainsFunc(f.Coordinators, func(m fleet.Member) bool { return m.ID == "c1" && m.State == fleet.Here && m.Unreleased == 0 }) {
			break
		}
	}
	s.again("older")
	const found = "the store has gone back to an earlier state; coordinator c1 noticed it | stream SETTLE_LOG_0 was known up to"
	wantSoon(t, 0, found, "fleet")
	wantSoon(t, 2, found, "doctor", "--json")
	c.Stop()
	wantSoon(t, 2, found, "doctor", "--json")
	acknowledged(t)
}

// A lane without room delays the sends between spaces, which is reported with the lane, the space, and
// since when.
func TestIncident_AFullLaneHoldsUpWhatSpacesSend(t *testing.T) {
	t.Parallel()
	here, there := spaceIn(0), spaceIn(1)
	d := started(t, settle.Config{Bus: bus.Config{Partitions: 2}, Programs: settle.Always(settle.NewProgram("relay").
		Handle("pass", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Send(there, "add", nil)
			return settle.Value{}, nil
		}).
		Handle("add", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.ValueOf("added") }))})
	limit := func(bytes int64) {
		t.Helper()
		js := d.Bus().JetStream()
		s, err := js.Stream(t.Context(), "SETTLE_LANE_1")
		if err != nil {
			t.Fatal(err)
		}
		c := s.CachedInfo().Config
		c.MaxBytes = bytes
		if _, err := js.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	want(t, 0, "handled", "send", here, "pass", "--id", "p1", "--wait")
	wantSoon(t, 0, "the lane of partition 1 has no room for events from other spaces; | 1 event waits, the first one for space "+there, "fleet")
	wantSoon(t, 1, "finds no room in the lane of partition 1 since | 1 event from other spaces | Raise the limit", "doctor", "--json")
	limit(-1)
	want(t, 0, "handled", "send", here, "pass", "--id", "p2", "--wait=tree")
	gone := func() bool { return !strings.Contains(wantSoon(t, 0, "2 partitions", "fleet"), "has no room") }
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); !gone(); <-again.C {
		if time.Since(begun) > patience {
			t.Fatal("the lane has room, and is said to have none")
		}
	}
}

// Data that a partition or a space has lost permanently is reported until an operator accepts the loss.
// Others continue in the meantime; afterwards these do as well, from the state of the store.
func TestIncident_AStreamThatWasReplacedByAnOlderOne(t *testing.T) {
	t.Parallel()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := func(files string) *embedded.Server {
		s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: filepath.Join(dir, files), Fsync: embedded.FsyncInterval, Listen: fmt.Sprintf("127.0.0.1:%d", ports[0])})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	copied := func(from, to string) {
		t.Helper()
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join(dir, from))); err != nil {
			t.Fatal(err)
		}
	}
	// replace restarts the server with its files, except for those of some streams, which are older.
	replace := func(s *embedded.Server, files, now, older string, streams ...string) *embedded.Server {
		t.Helper()
		s.Shutdown()
		copied(files, now)
		for _, stream := range streams {
			at := filepath.Join("jetstream", "$G", "streams", stream)
			if err := os.RemoveAll(filepath.Join(dir, now, at)); err != nil {
				t.Fatal(err)
			}
			copied(filepath.Join(older, at), filepath.Join(now, at))
		}
		return start(now)
	}
	s := start("one")
	defer func() { s.Shutdown() }()
	pointAt(t, s.ClientURL())
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(counter()), Options: worker.Options{Checkpoint: 20 * time.Millisecond, Idle: 50 * time.Millisecond},
		Bus: bus.Config{URL: s.ClientURL(), Partitions: 2, Options: []nats.Option{nats.ReconnectWait(10 * time.Millisecond)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	here, there := spaceIn(0), spaceIn(1)
	want(t, 0, "nothing is refused", "accept-loss")
	want(t, 2, "there is no partition 2; the deployment has 2", "accept-loss", "--partition", "2")
	want(t, 2, "name a space or a partition, not both", "accept-loss", here, "--partition", "1")
	want(t, 2, "--yes needs a space or --partition N", "accept-loss", "--yes")
	want(t, 2, `space "a.b"`, "accept-loss", "a.b")
	s = replace(s, "one", "two", "one") // so that one keeps its state
	for i := range 3 {
		want(t, 0, "handled", "send", here, "add", "--id", fmt.Sprint("a", i), "--wait")
		want(t, 0, "handled", "send", there, "add", "--id", fmt.Sprint("a", i), "--wait")
	}
	saved(t, d, here)
	saved(t, d, there)

	s = replace(s, "two", "three", "one", "SETTLE_LANE_0")
	wantSoon(t, 0, "partition 0 is refused by | the lane ends at 0, but its events were handled up to 3 | settle accept-loss --partition 0", "fleet")
	wantSoon(t, 2, "refuses partition 0 since | `settle accept-loss` lists what is lost", "doctor", "--json")
	want(t, 0, "handled", "send", there, "add", "--id", "b0", "--wait")
	want(t, 1, "partition 0 is refused | lane ends at 0, and its events were handled up to 3 | nothing was changed", "accept-loss")
	wantSoon(t, 0, "partition 0 is refused by", "fleet")
	want(t, 1, "space "+there+" is not refused; refused are: partition 0", "accept-loss", there)
	want(t, 1, "partition 1 is not refused; refused are: partition 0", "accept-loss", "--partition", "1", "--yes")
	want(t, 1, "space "+here+" is not refused; refused are: partition 0", "accept-loss", here, "--yes")
	wantSoon(t, 0, "partition 0 is refused by", "fleet")
	want(t, 0, "partition 0: accepted", "accept-loss", "--partition", "0", "--yes")
	want(t, 0, "handled", "send", here, "add", "--id", "b0", "--wait")
	want(t, 0, "nothing is refused", "accept-loss", "--partition", "0")
	untilValue(t, "4", here, "n")
	want(t, 0, "a1", "receipts", here)
	saved(t, d, there)

	s = replace(s, "three", "four", "one", "SETTLE_LOG_1")
	want(t, 0, "stored", "send", there, "add", "--id", "c0", "--wait=none")
	wantSoon(t, 0, "space "+there+" is refused by | the log ends at 0, but is known up to", "fleet")
	want(t, 0, "handled", "send", here, "add", "--id", "c0", "--wait")
	want(t, 1, "space "+there+" (partition 1) is refused | its log ends at 0, and its saved state reflects commit | lost: the receipts | kept: the saved documents | nothing was changed", "accept-loss", there)
	want(t, 0, "(partition 1): accepted", "accept-loss", there, "--yes")
	untilValue(t, "5", there, "n")
	want(t, 0, "handled", "send", there, "add", "--id", "c1", "--wait")
	untilValue(t, "6", there, "n")
	out := wantSoon(t, 0, "1 worker", "fleet")
	if strings.Contains(out, "is refused") {
		t.Errorf("something is refused still:\n%s", out)
	}
}

// spaceIn returns the name of a space of one of two partitions.
func spaceIn(partition int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprint("cart", i); model.PartitionOf(name, 2) == partition {
			return name
		}
	}
}

// saved waits until the saved state of a space agrees with its log.
func saved(t *testing.T, d *settle.Deployment, space string) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for begun := time.Now(); ; <-again.C {
		st, err := d.Bus().LoadState(t.Context(), space)
		head, err2 := d.Bus().Head(t.Context(), space)
		if err == nil && err2 == nil && st.Mark.Seq == head {
			return
		}
		if time.Since(begun) > patience {
			t.Fatalf("space %s is saved up to %d, its log ends at %d: %v, %v", space, st.Mark.Seq, head, err, err2)
		}
	}
}
