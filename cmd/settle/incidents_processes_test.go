package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/process"
	"github.com/settlehq/settle/worker"
)

// roleOfProcess is the environment variable with the role and the id under which TestMain runs as a
// process.
const roleOfProcess = "SETTLE_TEST_ROLE"

// serveAsProcess runs a coordinator, or a worker with a counter whose stream "end" ends the process.
func serveAsProcess(role, id string) {
	programs := settle.Always(counter().Handle("end", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		os.Exit(3)
		return settle.Value{}, nil
	}))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := process.Flags{ID: id, Prefix: "settle", Log: "info"}.Run(ctx, role, os.Stderr, func(p process.Process) (func(context.Context) error, error) {
		return beginRole(ctx, role, p, programs)
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// member is a process that runs as a worker or a coordinator.
type member struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// newMember starts a process from a program file, which is this one or a copy. The process is killed at
// the end of the test.
func newMember(t *testing.T, file, role, id string) *member {
	t.Helper()
	m := &member{cmd: exec.Command(file), ended: make(chan struct{})}
	m.cmd.Env = append(os.Environ(), roleOfProcess+"="+role+" "+id, "NATS_URL="+urlOf(t))
	out := &output{}
	m.cmd.Stdout, m.cmd.Stderr = out, out
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		_ = m.cmd.Wait()
		close(m.ended)
	}()
	t.Cleanup(func() {
		m.kill()
		if t.Failed() {
			t.Logf("%s %s:\n%s", role, id, out)
		}
	})
	return m
}

// kill ends the process like kill -9, even if it is suspended.
func (m *member) kill() {
	_ = m.cmd.Process.Kill() // it may have ended
	<-m.ended
}

// ends waits until the process has ended without a signal.
func (m *member) ends(t *testing.T) {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(5 * time.Minute):
		t.Fatal("the process does not end")
	}
}

// signal sends the process a signal.
func (m *member) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// thisFile returns the program file of the tests.
func thisFile(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// A worker whose handler ends its process rarely answers. While processes end, the reports still name
// the space, the event and the attempt, and so does the dead letter after the third attempt. Other
// events of the space are handled.
func TestIncident_AHandlerEndsItsProcess(t *testing.T) {
	t.Parallel()
	counting(t, -1)
	self := thisFile(t)
	w := newMember(t, self, "worker", "w-ends")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a1", "--wait")
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "attempt", "STUCK")
	saysNot(t, wantSoon(t, 1, "1 worker: w-ends", "doctor"), "! stuck spaces", "open")
	want(t, 0, "stored", "send", "cart", "end", "--id", "bad", "--wait=none")
	want(t, 0, "stored", "send", "cart", "add", "--id", "a2", "--wait=none")
	w.ends(t)
	wantSoon(t, 0, "no worker runs | w-ends has ended without leaving", "fleet")

	attempt := 0
	for died := 1; attempt < 3; died++ {
		if died > 6 {
			t.Fatalf("%d processes have ended", died)
		}
		w = newMember(t, self, "worker", "w-ends")
		w.ends(t)
		f := wantSoon(t, 0, "no worker runs", "fleet")
		if next := fmt.Sprintf("attempt %d has begun", attempt+1); strings.Contains(f, next) {
			attempt++
			says(t, f, "STUCK SPACE", "cart", "end/bad")
			wantSoon(t, 2, fmt.Sprintf(`"check": "stuck spaces" | space cart at event bad of stream end, on | attempt %d has begun`, attempt), "doctor", "--json")
		}
	}
	newMember(t, self, "worker", "w-ends")
	want(t, 0, "handled", "send", "cart", "add", "--id", "a2", "--wait")
	wantSoon(t, 1, "1 open | 1 of these of stream end, the first because: the handler never came back: the process ended, or it was given up, in each of 3 attempts (event bad of space cart)", "doctor", "--json")
	goneSoon(t, "attempt")
}

// A frozen coordinator is reported next to a healthy one, and not as one that works. When the other is killed,
// the doctor reports that none is left.
func TestIncident_ACoordinatorIsFrozenAndTheOtherDies(t *testing.T) {
	t.Parallel()
	s := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	pointAt(t, s.ClientURL())
	want(t, 0, "deployment settle", "provision", "--partitions", "2")
	self := thisFile(t)
	newMember(t, self, "worker", "w-well")
	frozen, well := newMember(t, self, "coordinator", "c-frozen"), newMember(t, self, "coordinator", "c-well")
	out := wantSoon(t, 0, "1 worker, 2 coordinators, 2 partitions | c-frozen     here | c-well       here", "fleet")
	saysNot(t, out, "does not answer", "no coordinator")
	saysNot(t, wantSoon(t, 1, "coordinators   2", "doctor"), "does not answer", "no coordinator")

	frozen.signal(t, syscall.SIGSTOP)
	out = wantSoon(t, 0, "! c-frozen does not answer: it hangs, or its machine is cut off. Another coordinator does its work", "fleet")
	saysNot(t, out, "c-well does not answer", "no coordinator runs")
	out = wantSoon(t, 1, "coordinators   one | listens and does not answer: c-frozen | those that answer do its work", "doctor")
	saysNot(t, out, "answer: c-well")

	well.kill()
	wantSoon(t, 0, "c-well has ended without leaving | no coordinator runs: events between spaces wait. Start one: coordinator", "fleet")
	wantSoon(t, 2, "✗ coordinators | no coordinator answers | Start one", "doctor")
	frozen.signal(t, syscall.SIGCONT)
	goneSoon(t, "no coordinator runs")
	saysNot(t, wantSoon(t, 1, "coordinators   one", "doctor"), "no coordinator answers")
}

// A worker with another program file is reported next to those with the same one.
func TestIncident_WorkersOfDifferentFiles(t *testing.T) {
	t.Parallel()
	counting(t, -1)
	self := thisFile(t)
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, append(program, 0), 0o700); err != nil {
		t.Fatal(err)
	}
	newMember(t, self, "worker", "w-old1")
	newMember(t, self, "worker", "w-old2")
	saysNot(t, wantSoon(t, 0, "2 workers, 1 coordinator", "fleet"), "program files")
	saysNot(t, wantSoon(t, 1, "2 workers: w-old1, w-old2", "doctor"), "program files")
	newMember(t, other, "worker", "w-new")
	wantSoon(t, 0, "! workers of different program files: | (w-new) | (w-old1, w-old2) | This is normal during an upgrade", "fleet")
	wantSoon(t, 1, `"check": "versions" | workers run different program files: | (w-new) | (w-old1, w-old2)`, "doctor", "--json")
}

// The doctor names an event that waits for an unreadable document of another space, with the document, and no
// space that is not blocked.
func TestIncident_AnEventWaitsForAnotherSpace(t *testing.T) {
	t.Parallel()
	here, beside, there := spaceIn(0), besideIn(0), spaceIn(1)
	server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	pointAt(t, server.ClientURL())
	d := begun(t, settle.Config{
		Programs: settle.Always(counter().Handle("price", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) { return tx.GetFrom(there, "double"), nil })),
		Bus:      bus.Config{URL: server.ClientURL(), Partitions: 2},
	})
	want(t, 0, "handled", "send", beside, "price", "--id", "p0", "--wait")
	saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "STUCK")
	if err := d.Bus().JetStream().DeleteStream(t.Context(), "KV_SETTLE_STATE_1"); err != nil {
		t.Fatal(err)
	}
	want(t, 0, "stored", "send", here, "price", "--id", "p1", "--wait=none")
	want(t, 0, "handled", "send", beside, "add", "--id", "a1", "--wait")
	out := wantSoon(t, 0, "STUCK SPACE | "+here+" | price/p1 | waits for document @"+there+"/double, which is not here", "fleet")
	saysNot(t, out, beside+" ")
	text := judgedOf(t, d, server.ClientURL(), soon)
	says(t, text, "! stuck spaces space "+here+" at event p1 of stream price", "waits for document @"+there+"/double", "See that the other space exists")
	saysNot(t, text, "space "+beside)
}

// A task that is tried again and again is reported with its action and its error, and so is one that was given up, unless its program handles that.
func TestIncident_AnActionFails(t *testing.T) {
	t.Parallel()
	p := counter()
	start := func(a settle.Action[int, int]) func(*settle.Tx, *settle.Event) (settle.Value, error) {
		return func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			a.Start(tx, ev.ID, 1)
			return settle.Value{}, nil
		}
	}
	closed := func(context.Context, string, int) (int, error) { return 0, errors.New("the port is closed") }
	ship, sail, row := settle.NewAction[int, int]("ship"), settle.NewAction[int, int]("sail"), settle.NewAction[int, int]("row")
	ship.Perform(p, closed, settle.Backoff(10*time.Millisecond, 10*time.Millisecond))
	sail.Perform(p, closed, settle.Attempts(1))
	row.Perform(p, closed, settle.Attempts(1))
	row.Done(p, func(*settle.Tx, settle.Task[int, int]) error { return nil })
	p.Handle("go", start(ship)).Handle("depart", start(sail)).Handle("leave", start(row))
	d := started(t, settle.Config{Programs: settle.Always(p)})
	want(t, 0, "handled", "send", "harbour", "leave", "--id", "o3", "--wait")
	want(t, 0, "handled", "send", "harbour", "go", "--id", "o1", "--wait")
	want(t, 0, "handled", "send", "harbour", "depart", "--id", "o2", "--wait")
	out := wantSoon(t, 0, "space harbour on w1: task o1 of action ship is tried again | space harbour on w1: task o2 of action sail was given up after 1 attempt: the port is closed", "fleet")
	saysNot(t, out, "o3")
	text := judgedAfter(t, d, soon)
	says(t, text, "! tasks space harbour: ", "space harbour: task o1 of action ship is tried again", "space harbour: task o2 of action sail was given up after 1 attempt: the port is closed")
	saysNot(t, text, "o3")
}

// Work that the store does not accept is reported: at the log, whose answer the event waits for, and at the
// saved state. When the store accepts it, everything continues.
func TestIncident_TheStoreDoesNotTakeWhatIsDone(t *testing.T) {
	t.Parallel()
	for stream, why := range map[string]string{
		"SETTLE_LOG_1":      "the log has not answered its commit yet",
		"KV_SETTLE_STATE_1": "what it has done ",
	} {
		t.Run(stream, func(t *testing.T) {
			d := started(t, settle.Config{Programs: settle.Always(counter()), Options: worker.Options{Checkpoint: 20 * time.Millisecond}})
			limit := func(bytes int64) {
				t.Helper()
				s, err := d.Bus().JetStream().Stream(t.Context(), stream)
				if err != nil {
					t.Fatal(err)
				}
				c := s.CachedInfo().Config
				c.MaxBytes, c.Discard = bytes, jetstream.DiscardNew
				if _, err := d.Bus().JetStream().UpdateStream(t.Context(), c); err != nil {
					t.Fatal(err)
				}
			}
			// A space of which nothing is saved: the server takes an item in the place of one that is not smaller.
			space, beside := besideIn(1), spaceIn(0)
			want(t, 0, "handled", "send", spaceIn(1), "add", "--id", "a0", "--wait")
			saved(t, d, spaceIn(1))
			saysNot(t, wantSoon(t, 0, "1 worker", "fleet"), "STUCK")
			limit(1)
			if _, err := d.Client().Send(t.Context(), settle.Outgoing{Space: space, Stream: "add", ID: settle.ID("a1")}); err != nil { // as one that was connected before
				t.Fatal(err)
			}
			want(t, 0, "handled", "send", beside, "add", "--id", "a1", "--wait")
			out := wantSoon(t, 0, "STUCK SPACE | "+space+" | "+why+" | the store has no room", "fleet")
			saysNot(t, out, beside+" ")
			text := judgedAfter(t, d, soon)
			says(t, text, "! stuck spaces space "+space, why, "✗ storage worker w1 could not store something")
			saysNot(t, text, "space "+beside)
			limit(-1)
			want(t, 0, "handled", "send", space, "add", "--id", "a1", "--wait")
			goneSoon(t, "STUCK")
		})
	}
}

// The doctor reports a log and a lane that end before a known position, even if no process runs.
func TestIncident_ALogAndALaneHaveLostTheirEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	start := func(files string) *embedded.Server {
		t.Helper()
		s, err := embedded.Start(t.Context(), embedded.Config{StoreDir: filepath.Join(dir, files), Fsync: embedded.FsyncInterval, Listen: ":0"})
		if err != nil {
			t.Fatal(err)
		}
		pointAt(t, s.ClientURL())
		return s
	}
	s := start("now")
	want(t, 0, "deployment settle", "provision", "--partitions", "2")
	s.Shutdown()
	if err := os.CopyFS(filepath.Join(dir, "old"), os.DirFS(filepath.Join(dir, "now"))); err != nil {
		t.Fatal(err)
	}
	s = start("now")
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(passing()), Bus: bus.Config{URL: s.ClientURL(), Partitions: 2}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		want(t, 0, "settled", "send", spaceIn(i), "pass", `"`+spaceIn(1-i)+`"`, "--id", "p1", "--wait=tree")
	}
	untilSaved(t, d, "released")
	if err := d.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	saysNot(t, wantSoon(t, 2, "no worker answers", "doctor"), "is known to have reached", "✗ log and lanes")
	s.Shutdown()
	for _, stream := range []string{"SETTLE_LOG_1", "SETTLE_LANE_0"} {
		at := filepath.Join("jetstream", "$G", "streams", stream)
		if err := os.RemoveAll(filepath.Join(dir, "now", at)); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(dir, "now", at), os.DirFS(filepath.Join(dir, "old", at))); err != nil {
			t.Fatal(err)
		}
	}
	s = start("now")
	defer s.Shutdown()
	out := wantSoon(t, 2, "✗ log and lanes | SETTLE_LOG_1 ends at 0, and is known to have reached | SETTLE_LANE_0 ends at 0, and events up to | were handled", "doctor")
	saysNot(t, out, "SETTLE_LOG_0 ends", "SETTLE_LANE_1 ends")
	wantSoon(t, 0, "no worker runs", "fleet")
}
