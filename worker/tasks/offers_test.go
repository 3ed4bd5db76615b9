package tasks

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
)

// office runs the list of a space with one external action, in a loop as a host does, and has the offers that it makes.
type office struct {
	t      *testing.T
	list   *List
	a      *performing
	calls  chan func()
	begun  time.Time
	offers chan *heard
	// absent is how many offers find no performer.
	absent int

	mu   sync.Mutex
	made []time.Duration // when offers were made
	sent []model.Message
}

// heard is an offer as a performer gets it.
type heard struct {
	o       *office
	queue   string
	request model.Value
	deliver func(model.Answer)
	ended   chan bool // stop
	said    chan string
}

// answer sends an answer, and returns the reply.
func (h *heard) answer(text string) string {
	h.deliver(model.Answer{Data: []byte(text), Reply: func(b []byte) { h.said <- string(b) }})
	synctest.Wait()
	select {
	case said := <-h.said:
		return said
	default:
		return ""
	}
}

// over reports whether the offer is over, and whether the performer was notified.
func (h *heard) over() (over, stop bool) {
	synctest.Wait()
	select {
	case stop = <-h.ended:
		h.ended <- stop
		return true, stop
	default:
		return false, false
	}
}

func newOffice(t *testing.T, terms space.Remote) *office {
	t.Helper()
	o := &office{t: t, calls: make(chan func()), begun: time.Now(), offers: make(chan *heard, 1000)}
	o.serve(terms, NewOffers(o.offer))
	return o
}

// serve makes the list, and runs the loop.
func (o *office) serve(terms space.Remote, offers *Offers) {
	t := o.t
	t.Helper()
	core, err := space.New(space.Config{Space: "s", Runtime: "r"}, space.NewProgram("p"), replica.New("s"))
	if err != nil {
		t.Fatal(err)
	}
	if err := terms.Check(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.list = New(Host{
		Deployment: "shop", Space: "s", Ctx: ctx, Slots: NewSlots(1), Offers: offers, Logger: slog.New(slog.DiscardHandler),
		Now: o.now, Go: func(f func()) { go f() }, // ends with ctx
		Call: func(f func()) {
			select {
			case o.calls <- f:
			case <-ctx.Done():
			}
		},
		Send: func(m model.Message) error {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.sent = append(o.sent, m)
			return nil
		},
		Report: func(string, error) {}, Warn: func(string, string, ...any) {},
	})
	spec := &space.ActionSpec{Name: "work", External: true, Remote: &terms}
	o.a = &performing{spec: spec, pending: map[string]*task{}, queue: newQueue()}
	how, far := o.list.performer(spec)
	o.a.how, o.a.remote, o.a.limit = how, far, how.Concurrency()
	o.list.core, o.list.program, o.list.actions = core, core.Program(), []*performing{o.a}
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		o.loop(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended; synctest.Wait() })
}

func (o *office) now() time.Duration { return time.Since(o.begun) + time.Hour }

func (o *office) loop(ctx context.Context) {
	for {
		o.list.Perform()
		var wake <-chan time.Time
		if at := o.list.Next(); at > 0 {
			wake = time.After(max(at-o.now(), 0))
		}
		select {
		case f := <-o.calls:
			f()
		case <-wake:
		case <-ctx.Done():
			return
		}
	}
}

// do runs a function in the loop.
func (o *office) do(f func()) {
	done := make(chan struct{})
	o.calls <- func() { f(); close(done) }
	<-done
	synctest.Wait()
}

func (o *office) offer(action, queue string, request func(answer, cancel string) []byte, deliver func(model.Answer)) (func(bool), error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.made = append(o.made, time.Since(o.begun))
	h := &heard{o: o, queue: queue, deliver: deliver, ended: make(chan bool, 2), said: make(chan string, 100)}
	data := request("answer-to", "cancel-at")
	var err error
	if h.request, err = model.ParseValue(data); err != nil || action != "work" {
		o.t.Errorf("offer of %s: %v", action, err)
	}
	if o.absent > 0 {
		o.absent--
		deliver(model.Answer{NoPerformer: true})
	} else {
		o.offers <- h
	}
	var once sync.Once
	return func(stop bool) { once.Do(func() { h.ended <- stop }) }, nil
}

// pending makes the log have a task, or another state of it.
func (o *office) pending(key string, state space.TaskState, in string) {
	o.t.Helper()
	v, err := model.ParseValue([]byte(in))
	if err != nil {
		o.t.Fatal(err)
	}
	o.do(func() {
		o.list.lookAtEntry(o.a, key, model.Object(model.F("n", 1), model.F("state", string(state)), model.F("in", v)))
	})
}

// next returns the next offer.
func (o *office) next() *heard {
	o.t.Helper()
	select {
	case h := <-o.offers:
		return h
	case <-time.After(time.Minute):
		o.t.Fatal("there is no offer within a minute")
		return nil
	}
}

// none reports offers that were not to be made.
func (o *office) none() {
	o.t.Helper()
	synctest.Wait()
	if n := len(o.offers); n > 0 {
		o.t.Errorf("there are %d offers too many", n)
	}
}

// reports returns the payloads of the events that were sent.
func (o *office) reports() []string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []string
	for i := range o.sent {
		list = append(list, string(o.sent[i].Payload))
	}
	return list
}

func (o *office) want(reports ...string) {
	o.t.Helper()
	if got := o.reports(); !slices.Equal(got, reports) {
		o.t.Errorf("reported\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(reports, "\n  "))
	}
}

func equal(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %s, want %s", what, got, want)
	}
}

const ok = `{"ok":true}`

func TestOffer_HasWhatAPerformerNeedsAndTheResultIsStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Timeout: time.Minute, Heartbeat: 5 * time.Second, QueueBy: "host"})
		o.pending("k", space.TaskPending, `{"host":"a1","cents":5}`)
		h := o.next()
		equal(t, "the request", h.request.String(), `{"action":"work","answer":"answer-to","attempt":1,"cancel":"cancel-at","heartbeat_ms":5000,"idempotency_key":"shop.s.work.k","in":{"cents":5,"host":"a1"},"key":"k","queue":"a1","space":"s","timeout_ms":60000}`)
		equal(t, "the queue", h.queue, "a1")
		equal(t, "the answer to a claim", h.answer(`{"claim":true}`), ok)
		equal(t, "the answer to a heartbeat", h.answer(`{"heartbeat":true}`), ok)
		o.want()
		equal(t, "the answer to the result", h.answer(`{"out":{"n":1}}`), ok)
		o.want(`{"key":"k","n":1,"out":{"n":1}}`)
		if over, stop := h.over(); !over || stop {
			t.Errorf("over %v, stopped %v", over, stop)
		}
	})
}

// A result at once needs no claim, and null is one.
func TestOffer_MayBeAnsweredAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{})
		o.pending("k", space.TaskPending, `1`)
		o.next().answer(`{"out":null}`)
		o.want(`{"key":"k","n":1,"out":null}`)
	})
}

// Backpressure costs no attempt: the pauses grow, and the end of another task makes room at once.
func TestOffer_WaitsForPerformersWithoutAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Attempts: 1})
		o.absent = 4
		o.pending("a", space.TaskPending, `1`)
		first := o.next()
		equal(t, "the times of the offers", fmt.Sprint(o.made), "[0s 250ms 750ms 1.75s 3.75s]")
		first.answer(`{"claim":true}`)
		o.pending("b", space.TaskPending, `1`)
		for range 8 {
			o.next().answer(`{"busy":true}`)
		}
		second := time.Since(o.begun)
		time.Sleep(10 * time.Millisecond)
		o.none()
		first.answer(`{"out":1}`)
		h := o.next()
		if waited := time.Since(o.begun) - second; waited > 20*time.Millisecond {
			t.Errorf("the freed slot is used after %s", waited)
		}
		h.answer(`{"out":2}`)
		o.want(`{"key":"a","n":1,"out":1}`, `{"key":"b","n":1,"out":2}`)
	})
}

// lines is a log whose lines are counted.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { text += fmt.Sprintf(" %s=%v", a.Key, a.Value); return true })
	l.text = append(l.text, text)
	return nil
}

// all returns the lines so far.
func (l *lines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.text)
}

// unperformed returns what the worker reports, with times since the begin of the test.
func (o *office) unperformed() string {
	var f status.Figures
	o.a.remote.offers.Describe(&f)
	since := func(at time.Time) string {
		if at.IsZero() {
			return "never"
		}
		return at.Sub(o.begun).String()
	}
	text := ""
	for i := range f.Unperformed {
		u := &f.Unperformed[i]
		text += fmt.Sprintf("%s since %s, last %s, claimed %s; %d tasks of %s;", u.Reason(), since(u.Since), since(u.Last), since(u.Claimed), u.Tasks, u.Space)
	}
	return text
}

// A worker reports that no performer takes the tasks of an action, since when, and when one has taken a task for the last time; and logs it once
// until a task is taken.
func TestOffer_ThatNoPerformerIsThereIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{})
		log := &lines{}
		o.list.host.Logger = slog.New(log)
		o.absent = 1 << 30
		o.pending("a", space.TaskPending, `1`)
		o.pending("b", space.TaskPending, `1`)
		time.Sleep(2 * time.Second)
		equal(t, "the report after 2 s", o.unperformed(), "no performer of work is connected since 0s, last 1.75s, claimed never; 2 tasks of s;")
		if len(log.all()) > 0 {
			t.Errorf("it is logged at once: %q", log.all())
		}
		time.Sleep(time.Minute)
		if got := o.unperformed(); !strings.HasPrefix(got, "no performer of work is connected since 0s, last 5") && !strings.HasPrefix(got, "no performer of work is connected since 0s, last 1m") {
			t.Errorf("the report after a minute is %s", got)
		}
		if len(log.all()) != 1 || !strings.Contains(log.all()[0], "WARN tasks wait for a performer reason=no performer of work is connected") || !strings.Contains(log.all()[0], "remedy=settle perform work -- COMMAND (or: --http URL)") {
			t.Errorf("logged: %q", log.all())
		}

		o.mu.Lock()
		o.absent = 0
		o.mu.Unlock()
		first := o.next()
		first.answer(`{"claim":true}`)
		claimed := time.Since(o.begun)
		second := o.next()
		equal(t, "the report after a claim", o.unperformed(), "")
		second.answer(`{"busy":true}`)
		equal(t, "the report while one is busy", o.unperformed(), "")

		o.mu.Lock()
		o.absent = 1 << 30
		o.mu.Unlock()
		time.Sleep(10 * time.Second)
		if got := o.unperformed(); !strings.Contains(got, "claimed "+claimed.String()) || strings.Contains(got, "since 0s") {
			t.Errorf("the report of the second time is %s", got)
		}
		if len(log.all()) != 2 {
			t.Errorf("logged: %q", log.all())
		}
		o.pending("a", space.TaskDone, `1`)
		o.pending("b", space.TaskDone, `1`)
		time.Sleep(aloneFor + time.Second)
		equal(t, "the report when nothing waits", o.unperformed(), "")
	})
}

// A performer that is connected and does not answer is distinguished from one that is not connected.
func TestOffer_ThatAPerformerIsSilentIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{QueueBy: "host"})
		o.pending("a", space.TaskPending, `{"host":"a1"}`)
		time.Sleep(claimWithin + time.Millisecond)
		if got := o.unperformed(); !strings.HasPrefix(got, "a performer of work, queue a1 is connected, and none answers since 3s") {
			t.Error(got)
		}
	})
}

// While the performers of an action are busy, there is one offer at a time, for all tasks together.
func TestOffer_OneAtATimeWhileAllAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{})
		o.absent = 1 << 30
		for i := range 100 {
			o.pending(fmt.Sprint("k", i), space.TaskPending, `1`)
		}
		time.Sleep(time.Minute)
		o.mu.Lock()
		if n := len(o.made); n > 150 {
			t.Errorf("100 tasks without performers are offered %d times in a minute", n)
		}
		o.absent = 0
		o.mu.Unlock()
		h := o.next()
		h.answer(`{"claim":true}`)
		synctest.Wait()
		if n := len(o.offers); n != 99 {
			t.Errorf("%d of 99 others are offered when there is a performer", n)
		}
	})
}

func TestOffer_ThatIsNotClaimedIsMadeToAnotherAndTheFirstCountsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Attempts: 1})
		o.pending("k", space.TaskPending, `1`)
		silent := o.next()
		second := o.next()
		if over, stop := silent.over(); !over || !stop {
			t.Errorf("the first offer: over %v, notified %v", over, stop)
		}
		if took := time.Since(o.begun); took != claimWithin+pauses[unclaimed].first {
			t.Errorf("the second offer is made after %s", took)
		}
		silent.answer(`{"out":"late"}`)
		o.want()
		second.answer(`{"out":"well"}`)
		o.want(`{"key":"k","n":1,"out":"well"}`)
	})
}

// A performer that dies after its claim costs an attempt, whose error has a type.
func TestOffer_APerformerThatFallsSilentHasLostTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Attempts: 2, Heartbeat: time.Second})
		o.pending("k", space.TaskPending, `1`)
		h := o.next()
		h.answer(`{"claim":true}`)
		for range 10 {
			time.Sleep(2 * time.Second)
			h.answer(`{"heartbeat":true}`)
		}
		o.want()
		again := o.next()
		o.want(`{"attempt":1,"error":"LostError: the performer has claimed the task and was not heard of for 3s","key":"k","n":1}`)
		if over, stop := h.over(); !over || !stop {
			t.Errorf("over %v, notified %v", over, stop)
		}
		equal(t, "the second attempt", again.request.Get("attempt").String(), "2")
		again.answer(`{"claim":true}`)
		time.Sleep(4 * time.Second)
		if got := o.reports(); len(got) != 2 || got[1] != `{"error":"LostError: the performer has claimed the task and was not heard of for 3s","key":"k","n":1}` {
			t.Errorf("reported %q", got)
		}
	})
}

// The limit counts from the claim on, not from the first offer.
func TestOffer_EachAttemptTimesOutAfterItsClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Attempts: 2, Timeout: 10 * time.Second, Heartbeat: time.Hour})
		o.absent = 20
		o.pending("k", space.TaskPending, `1`)
		time.Sleep(time.Minute)
		for _, report := range []string{
			`{"attempt":1,"error":"TimeoutError: the attempt took longer than 10s","key":"k","n":1}`,
			`{"error":"TimeoutError: the attempt took longer than 10s","key":"k","n":1}`, // the last one
		} {
			h, before := o.next(), o.reports()
			time.Sleep(2 * time.Second)
			h.answer(`{"claim":true}`)
			time.Sleep(9 * time.Second)
			if got := o.reports(); len(got) != len(before) {
				t.Errorf("reported within the timeout: %q", got)
			}
			time.Sleep(time.Second)
			if got := o.reports(); len(got) != len(before)+1 || got[len(before)] != report {
				t.Errorf("reported %q, want %s at last", got, report)
			}
			if over, stop := h.over(); !over || !stop {
				t.Errorf("over %v, notified %v", over, stop)
			}
		}
	})
}

func TestOffer_ErrorsHaveTypesAndAreRetriedUnlessTheyAreFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{})
		o.pending("k", space.TaskPending, `1`)
		o.next().answer(`{"error":{"type":"Offline","message":"no route"}}`)
		o.want(`{"attempt":1,"error":"Offline: no route","key":"k","n":1}`)
		o.next().answer(`{"error":"a text"}`)
		o.next().answer(`{"error":{"type":"Declined","message":"no money","permanent":true}}`)
		o.want(`{"attempt":1,"error":"Offline: no route","key":"k","n":1}`, `{"attempt":2,"error":"a text","key":"k","n":1}`, `{"error":"Declined: no money","key":"k","n":1}`)
	})
}

// What a performer sends is checked: a message that cannot be used ends the attempt, and the reply has the reason.
func TestOffer_WrongAnswersFailTheAttemptWithWords(t *testing.T) {
	for name, c := range map[string]struct{ answer, refused, reported string }{
		"no JSON":        {`{"out":`, "it is not JSON", `"attempt":1,"error":"AnswerError: the answer of the performer cannot be used: it is not JSON`},
		"nothing known":  {`{"result":1}`, "it is none of", `"attempt":1,"error":"AnswerError: the answer of the performer cannot be used: it is none of`},
		"empty":          {``, "it is not JSON", `"attempt":1,"error":"AnswerError`},
		"both":           {`{"out":1,"error":"x"}`, "it has a result and an error", `"attempt":1,"error":"AnswerError`},
		"too large":      {`{"out":"` + strings.Repeat("x", MaxAnswer) + `"}`, "at most 262144 are possible", `{"error":"LimitError: the answer of the performer has 262154 bytes`},
		"large progress": {`{"heartbeat":true,"progress":"` + strings.Repeat("x", space.MaxProgress) + `"}`, "the progress has 4098 bytes; at most 4096 are possible", `{"error":"LimitError: the progress has`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, space.Remote{})
				o.pending("k", space.TaskPending, `1`)
				h := o.next()
				if said := h.answer(c.answer); !strings.Contains(said, "refused") || !strings.Contains(said, c.refused) {
					t.Errorf("the reply is %s", said)
				}
				if got := o.reports(); len(got) != 1 || !strings.Contains(got[0], c.reported) {
					t.Errorf("reported %q", got)
				}
				if over, stop := h.over(); !over || !stop {
					t.Errorf("over %v, notified %v", over, stop)
				}
			})
		})
	}
}

// A long text and a deep list are cut off, and what is no name is no type.
func TestReadError_IsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", maxErrorText)
	a, wrong := readAnswer([]byte(`{"error":{"type":"no type","message":"` + long + `","ancestors":["A","b c",7` + strings.Repeat(`,"B"`, 100) + `],"detail":"` + strings.Repeat("x", maxErrorDetail) + `"}}`))
	if wrong != nil || a.failed.Type != "Error" || len(a.failed.Message) > maxErrorText+3 || len(a.failed.Ancestors) != maxAncestors || !a.failed.Detail.IsAbsent() {
		t.Errorf("%v: %s, %d bytes, %d ancestors, detail %v", wrong, a.failed.Type, len(a.failed.Message), len(a.failed.Ancestors), !a.failed.Detail.IsAbsent())
	}
}

func TestOffer_TheCancellationOfATaskReachesItsPerformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{})
		o.pending("k", space.TaskPending, `1`)
		h := o.next()
		h.answer(`{"claim":true}`)
		o.pending("k", space.TaskCancelled, `1`)
		if over, stop := h.over(); !over || !stop {
			t.Errorf("over %v, notified %v", over, stop)
		}
		h.answer(`{"out":1}`)
		o.want()
	})
}

// A performer that is shutting down hands its task back, and another one gets it without an attempt.
func TestOffer_AClaimedTaskCanBeHandedBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Attempts: 1})
		o.pending("k", space.TaskPending, `1`)
		h := o.next()
		h.answer(`{"claim":true}`)
		equal(t, "the answer", h.answer(`{"busy":true}`), ok)
		again := o.next()
		equal(t, "the attempt", again.request.Get("attempt").String(), "1")
		again.answer(`{"out":1}`)
		o.want(`{"key":"k","n":1,"out":1}`)
	})
}

// A progress is stored at most every ten seconds, the last one, and the next attempt gets it.
func TestOffer_ProgressIsStoredFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Heartbeat: time.Second})
		o.pending("k", space.TaskPending, `1`)
		h := o.next()
		h.answer(`{"claim":true}`)
		for i := range 30 {
			h.answer(fmt.Sprintf(`{"heartbeat":true,"progress":%d}`, i))
			time.Sleep(time.Second)
		}
		for range 30 {
			h.answer(`{"heartbeat":true,"progress":29}`)
			time.Sleep(time.Second)
		}
		h.answer(`{"heartbeat":true,"progress":"more"}`)
		o.want(`{"key":"k","n":1,"progress":0}`, `{"key":"k","n":1,"progress":9}`, `{"key":"k","n":1,"progress":19}`, `{"key":"k","n":1,"progress":29}`, `{"key":"k","n":1,"progress":"more"}`)
		ids := map[string]bool{}
		for i := range o.sent {
			id := o.sent[i].ID
			if ids[id] || !model.IsMinted(id) || model.CheckAnyEventID(id) != nil {
				t.Errorf("id %s: used before %v", id, ids[id])
			}
			if _, is := model.OriginOf(id); is {
				t.Errorf("%s is the id of what a space sends", id)
			}
			ids[id] = true
		}
		h.answer(`{"error":"broken"}`)
		equal(t, "the progress that the next attempt gets", o.next().request.Get("progress").String(), `"more"`)
	})
}

func TestOffer_TheRateOfAnActionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{Rate: 5})
		for i := range 50 {
			o.pending(fmt.Sprint("k", i), space.TaskPending, `1`)
		}
		for range 50 {
			h := o.next()
			h.answer(`{"out":1}`)
		}
		if took := time.Since(o.begun); took < 8900*time.Millisecond || took > 9500*time.Millisecond {
			t.Errorf("50 tasks at 5 per second took %s, want 5 at once and 45 in 9 s", took)
		}
	})
}

// Tasks for a queue without performers do not hold up those of others; what is no name fails.
func TestOffer_QueuesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{QueueBy: "host"})
		o.absent = 1
		o.pending("k1", space.TaskPending, `{"host":"gone"}`)
		o.pending("k2", space.TaskPending, `{"host":"there"}`)
		o.pending("k3", space.TaskPending, `{}`)
		equal(t, "the first queue", o.next().queue, "there")
		equal(t, "the second queue", o.next().queue, "")
		equal(t, "the third queue", o.next().queue, "gone")
		o.pending("k4", space.TaskPending, `{"host":"a.>"}`)
		o.pending("k5", space.TaskPending, `{"host":7}`)
		if got := strings.Join(o.reports(), ""); strings.Count(got, `{"error":"QueueError`) != 2 {
			t.Errorf("reported %s", got)
		}
	})
}

func TestOffer_TheSpaceMovesAndTheFormerPerformerStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, space.Remote{})
		ctx, cancel := context.WithCancel(t.Context())
		o.list.host.Ctx = ctx
		o.pending("k", space.TaskPending, `1`)
		h := o.next()
		h.answer(`{"claim":true}`)
		cancel()
		if over, stop := h.over(); !over || !stop {
			t.Errorf("over %v, notified %v", over, stop)
		}
		o.want()
	})
}

func TestOffer_AFloodOfAnswersIsRefused(t *testing.T) {
	t.Parallel()
	o := &offered{answers: make(chan model.Answer, answersRoom)}
	n := 0
	for range 2 * answersRoom {
		o.deliver(model.Answer{Reply: func(b []byte) {
			if strings.Contains(string(b), "too many answers at a time") {
				n++
			}
		}})
	}
	if n != answersRoom {
		t.Errorf("%d of %d answers are refused", n, 2*answersRoom)
	}
}

// An action that clients watch is not offered.
func TestOffer_WatchedActionsAreNotOffered(t *testing.T) {
	t.Parallel()
	l := New(Host{Offers: NewOffers(nil)})
	if how, _ := l.performer(&space.ActionSpec{Name: "work", External: true}); how != nil {
		t.Error("it is offered")
	}
	l = New(Host{})
	if how, _ := l.performer(&space.ActionSpec{Name: "work", External: true, Remote: &space.Remote{}}); how != nil {
		t.Error("it is offered though the bus cannot")
	}
}
