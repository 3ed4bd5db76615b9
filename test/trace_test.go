package test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/baggage"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/telemetry"
	"github.com/settlehq/settle/internal/telemetry/recent"
	"github.com/settlehq/settle/model"
)

// traced is a deployment whose spans are kept.
type traced struct {
	*deployment
	spans *recent.Store
}

func deployTraced(t *testing.T, p *settle.Program, set func(*settle.Config)) *traced {
	t.Helper()
	store := recent.New(recent.Limits{})
	cfg := settle.Config{Programs: settle.Always(p), Tracer: store.Tracer("test")}
	if set != nil {
		set(&cfg)
	}
	return &traced{deploy(t, cfg), store}
}

// rooted returns the newest trace with a root of this name that so accepts.
func (d *traced) rooted(t *testing.T, name string, so func(*recent.Trace) bool) (found *recent.Trace) {
	t.Helper()
	defer func() {
		for _, s := range d.spans.List(1000) {
			if of, ok := d.spans.Get(s.ID); ok && found == nil {
				t.Logf("there is\n%s", of.Shape())
			}
		}
	}()
	until(t, func() bool {
		for _, s := range d.spans.List(1000) {
			of, ok := d.spans.Get(s.ID)
			if ok && slices.ContainsFunc(of.Roots, func(r *recent.Span) bool { return r.Name == name }) && so(of) {
				found = of
				return true
			}
		}
		return false
	})
	return found
}

// has reports whether a trace has these spans, and that no span of it is still open whose child has ended.
func has(names ...string) func(*recent.Trace) bool {
	return func(t *recent.Trace) bool {
		if len(t.Roots) != 1 {
			return false
		}
		text := t.Shape()
		return !slices.ContainsFunc(names, func(n string) bool { return !strings.Contains(text, n) })
	}
}

// span returns the first span of a name.
func span(of []*recent.Span, name string) *recent.Span {
	for _, s := range of {
		if s.Name == name {
			return s
		}
		if c := span(s.Children, name); c != nil {
			return c
		}
	}
	return nil
}

func shape(t *testing.T, of *recent.Trace, want string, without ...string) {
	t.Helper()
	if got := of.Shape(without...); got != strings.TrimPrefix(want, "\n") {
		t.Errorf("the trace is\n%s\nand should be%s", got, want)
	}
}

// One event is one trace, from the call through both spaces, with the loading of the spaces for it.
func TestTrace_OneEventIsOneTree(t *testing.T) {
	t.Parallel()
	d := deployTraced(t, relay(), nil)
	if _, err := d.Client().Call(testContext(t), flight(1, "here", "there")); err != nil {
		t.Fatal(err)
	}
	eventually(t, d.Client(), "there", "arrived", 1)
	of := d.rooted(t, "call depart", has("handle arrive there handled [consumer]\n          commit there", "release arrive", "activate space there", "receive depart", "pass there"))
	shape(t, of, `
call depart here handled [internal]
  receive depart here handled [consumer] linked
  send depart here [producer]
    activate space here [internal]
      commit here [client]
    handle depart here handled [consumer]
      commit here [client]
      pass here [internal]
      release arrive here [producer] linked
        activate space there [internal]
          commit there [client]
        handle arrive there handled [consumer]
          commit there [client]
          pass there [internal]
        lane arrive there [internal]
    lane depart here [internal]
`, "run effect")
}

// board has a space whose derived document reads one of another space.
func board() *settle.Program {
	p := settle.NewProgram("board")
	p.Handle("put", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Set("n", ev.Payload)
		return settle.Value{}, nil
	})
	p.Compute("double", func(v *settle.View) (settle.Value, error) {
		if v.Space() != "sign" {
			return settle.Value{}, nil
		}
		n, _ := v.GetFrom("source", "n").AsInt()
		return settle.ValueOf(2 * n)
	})
	return p
}

func put(space, id string, n int) settle.Outgoing {
	return settle.Outgoing{Space: space, Stream: "put", ID: settle.ID(id), Payload: n}
}

// What a space derives from the document of another one belongs to the trace of the commit that changed that.
func TestTrace_ADerivedDocumentOfAnotherSpaceBelongsToTheCommitThatWokeIt(t *testing.T) {
	t.Parallel()
	d := deployTraced(t, board(), nil)
	for _, e := range []settle.Outgoing{put("sign", "born", 0), put("source", "a", 1)} {
		if _, err := d.Client().Call(testContext(t), e); err != nil {
			t.Fatal(err)
		}
	}
	watching, stop := context.WithCancel(testContext(t))
	defer stop()
	var once bool
	for u, err := range d.Client().Space("sign").Watch(watching, "double") {
		if err != nil {
			t.Fatal(err)
		}
		n, _ := u.Value.AsInt()
		if n == 2 && !once {
			once = true
			if _, err := d.Client().Call(testContext(t), put("source", "b", 2)); err != nil {
				t.Fatal(err)
			}
		}
		if n == 4 {
			break
		}
	}
	of := d.rooted(t, "call put", has("run computation sign", "commit sign"))
	shape(t, of, `
call put source handled [internal]
  receive put source handled [consumer] linked
  send put source [producer]
    handle put source handled [consumer]
      commit source [client]
        pass sign [internal]
          commit sign [client]
          run computation sign double [internal]
      pass source [internal]
    lane put source [internal]
`, "run effect")
}

// An attempt at a task belongs to the handling that has started the task, and the handling of its end to the attempt.
func TestTrace_AnAttemptBelongsToWhatHasStartedItsTask(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("shop")
	charge := settle.NewAction[int, string]("charge")
	p.Handle("buy", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		charge.Start(tx, "order-1", 7)
		return settle.Value{}, nil
	})
	inside := make(chan bool, 10)
	tries := 0
	charge.Perform(p, func(ctx context.Context, _ string, _ int) (string, error) {
		inside <- trace.SpanContextFromContext(ctx).IsValid()
		if tries++; tries == 1 {
			return "", fmt.Errorf("the card is not readable")
		}
		return "ok", nil
	}, settle.Backoff(time.Millisecond, time.Millisecond))
	charge.Done(p, func(tx *settle.Tx, t settle.Task[int, string]) error {
		tx.Set("paid", 1)
		return nil
	})
	d := deployTraced(t, p, nil)
	if _, err := d.Client().Call(testContext(t), settle.Outgoing{Space: "s", Stream: "buy", ID: settle.ID("a")}); err != nil {
		t.Fatal(err)
	}
	eventually(t, d.Client(), "s", "paid", 1)
	if !<-inside {
		t.Error("the function of the action has no span in its context")
	}
	of := d.rooted(t, "call buy", has("attempt charge s retried", "attempt charge s done", "receive buy"))
	shape(t, of, `
call buy s handled [internal]
  receive buy s handled [consumer] linked
  send buy s [producer]
    handle buy s handled [consumer]
      attempt charge s done [internal]
        handle charge s handled [consumer]
      attempt charge s retried (retried: the card is not readable) [internal]
        handle charge s handled [consumer]
        lane charge s [internal]
    lane buy s [internal]
`, "activate space", "commit", "pass", "run effect")
}

// An event that has waited for a time begins a trace, with a link to what has sent it.
func TestTrace_ATimerBeginsATraceThatIsLinked(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("clock")
	p.Handle("set", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.SendAfter(tx.Space(), "ring", time.Millisecond, nil)
		return settle.Value{}, nil
	})
	p.Handle("ring", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Set("rung", 1)
		return settle.Value{}, nil
	})
	d := deployTraced(t, p, nil)
	if _, err := d.Client().Call(testContext(t), settle.Outgoing{Space: "s", Stream: "set", ID: settle.ID("a")}); err != nil {
		t.Fatal(err)
	}
	eventually(t, d.Client(), "s", "rung", 1)
	of := d.rooted(t, "handle ring", has("commit s", "pass"))
	shape(t, of, `
handle ring s handled [consumer] linked
  commit s [client]
  pass s [internal]
`, "run effect")
	before := d.rooted(t, "call set", has("handle set"))
	if got, want := of.Roots[0].Links[0], (recent.Link{Trace: before.ID, Span: span(before.Roots, "handle set").ID}); got != want {
		t.Errorf("it is linked to %v, not to the handling %v", got, want)
	}
}

// A request over HTTP is the root of what it causes, or belongs to the trace of its client.
func TestTrace_RequestsOverHTTP(t *testing.T) {
	t.Parallel()
	at := addressOf(t)
	d := deployTraced(t, relay(), func(c *settle.Config) { c.HTTP = gateway.Config{Addr: at} })
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	do := func(method, path, trace string) {
		t.Helper()
		r, err := http.NewRequestWithContext(testContext(t), method, "http://"+at+path, bytes.NewReader([]byte(`{"to":"there"}`)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if trace != "" {
			r.Header.Set("traceparent", trace)
		}
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if a.StatusCode != http.StatusOK {
			t.Fatalf("status %d: %s", a.StatusCode, text)
		}
	}
	do(http.MethodPost, "/v1/spaces/here/streams/depart?wait=receipt", parent)
	of := d.rooted(t, "POST /v1/spaces/{space}/streams/{stream}", has("handle depart here", "receive depart", "handle arrive"))
	if got := of.ID.String(); got != parent[3:35] {
		t.Errorf("the trace is %s, not that of the client", got)
	}
	if top := of.Roots[0]; top.Parent.String() != parent[36:52] || top.Kind != trace.SpanKindServer || span(top.Children, "send depart") == nil || span(top.Children, "receive depart") == nil {
		t.Errorf("the trace is\n%s", of.Shape())
	}
	do(http.MethodGet, "/v1/spaces/here/documents/total", "")
	of = d.rooted(t, "GET /v1/spaces/{space}/documents/{document}", has("run computation here total"))
	shape(t, of, `
GET /v1/spaces/{space}/documents/{document} here total [server]
  get here total [server]
    pass here [internal]
      commit here [client]
      run effect here observe:total [internal]
        run computation here total [internal]
`)
}

// A read of a client is one trace, too, wherever the space is served.
func TestTrace_AReadOfAClient(t *testing.T) {
	t.Parallel()
	d := deployTraced(t, relay(), func(c *settle.Config) { c.Workers = 2 })
	for n, name := range []string{"here", "there"} {
		if _, err := d.Client().Call(testContext(t), flight(n+1, name, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Client().Space(name).GetCurrent(testContext(t), "total"); err != nil {
			t.Fatal(err)
		}
		of := d.rooted(t, "get", has("run computation "+name+" total", "commit "+name))
		shape(t, of, strings.ReplaceAll(`
get here total [client]
  get here total [server]
    pass here [internal]
      commit here [client]
      run effect here observe:total [internal]
        run computation here total [internal]
`, "here", name))
	}
}

// Checkpoints are linked to the commit that they save, and takeovers of partitions have spans.
func TestTrace_CheckpointsAndTakeovers(t *testing.T) {
	t.Parallel()
	d := deployTraced(t, relay(), nil)
	if _, err := d.Client().Call(testContext(t), flight(1, "here", "there")); err != nil {
		t.Fatal(err)
	}
	of := d.rooted(t, "checkpoint", func(of *recent.Trace) bool {
		return of.Roots[0].Attribute(telemetry.Space) == "here" && of.Roots[0].Links != nil
	})
	shape(t, of, `
checkpoint here [client] linked
`)
	commits := map[recent.Link]bool{}
	for _, s := range d.spans.List(1000) {
		tr, _ := d.spans.Get(s.ID)
		var walk func([]*recent.Span)
		walk = func(of []*recent.Span) {
			for _, s := range of {
				commits[recent.Link{Trace: tr.ID, Span: s.ID}] = s.Name == "commit" && s.Attribute(telemetry.Space) == "here"
				walk(s.Children)
			}
		}
		walk(tr.Roots)
	}
	if !commits[of.Roots[0].Links[0]] {
		t.Errorf("the checkpoint is linked to %v, which is no commit", of.Roots[0].Links[0])
	}
	shape(t, d.rooted(t, "take over partition", func(*recent.Trace) bool { return true }), `
take over partition [internal]
`)
}

// A pass has at most 32 spans of runs, and says how many are left out.
func TestTrace_RunsAreBounded(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("wide")
	p.Handle("put", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Set("n", ev.Payload)
		return settle.Value{}, nil
	})
	p.Compute("sum", func(v *settle.View) (settle.Value, error) {
		sum := int64(0)
		for i := range 40 {
			n, _ := v.Get(fmt.Sprintf("part%d", i)).AsInt()
			sum += n
		}
		return settle.ValueOf(sum)
	})
	for i := range 40 {
		p.Compute(fmt.Sprintf("part%d", i), func(v *settle.View) (settle.Value, error) { return v.Get("n"), nil })
	}
	d := deployTraced(t, p, nil)
	if _, err := d.Client().Call(testContext(t), put("s", "a", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Client().Space("s").GetCurrent(testContext(t), "sum"); err != nil {
		t.Fatal(err)
	}
	of := d.rooted(t, "get", has("pass"))
	pass := span(of.Roots, "pass")
	runs := 0 // and the effect that stands for the reader
	var count func([]*recent.Span)
	count = func(of []*recent.Span) {
		for _, s := range of {
			if strings.HasPrefix(s.Name, "run ") {
				runs++
			}
			count(s.Children)
		}
	}
	count([]*recent.Span{pass})
	if left := pass.Attribute(telemetry.RunsOut); runs != 32 || left != "10" {
		t.Errorf("%d runs have spans, and %s are left out, of 42", runs, left)
	}
}

// Baggage of the sender is with everything that its event causes.
func TestTrace_BaggageTravelsWithEvents(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("ship")
	seen := make(chan string, 10)
	ship := settle.NewAction[int, string]("ship")
	p.Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Send("store", "pack", nil)
		return settle.Value{}, nil
	})
	p.Handle("pack", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		ship.Start(tx, "1", 1)
		return settle.Value{}, nil
	})
	ship.Perform(p, func(ctx context.Context, _ string, _ int) (string, error) {
		seen <- baggage.FromContext(ctx).Member("tenant").Value()
		return "", nil
	})
	d := deployTraced(t, p, nil)
	b, err := baggage.Parse("tenant=seven")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Client().Call(baggage.ContextWithBaggage(testContext(t), b), settle.Outgoing{Space: "shop", Stream: "order", ID: settle.ID("a")}); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != "seven" {
		t.Errorf("the action of the other space has the tenant %q", got)
	}
}

// What the sampler leaves out has no spans, and everything that it causes is left out with it, in other spaces and in actions, too.
func TestTrace_WhatIsNotSampledIsPassedOn(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("ship")
	seen := make(chan trace.SpanContext, 10)
	ship := settle.NewAction[int, string]("ship")
	p.Handle("order", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		tx.Send("store", "pack", nil)
		return settle.Value{}, nil
	})
	p.Handle("pack", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		ship.Start(tx, "1", 1)
		return settle.Value{}, nil
	})
	ship.Perform(p, func(ctx context.Context, _ string, _ int) (string, error) {
		seen <- trace.SpanContextFromContext(ctx)
		return "", nil
	})
	ended := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())), sdktrace.WithSpanProcessor(ended))
	d := deploy(t, settle.Config{Programs: settle.Always(p), Tracer: provider.Tracer("test")})
	for _, c := range []struct{ id, flags string }{{"4bf92f3577b34da6a3ce929d0e0e4736", "00"}, {"5bf92f3577b34da6a3ce929d0e0e4736", "01"}} {
		ctx := telemetry.Context(testContext(t), model.Trace{Parent: "00-" + c.id + "-00f067aa0ba902b7-" + c.flags})
		if _, err := d.Client().Call(ctx, settle.Outgoing{Space: "shop" + c.flags, Stream: "order", ID: settle.ID("a")}); err != nil {
			t.Fatal(err)
		}
		if c.flags == "01" {
			continue // the task is there already
		}
		if got := <-seen; got.TraceID().String() != c.id || got.IsSampled() {
			t.Errorf("the action runs in the trace %s, sampled: %v", got.TraceID(), got.IsSampled())
		}
	}
	if err := d.StopWorkers(testContext(t)); err != nil {
		t.Fatal(err)
	}
	sampled := 0
	for _, s := range ended.Ended() {
		switch id := s.SpanContext().TraceID().String(); {
		case strings.HasPrefix(id, "4bf92f35"):
			t.Errorf("there is a span %s", s.Name())
		case strings.HasPrefix(id, "5bf92f35"):
			sampled++
		}
	}
	if sampled == 0 {
		t.Error("the other event has no spans")
	}
}

// picky is a sampler that records what begins with the wait of an event of one stream.
type picky struct{ stream string }

func (p picky) ShouldSample(s sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if s.Name == "lane "+p.stream {
		return sdktrace.SamplingResult{Decision: sdktrace.RecordAndSample}
	}
	return sdktrace.SamplingResult{Decision: sdktrace.Drop}
}

func (picky) Description() string { return "picky" }

// An event that is sampled has its pass, its run and its commit, though events before it in the same commit were left out. Those have no spans, and the
// commit has no links to them.
func TestTrace_ASampledEventIsCompleteAmongOthers(t *testing.T) {
	t.Parallel()
	bus := membus.NewServer(membus.Config{Partitions: 1}).Connect("a")
	defer bus.Kill()
	p := settle.NewProgram("sums")
	add := func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		n, _ := tx.Get("n").AsInt()
		tx.Set("n", n+1)
		return settle.Value{}, nil
	}
	p.Handle("leave", add).Handle("keep", add)
	p.Effect("follow", func(v *settle.View) error {
		v.Get("n")
		return nil
	})
	const others = 50
	for i := range others + 1 {
		m := model.Message{Space: "s", Stream: "leave", ID: fmt.Sprint("e", i)}
		if i == others {
			m.Stream = "keep"
		}
		bus.Send(m, func(_ model.SendResult, err error) {
			if err != nil {
				t.Error(err)
			}
		})
	}
	ended := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.ParentBased(picky{"keep"})), sdktrace.WithSpanProcessor(ended))
	w, err := settle.StartWorker(t.Context(), bus, settle.WorkerConfig{ID: "w", Programs: settle.Always(p), Tracer: provider.Tracer("test")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Kill()
	spans := map[string]sdktrace.ReadOnlySpan{}
	until(t, func() bool {
		for _, s := range ended.Ended() {
			spans[s.Name()] = s
		}
		return spans["commit"] != nil && spans["pass"] != nil
	})
	handle := spans["handle keep"]
	for _, name := range []string{"pass", "commit"} {
		if s := spans[name]; s.Parent().SpanID() != handle.SpanContext().SpanID() || len(s.Links()) > 0 {
			t.Errorf("%s belongs to %s, and not to the event that is sampled, and has %d links", name, s.Parent().SpanID(), len(s.Links()))
		}
	}
	for _, a := range spans["commit"].Attributes() {
		if a.Key == telemetry.Batch && a.Value.AsInt64() < 2 {
			t.Error("the commit has no other event")
		}
	}
	if spans["handle leave"] != nil || spans["lane leave"] != nil || spans["lane keep"] == nil {
		t.Errorf("there are spans %v", slices.Sorted(maps.Keys(spans)))
	}
}

// A handling that fails is marked, and its error has a type of few values.
func TestTrace_AFailureHasATypeOfFewValues(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("fails")
	p.Handle("put", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		return settle.Value{}, fmt.Errorf("no place for %s", ev.ID)
	})
	d := deployTraced(t, p, nil)
	if _, err := d.Client().Call(testContext(t), put("s", "a", 1)); err != nil {
		t.Fatal(err)
	}
	of := d.rooted(t, "call put", has("handle put s failed (failed: no place for a)"))
	if got := span(of.Roots, "handle put").ErrorType; got != "failed" {
		t.Errorf("error.type is %q", got)
	}
	if _, err := d.Client().Call(testContext(t), settle.Outgoing{Space: "s", Stream: "nosuch", ID: settle.ID("b")}); err != nil {
		t.Fatal(err)
	}
	d.rooted(t, "call nosuch", has("handle s refused", "lane s")) // the stream is no part of the names
}

// addressOf returns an address that is free.
func addressOf(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// The handlings of a workflow say which steps they begin and end.
func TestTrace_TheStepsOfAWorkflow(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("shop")
	w := flow.New(p)
	w.Starlark("shop.star", []byte(`
load("actions", "pack")
def run(n):
    return pack(n = n)

workflow("orders", run)
`))
	flow.Perform(w, "pack", func(_ context.Context, in struct {
		N int `json:"n"`
	},
	) (int, error) {
		return in.N, nil
	})
	if err := w.Register(); err != nil {
		t.Fatal(err)
	}
	d := deployTraced(t, p, nil)
	in := flow.In(d.Client().Space("s"))
	if _, err := in.Start(testContext(t), "orders", "o", map[string]int{"n": 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := flow.Result[int](testContext(t), in, "o"); err != nil {
		t.Fatal(err)
	}
	of := d.rooted(t, "call workflow-start", has("workflow.run.done orders"))
	shape(t, of, `
call workflow-start s handled [internal]
  send workflow-start s [producer]
    handle workflow-start s handled [consumer]; workflow.run.started orders; workflow.step.started pack
      attempt pack s done [internal]
        handle pack s handled [consumer]; workflow.step.done pack; workflow.run.done orders
`, "activate space", "commit", "pass", "run effect", "receive workflow-start", "lane workflow-start")
}
