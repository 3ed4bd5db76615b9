// Package performer performs actions for the workers of a deployment, with the protocol of docs/performers.md. A program needs
// a connection, and the permissions of the role performer, and nothing else of Settle.
package performer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// Config says what is performed.
type Config struct {
	// Action is the name of an action, and Queue that of one of its queues, "" for work without one.
	Action, Queue string
	// Slots is how many tasks are performed at a time; default 1. Further ones are declined.
	Slots int
	// Do performs a task. It must return when ctx ends: the worker does not need the task any more, or the process stops.
	// An *Error has a type; any other error is of type Error. progress reports how far it is.
	Do func(ctx context.Context, w *Work, progress func(model.Value)) (model.Value, error)
	// Eager begins a task without waiting for the worker to confirm its claim, and claims it only if it takes longer than 500 ms; the end of
	// a shorter one is sent, and not confirmed. That leaves two of five messages. An offer that has waited in the connection for seconds, and
	// was given to another performer meanwhile, is performed once too often then, and so is a task whose end was lost with the connection: the
	// worker offers it again three seconds after the first time. It is for tasks that are cheap to perform again.
	Eager bool
	// Logger receives what is reported to no worker; default: discard.
	Logger *slog.Logger
}

// eagerFor is how long an eager performer works at a task before it claims it: well below the three seconds after which the worker offers
// it to another one.
const eagerFor = 500 * time.Millisecond

// Work is a task.
type Work struct {
	Action, Queue, Space string
	// Key is the same for each attempt, and unique within the space and the action.
	Key string
	// IdempotencyKey is the key for a service outside: the same for each attempt, and unique over all that use the service. It has at most 64 characters.
	IdempotencyKey string
	// Event is the id of the event whose handler has started the task; "" if it is not known.
	Event string
	// Run is the run of a workflow that the task belongs to, "" for none.
	Run string
	// Attempt counts from 1.
	Attempt int
	In      model.Value
	// Progress is the last one that an earlier attempt has reported.
	Progress model.Value
	// Timeout is the limit of the attempt, 0 for none. The context ends with it.
	Timeout time.Duration

	answer, cancel string
	heartbeat      time.Duration
	claimed        bool // the worker has confirmed it
}

// Error is an error with a type.
type Error struct {
	Type      string
	Ancestors []string // types that it is a kind of, the nearest first
	Message   string
	Detail    model.Value
	// Permanent reports that no further attempt will succeed. A workflow decides by the type.
	Permanent bool
}

// Error returns the type and the message.
func (e *Error) Error() string { return e.Type + ": " + e.Message }

// askPatience is how long a worker may take to confirm an answer, and tries how often it is sent.
const (
	askPatience = 5 * time.Second
	tries       = 6
)

// Serve performs tasks until ctx ends. It hands those back that are not done then.
func Serve(ctx context.Context, b *bus.Bus, cfg Config) error {
	if err := cfg.check(); err != nil {
		return err
	}
	s := &server{cfg: cfg, nc: b.Conn(), names: b.Streams().Names, slots: make(chan struct{}, max(cfg.Slots, 1)), running: map[string]func(){}}
	if s.cfg.Logger == nil {
		s.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	stops, err := s.nc.Subscribe(s.names.WorkCancel("*"), func(m *nats.Msg) { s.stop(m.Subject) })
	if err != nil {
		return fmt.Errorf("follow what is cancelled: %w", err)
	}
	defer func() { _ = stops.Unsubscribe() }() // fails only if the connection is closed
	// Offers come in bursts, of all spaces at once. One that finds no place would be without an answer for seconds.
	sub, err := s.nc.QueueSubscribeSync(s.names.Work(cfg.Action, cfg.Queue), wire.PerformersQueue)
	if err != nil {
		return fmt.Errorf("take work of action %s: %w", cfg.Action, err)
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	for {
		m, err := sub.NextMsgWithContext(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrSlowConsumer):
			continue // said once for those that were dropped; workers offer them again
		case err != nil:
			return fmt.Errorf("take work of action %s: %w", cfg.Action, err)
		}
		select {
		case s.slots <- struct{}{}:
			running.Go(func() { // ends with ctx at the latest, if Do does
				defer func() { <-s.slots }()
				s.take(ctx, m)
			})
		default:
			s.publish(m.Reply, busy)
		}
	}
}

func (cfg *Config) check() error {
	err := model.CheckName("action", cfg.Action)
	if err == nil && cfg.Queue != "" {
		err = model.CheckName("queue", cfg.Queue)
	}
	switch {
	case err != nil:
		return err
	case cfg.Slots < 0:
		return fmt.Errorf("%d slots; at least 1 is needed, and 0 is the default", cfg.Slots)
	case cfg.Do == nil:
		return errors.New("the function Do is nil; it performs the tasks")
	}
	return nil
}

type server struct {
	cfg   Config
	nc    *nats.Conn
	names wire.Names
	slots chan struct{}

	mu      sync.Mutex
	running map[string]func() // what stops a task, by the subject on which that is said
}

// runs notes a task, and returns what forgets it.
func (s *server) runs(w *Work, stop func()) (ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running[w.cancel] = stop
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, w.cancel)
	}
}

// stop stops the task of a subject, if it runs here.
func (s *server) stop(subject string) {
	s.mu.Lock()
	stop := s.running[subject]
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
}

var (
	busy = []byte(`{"busy":true}`)
	mine = []byte(`{"claim":true}`)
	beat = model.F("heartbeat", true)
)

// publish sends an answer and does not wait. A message that is lost costs time, and no task: one whose end is lost is offered, and performed, again.
func (s *server) publish(subject string, answer []byte) {
	if isBelow(subject, s.names.Prefix+".answer.") {
		_ = s.nc.Publish(subject, answer)
	}
}

// errOver is returned for an answer that the worker does not want any more.
var errOver = errors.New("the worker does not wait for the task any more")

// confirm sends an answer, and returns when the worker has accepted it.
func (s *server) confirm(ctx context.Context, w *Work, answer []byte) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	m, err := s.nc.RequestWithContext(ctx, w.answer, answer)
	if err != nil {
		return err
	}
	said, err := model.ParseValue(m.Data)
	switch why, refused := said.Get("refused").AsString(); {
	case err != nil:
		return fmt.Errorf("the worker has answered what is not JSON: %w", err)
	case refused:
		return errors.Join(errOver, errors.New(why))
	case !said.Get("over").IsAbsent():
		return errOver
	}
	return nil
}

// read reads an offer.
func (s *server) read(m *nats.Msg) (*Work, error) {
	v, err := model.ParseValue(m.Data)
	if err != nil {
		return nil, err
	}
	text := func(name string) string { t, _ := v.Get(name).AsString(); return t }
	millis := func(name string) time.Duration {
		n, _ := v.Get(name).AsInt()
		return time.Duration(min(max(n, 0), 1<<40)) * time.Millisecond
	}
	attempt, _ := v.Get("attempt").AsInt()
	w := &Work{
		Action: text("action"), Queue: text("queue"), Space: text("space"), Key: text("key"), Run: text("run"), Event: text("event"), Attempt: int(attempt),
		In: v.Get("in"), Progress: v.Get("progress"), Timeout: millis("timeout_ms"),
		answer: m.Reply, cancel: text("cancel"), heartbeat: max(millis("heartbeat_ms"), 10*time.Millisecond),
	}
	// A worker of an earlier version sends none.
	w.IdempotencyKey = cmp.Or(text("idempotency_key"), model.IdempotencyKey(s.names.Prefix, w.Space, w.Action, w.Key))
	// A program with more rights than those of a performer answers nowhere else.
	if !isBelow(w.answer, s.names.Prefix+".answer.") || !isBelow(w.cancel, s.names.Prefix+".cancel.") {
		return nil, fmt.Errorf("it is to be answered at %q, and cancelled at %q", w.answer, w.cancel)
	}
	return w, nil
}

func isBelow(subject, prefix string) bool {
	rest, is := strings.CutPrefix(subject, prefix)
	return is && rest != "" && !strings.ContainsAny(rest, "*> \t\r\n")
}

// take performs a task, unless the worker has given it to another performer in the meantime.
func (s *server) take(ctx context.Context, m *nats.Msg) {
	w, err := s.read(m)
	if err != nil {
		s.cfg.Logger.Warn("an offer is passed over", "subject", m.Subject, "error", err)
		return
	}
	doing, stop := context.WithCancel(ctx)
	defer stop()
	defer s.runs(w, stop)()
	if !s.cfg.Eager && !s.claim(doing, w) {
		return
	}
	out, failed := s.perform(doing, stop, w)
	switch {
	case ctx.Err() != nil && failed != nil:
		s.publish(w.answer, busy) // handed back
	case doing.Err() != nil && failed != nil: // stopped
	case w.claimed:
		s.report(w, s.result(out, failed))
	default:
		s.publish(w.answer, s.result(out, failed))
	}
}

// claim claims a task, and reports whether it is this performer's. It hands the task back if the claim remains without an answer, and
// needs to be made.
func (s *server) claim(ctx context.Context, w *Work) bool {
	err := s.confirm(ctx, w, mine)
	if err == nil {
		w.claimed = true
		return true
	}
	if s.cfg.Eager && ctx.Err() != nil {
		return false // the task has ended meanwhile, and its end follows
	}
	if !errors.Is(err, errOver) {
		s.publish(w.answer, busy) // the worker may have the claim
	}
	s.cfg.Logger.Debug("an offer is passed over", "action", w.Action, "key", w.Key, "error", err)
	return false
}

// perform calls Do, and sends heartbeats meanwhile.
func (s *server) perform(ctx context.Context, stop func(), w *Work) (out model.Value, err error) {
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	var mu sync.Mutex
	var last model.Value
	progress := func(v model.Value) {
		mu.Lock()
		defer mu.Unlock()
		last = v
	}
	beating, end := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { // ends with the task
		s.beat(beating, stop, w, func() model.Value {
			mu.Lock()
			defer mu.Unlock()
			v := last
			last = model.Value{}
			return v
		})
	})
	defer beats.Wait()
	defer end()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %v", r)
		}
	}()
	return s.cfg.Do(ctx, w, progress)
}

// beat sends heartbeats until ctx ends. It stops the task if the worker does not want it any more, or was not heard of for as long as
// a worker waits for a performer.
func (s *server) beat(ctx context.Context, stop func(), w *Work, progress func() model.Value) {
	if s.cfg.Eager && !s.claimLate(ctx, stop, w) {
		return
	}
	every := time.NewTicker(w.heartbeat)
	defer every.Stop()
	for silent := 0; ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		v := model.Object(beat)
		if p := progress(); !p.IsAbsent() {
			v = model.Object(beat, model.F("progress", p))
		}
		switch err := s.confirm(ctx, w, v.AppendJSON(nil)); {
		case err == nil:
			silent = 0
		case errors.Is(err, errOver):
			stop()
			return
		default:
			if silent++; silent == 3 {
				stop()
				return
			}
		}
	}
}

// claimLate claims a task that is at work already and takes long, and reports whether it goes on.
func (s *server) claimLate(ctx context.Context, stop func(), w *Work) bool {
	timer := time.NewTimer(min(eagerFor, w.heartbeat))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	if s.claim(ctx, w) {
		return true
	}
	stop()
	return false
}

// report sends the result of a task until the worker has it. A connection may be interrupted meanwhile.
func (s *server) report(w *Work, answer []byte) {
	for n := range tries {
		err := s.confirm(context.Background(), w, answer)
		if err == nil {
			return
		}
		if errors.Is(err, errOver) || n == tries-1 {
			s.cfg.Logger.Warn("the end of a task does not count; the worker has it performed again if it needs it", "action", w.Action, "space", w.Space, "key", w.Key, "error", err)
			return
		}
		time.Sleep(min(time.Duration(n+1)*time.Second, w.heartbeat))
	}
}

// result returns the last answer, which the server has to take.
func (s *server) result(out model.Value, err error) []byte {
	answer := answerOf(out, err).AppendJSON(nil)
	if size, limit := len(answer), s.nc.MaxPayload(); int64(size) > limit {
		answer = answerOf(model.Value{}, &Error{Type: "LimitError", Permanent: true, Message: fmt.Sprintf("the end of the task has %d bytes, and the server takes messages of up to %d: keep what is large elsewhere, and return a reference", size, limit)}).AppendJSON(nil)
	}
	return answer
}

func answerOf(out model.Value, err error) model.Value {
	if err == nil {
		if out.IsAbsent() {
			out = model.Null()
		}
		return model.Object(model.F("out", out))
	}
	var own *Error
	if !errors.As(err, &own) {
		own = &Error{Type: "Error", Message: err.Error()}
	}
	fields := []model.Field{model.F("type", own.Type), model.F("message", own.Message)}
	if len(own.Ancestors) > 0 {
		fields = append(fields, model.F("ancestors", own.Ancestors))
	}
	if !own.Detail.IsAbsent() {
		fields = append(fields, model.F("detail", own.Detail))
	}
	if own.Permanent {
		fields = append(fields, model.F("permanent", true))
	}
	return model.Object(model.F("error", model.Object(fields...)))
}
