package test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/performer"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/remote"
	"github.com/settlehq/settle/space"
)

var (
	scan      = settle.NewAction[string, string]("scan")
	scanStart = settle.NewStream[string]("scan-start")
	scanStop  = settle.NewStream[string]("scan-stop")
)

// scanning is a deployment with an action that performers elsewhere perform.
type scanning struct {
	t *testing.T
	d *settle.Deployment
	s settle.Space
}

func newScanning(t *testing.T, options ...settle.ActionOption) *scanning {
	t.Helper()
	p := settle.NewProgram("scanning")
	scan.External(p, options...)
	scanStart.Handle(p, func(tx *settle.Tx, key string) error { scan.Start(tx, key, "in of "+key); return nil })
	scanStop.Handle(p, func(tx *settle.Tx, key string) error { scan.Cancel(tx, key); return nil })
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(p), Bus: bus.Config{Partitions: 1},
		Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval, Listen: ":0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return &scanning{t, d, d.Client().Space("lab")}
}

func (s *scanning) send(stream settle.Stream[string], id, key string) {
	s.t.Helper()
	if err := stream.Call(s.t.Context(), s.s, settle.ID(id), key); err != nil {
		s.t.Fatal(err)
	}
}

// task waits until a task is as a condition says.
func (s *scanning) task(key string, as func(space.Task) bool) space.Task {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	var last space.Task
	for u, err := range s.s.Watch(ctx, "scan") {
		if err != nil {
			s.t.Fatalf("task %s is %+v: %v", key, last, err)
		}
		if last = space.TaskOf(key, u.Value.At(space.PathOfTask(key))); as(last) {
			return last
		}
	}
	s.t.Fatalf("task %s is %+v", key, last)
	return last
}

// raw is a performer without any library.
type raw struct {
	t    *testing.T
	nc   *nats.Conn
	work chan *nats.Msg
}

func (s *scanning) raw(subject string) *raw {
	s.t.Helper()
	nc, err := nats.Connect(s.d.Server().ClientURL())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	r := &raw{s.t, nc, make(chan *nats.Msg, 100)}
	if _, err := nc.ChanQueueSubscribe(subject, "performers", r.work); err != nil {
		s.t.Fatal(err)
	}
	r.flush()
	return r
}

func (r *raw) flush() {
	r.t.Helper()
	if err := r.nc.FlushTimeout(patience); err != nil {
		r.t.Fatal(err)
	}
}

// next returns the next offer, and its request.
func (r *raw) next() (*nats.Msg, model.Value) {
	r.t.Helper()
	select {
	case m := <-r.work:
		v, err := model.ParseValue(m.Data)
		if err != nil {
			r.t.Fatal(err)
		}
		return m, v
	case <-time.After(patience):
		r.t.Fatal("no work is offered")
		return nil, model.Value{}
	}
}

// answer sends an answer, and returns what the worker says of it.
func (r *raw) answer(subject, text string) string {
	r.t.Helper()
	m, err := r.nc.Request(subject, []byte(text), patience)
	if err != nil {
		r.t.Fatalf("%.100s: %v", text, err)
	}
	return string(m.Data)
}

// perform starts a performer of package performer.
func (s *scanning) perform(cfg performer.Config) {
	s.t.Helper()
	b, err := bus.Dial(bus.Config{URL: s.d.Server().ClientURL()})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	cfg.Action = "scan"
	go func() { ended <- performer.Serve(ctx, b, cfg) }() // ends with ctx
	s.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.t.Error(err)
		}
		b.Close()
	})
}

func done(t space.Task) bool { return t.State == space.TaskDone }

func TestPerformers_OneDiesAfterItsClaimAndAnotherOneDoesTheWork(t *testing.T) {
	t.Parallel()
	s := newScanning(t, remote.Heartbeat(space.MinHeartbeat), settle.Backoff(time.Millisecond, time.Millisecond))
	dying := s.raw("settle.work.scan")
	s.send(scanStart, "e1", "a")
	m, first := dying.next()
	if said := dying.answer(m.Reply, `{"claim":true}`); said != `{"ok":true}` {
		t.Fatalf("the claim: %s", said)
	}
	dying.nc.Close()
	lost := s.task("a", func(t space.Task) bool { return t.Attempts > 0 })
	if lost.State != space.TaskPending || !strings.HasPrefix(lost.Err, "LostError: the performer has claimed the task") {
		t.Errorf("after the loss the task is %+v", lost)
	}
	s.perform(performer.Config{Do: func(_ context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
		in, _ := w.In.AsString()
		return model.String("out for " + in + " by " + w.Key), nil
	}})
	got := s.task("a", done)
	if got.Attempts < 1 || got.Out.String() != `"out for in of a by a"` {
		t.Errorf("the task is %+v", got)
	}
	late := s.raw("settle.work.nothing")
	if said := late.answer(m.Reply, `{"out":"late"}`); said != `{"over":true}` {
		t.Errorf("the late answer: %s", said)
	}
	if again := s.task("a", done); again.Out.String() != got.Out.String() {
		t.Errorf("the late answer has changed the task: %+v", again)
	}
	if first.Get("attempt").String() != "1" || first.Get("key").String() != `"a"` || first.Get("space").String() != `"lab"` {
		t.Errorf("the offer was %s", first)
	}
}

// An answer counts at the subject of its offer only, which cannot be guessed, and what it has is checked.
func TestPerformers_AnswersAreNotBelieved(t *testing.T) {
	t.Parallel()
	s := newScanning(t, settle.Attempts(1))
	r := s.raw("settle.work.scan")
	s.send(scanStart, "e1", "a")
	s.send(scanStart, "e2", "b")
	ma, a := r.next()
	if a.Get("key").String() != `"a"` {
		ma, _ = r.next()
	}
	forged := ma.Reply[:strings.LastIndexByte(ma.Reply, '.')+1] + "AAAAAAAAAAAAAAAAAAAAAAAAAA"
	if said := r.answer(forged, `{"out":"forged"}`); said != `{"over":true}` {
		t.Errorf("a forged answer: %s", said)
	}
	// It names another task, another start and another space, and has none of their rights.
	if said := r.answer(ma.Reply, `{"claim":true,"key":"b","n":7,"space":"other"}`); said != `{"ok":true}` {
		t.Errorf("the claim: %s", said)
	}
	if said := r.answer(ma.Reply, `{"out":"`+strings.Repeat("x", 300<<10)+`"}`); !strings.Contains(said, "at most 262144 are possible") {
		t.Errorf("an answer that is too large: %s", said)
	}
	got := s.task("a", func(t space.Task) bool { return t.State != space.TaskPending })
	if got.State != space.TaskFailed || !strings.HasPrefix(got.Err, "LimitError: the answer of the performer has") {
		t.Errorf("the task is %+v", got)
	}
	if other := s.task("b", func(space.Task) bool { return true }); other.State != space.TaskPending {
		t.Errorf("the other task is %+v", other)
	}
	// A reply subject that is no inbox could be that of a stream.
	if err := r.nc.PublishRequest(ma.Reply, "settle.send.0.lab.scan-start.forged", []byte(`{"heartbeat":true}`)); err != nil {
		t.Fatal(err)
	}
	r.flush()
	s.send(scanStart, "e3", "c")
	s.task("c", func(t space.Task) bool { return t.State == space.TaskPending })
	if rc, err := s.s.FindReceipt(t.Context(), "scan-start", settle.ID("forged")); err == nil && rc != nil {
		t.Error("the worker has answered into a stream")
	}
}

func TestPerformers_ACancellationReachesThePerformer(t *testing.T) {
	t.Parallel()
	for _, eager := range []bool{false, true} {
		s := newScanning(t)
		began, ended := make(chan struct{}), make(chan error, 1)
		s.perform(performer.Config{Eager: eager, Do: func(ctx context.Context, w *performer.Work, progress func(model.Value)) (model.Value, error) {
			close(began)
			<-ctx.Done()
			ended <- ctx.Err()
			return model.Value{}, ctx.Err()
		}})
		answers := s.answers()
		s.send(scanStart, "e1", "a")
		<-began
		if got := answers(1); got[0] != `{"claim":true}` {
			t.Errorf("eager %v: a task that takes long begins with %v", eager, got)
		}
		s.send(scanStop, "e2", "a")
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("eager %v: the performer ends with %v", eager, err)
		}
		if got := s.task("a", func(t space.Task) bool { return t.State != space.TaskPending }); got.State != space.TaskCancelled {
			t.Errorf("eager %v: the task is %+v", eager, got)
		}
	}
}

// answers returns what waits for a number of answers of performers, and returns them.
func (s *scanning) answers() func(n int) []string {
	s.t.Helper()
	r := s.raw("settle.work.nothing")
	answers := make(chan *nats.Msg, 100)
	if _, err := r.nc.ChanSubscribe("settle.answer.>", answers); err != nil {
		s.t.Fatal(err)
	}
	r.flush()
	return func(n int) (texts []string) {
		s.t.Helper()
		for range n {
			select {
			case m := <-answers:
				text := string(m.Data)
				if m.Reply == "" {
					text += " without a reply"
				}
				texts = append(texts, text)
			case <-time.After(patience):
				s.t.Fatalf("only %v is answered", texts)
			}
		}
		return texts
	}
}

// A result that no server takes is the error of the task, with words: it is not performed again and again.
func TestPerformers_AResultThatIsTooLargeForTheServer(t *testing.T) {
	t.Parallel()
	for _, eager := range []bool{false, true} {
		s := newScanning(t)
		s.perform(performer.Config{Eager: eager, Do: func(context.Context, *performer.Work, func(model.Value)) (model.Value, error) {
			return model.String(strings.Repeat("x", 2<<20)), nil
		}})
		s.send(scanStart, "e1", "a")
		got := s.task("a", func(t space.Task) bool { return t.State != space.TaskPending })
		if got.State != space.TaskFailed || !strings.HasPrefix(got.Err, "LimitError: the end of the task has 2097162 bytes, and the server takes messages of up to 1048576") {
			t.Errorf("eager %v: the task is %+v", eager, got)
		}
	}
}

// A performer that is eager says nothing of a short task but its result, and waits for no reply to it.
func TestPerformers_AnEagerOneClaimsNoShortTask(t *testing.T) {
	t.Parallel()
	s := newScanning(t)
	s.perform(performer.Config{Eager: true, Slots: 2, Do: func(_ context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
		return w.In, nil
	}})
	answers := s.answers()
	for _, key := range []string{"a", "b"} {
		s.send(scanStart, "e"+key, key)
		if got := s.task(key, done); got.Out.String() != `"in of `+key+`"` {
			t.Errorf("the task is %+v", got)
		}
	}
	if got := answers(2); strings.Join(got, " ") != `{"out":"in of a"} without a reply {"out":"in of b"} without a reply` {
		t.Errorf("the answers, and to which of them a reply is expected: %v", got)
	}
}

// A performer that is eager, and done while its claim has no reply yet, reports the result, and does not hand the task back.
func TestPerformers_AnEagerOneThatIsDoneBeforeItsClaimIsConfirmed(t *testing.T) {
	t.Parallel()
	s := newScanning(t)
	finish := make(chan struct{})
	s.perform(performer.Config{Eager: true, Slots: 2, Do: func(ctx context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
		if w.Key == "late" {
			select {
			case <-finish:
			case <-ctx.Done():
			}
		}
		return model.String("out"), nil
	}})
	s.send(scanStart, "e1", "a")
	s.task("a", done) // the performer is there
	answers, worker := s.answers(), s.raw("settle.work.nothing")
	const offer = `{"action":"scan","key":"late","space":"lab","attempt":1,"answer":"settle.answer.test.1","cancel":"settle.cancel.test","heartbeat_ms":20}`
	if err := worker.nc.PublishRequest("settle.work.scan", "settle.answer.test.1", []byte(offer)); err != nil {
		t.Fatal(err)
	}
	got := answers(1)
	close(finish)
	if got = append(got, answers(1)...); strings.Join(got, " ") != `{"claim":true} {"out":"out"} without a reply` {
		t.Errorf("the answers are %v", got)
	}
}

// The slots of the performers are the bound of a fleet; tasks beyond them wait, and no attempt is counted.
func TestPerformers_NeverHaveMoreTasksThanSlots(t *testing.T) {
	t.Parallel()
	s := newScanning(t, settle.Attempts(1))
	const tasks, slots = 40, 3
	gate := make(chan struct{}, slots)
	do := func(_ context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
		select {
		case gate <- struct{}{}:
		default:
			return model.Value{}, &performer.Error{Type: "TooMany", Message: "more than the slots"}
		}
		defer func() { <-gate }()
		return w.In, nil
	}
	s.perform(performer.Config{Do: do, Slots: 2})
	s.perform(performer.Config{Do: do, Slots: 1})
	for i := range tasks {
		key := string(rune('A'+i/26)) + string(rune('a'+i%26))
		s.send(scanStart, "e-"+key, key)
	}
	for i := range tasks {
		key := string(rune('A'+i/26)) + string(rune('a'+i%26))
		if got := s.task(key, func(t space.Task) bool { return t.State != space.TaskPending && t.State != space.NoTask }); got.State != space.TaskDone {
			t.Errorf("task %s is %+v", key, got)
		}
	}
}

// What a performer reports while it is at work can be seen in the document, and an error has its type.
func TestPerformers_ProgressAndErrors(t *testing.T) {
	t.Parallel()
	s := newScanning(t, settle.Attempts(1), remote.Heartbeat(space.MinHeartbeat), remote.Queue("lab"))
	seen := make(chan struct{})
	s.perform(performer.Config{Queue: "lab", Do: func(_ context.Context, _ *performer.Work, progress func(model.Value)) (model.Value, error) {
		progress(model.Object(model.F("page", 7)))
		<-seen
		return model.Value{}, &performer.Error{Type: "Torn", Message: "page 8"}
	}})
	s.send(scanStart, "e1", "a")
	got := s.task("a", func(t space.Task) bool { return !t.Progress.IsAbsent() })
	if got.Progress.String() != `{"page":7}` || got.State != space.TaskPending {
		t.Errorf("the task is %+v", got)
	}
	close(seen)
	if got := s.task("a", func(t space.Task) bool { return t.State == space.TaskFailed }); got.Err != "Torn: page 8" || !got.Progress.IsAbsent() {
		t.Errorf("the task is %+v", got)
	}
}

// A performer answers every offer of a burst, however few it can take: one without an answer is not offered again for seconds.
func TestPerformers_EachOfferOfABurstIsAnswered(t *testing.T) {
	t.Parallel()
	s := newScanning(t)
	s.perform(performer.Config{Do: func(ctx context.Context, _ *performer.Work, _ func(model.Value)) (model.Value, error) {
		<-ctx.Done()
		return model.Value{}, ctx.Err()
	}})
	r := s.raw("settle.work.nothing")
	answers := make(chan *nats.Msg, 10_000)
	if _, err := r.nc.ChanSubscribe("settle.answer.burst.*", answers); err != nil {
		t.Fatal(err)
	}
	r.flush()
	offer := func(n int) {
		text := `{"action":"scan","key":"k","space":"lab","attempt":1,"cancel":"settle.cancel.c","heartbeat_ms":10000}`
		if err := r.nc.PublishRequest("settle.work.scan", fmt.Sprint("settle.answer.burst.", n), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for len(answers) == 0 { // until the performer has subscribed
		offer(0)
		r.flush()
	}
	const burst = 5000
	for n := range burst {
		offer(n + 1)
	}
	r.flush()
	for n := 0; n < burst-1; { // the first one is perhaps taken
		select {
		case m := <-answers:
			if m.Subject != "settle.answer.burst.0" {
				n++
			}
		case <-time.After(patience):
			t.Fatalf("%d of %d offers are answered", n, burst)
		}
	}
}

// Performers know the event that has caused their work, and have a key for the services they call that is unique over spaces and the same for each attempt.
func TestPerformers_KnowTheEventAndAKeyThatIsUniqueOverSpaces(t *testing.T) {
	t.Parallel()
	s := newScanning(t, settle.Backoff(time.Millisecond, time.Millisecond))
	s.perform(performer.Config{Do: func(_ context.Context, w *performer.Work, _ func(model.Value)) (model.Value, error) {
		if w.Attempt == 1 {
			return model.Value{}, errors.New(w.IdempotencyKey)
		}
		return model.String(w.Event + " " + w.IdempotencyKey), nil
	}})
	s.send(scanStart, "e1", "a")
	first := s.task("a", done)
	if first.Out.String() != `"e1 settle.lab.scan.a"` || scan.IdempotencyKey(s.s, "a") != "settle.lab.scan.a" {
		t.Errorf("the task is %+v, and its key %s", first, scan.IdempotencyKey(s.s, "a"))
	}
	s.s = s.d.Client().Space("other-lab")
	s.send(scanStart, "e1", "a")
	if other := s.task("a", done); other.Out.String() != `"e1 settle.other-lab.scan.a"` {
		t.Errorf("the task of the other space is %+v", other)
	}
}

// A client that watches the tasks knows the same.
func TestPerformers_AWatcherKnowsTheEvent(t *testing.T) {
	t.Parallel()
	s := newScanning(t, remote.Watched())
	s.send(scanStart, "e1", "a")
	for task, err := range scan.WatchPending(t.Context(), s.s) {
		if err != nil {
			t.Fatal(err)
		}
		if task.Event != settle.ID("e1") {
			t.Errorf("the event of the task is %s", task.Event)
		}
		break
	}
}
