package questions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/worker"
)

func TestMain(m *testing.M) { leaks.VerifyTestMain(m) }

// world is a deployment with two workers, so that most questions are passed on from one to the other.
type world struct {
	*testing.T
	d      *settle.Deployment
	client *settle.Client
	// held are the events of stream "block", which return when release is closed.
	held    chan struct{}
	release chan struct{}
}

var (
	count  = settle.NewCell[int]("count")
	double = settle.NewDerived[int]("double")
	sign   = settle.NewDerived[bool]("positive")
	quad   = settle.NewDerived[int]("quad")
	slow   = settle.NewDerived[int]("slow")
	left   = settle.NewDerived[int]("left").Or(0)
	right  = settle.NewDerived[int]("right").Or(0)
)

func (w *world) program() *settle.Program {
	p := settle.NewProgram("shop")
	p.Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		by, _ := ev.Payload.AsInt()
		count.Update(tx, func(n *int) { *n += int(by) })
		return settle.ValueOf(count.Get(tx))
	})
	p.Handle("flaky", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		return settle.Value{}, settle.Transient(errors.New("not today"))
	})
	p.Handle("block", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		w.held <- struct{}{}
		<-w.release
		return settle.Value{}, nil
	})
	settle.NewTrigger("hidden").Internal().Handle(p, func(*settle.Tx) error { return nil })
	double.Compute(p, func(v *settle.View) (int, error) { return 2 * count.Get(v), nil })
	quad.Compute(p, func(v *settle.View) (int, error) { return 2 * double.Get(v), nil })
	sign.Compute(p, func(v *settle.View) (bool, error) { return count.Get(v) > 0, nil })
	slow.Compute(p, func(v *settle.View) (int, error) { return count.Get(v), nil }, settle.Debounce(time.Hour))
	left.Compute(p, func(v *settle.View) (int, error) { return min(right.Get(v), 1), nil })
	right.Compute(p, func(v *settle.View) (int, error) { return min(left.Get(v)+count.Get(v), 1), nil })
	return p
}

func start(t *testing.T, o worker.Options) *world {
	t.Helper()
	t.Parallel()
	w := &world{T: t, held: make(chan struct{}), release: make(chan struct{})}
	server := natstest.StartServer(t, embedded.Config{Listen: ":0"})
	var err error
	w.d, err = settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(w.program()), Bus: bus.Config{Server: server, Partitions: 4}, Workers: 2, Options: o,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.client = w.d.Client()
	t.Cleanup(func() {
		if err := w.d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) call(space, stream, id string, payload any) *model.Receipt {
	w.Helper()
	rc, err := w.client.Call(w.Context(), settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(id), Payload: payload})
	if err != nil {
		w.Fatal(err)
	}
	return rc
}

func (w *world) why(space, of string, q questions.Query) *questions.Why {
	w.Helper()
	a, err := w.client.Space(space).Why(w.Context(), of, q)
	if err != nil {
		w.Fatalf("why %s of %s: %v", of, space, err)
	}
	return a
}

// observe keeps a document observed until the end of the test, and returns when it has its first value.
func (w *world) observe(space, doc string) {
	w.Helper()
	seen := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		for u, err := range w.client.Space(space).Watch(ctx, doc) {
			if err == nil && u.Exists {
				select {
				case seen <- struct{}{}:
				default:
				}
			}
		}
	}()
	w.Cleanup(func() { cancel(); <-done })
	select {
	case <-seen:
	case <-w.Context().Done():
		w.Fatal("no value of " + doc)
	}
}

// A node is explained: its state, the event and the inputs of its last run with their values before and after, and its runs once they are
// recorded.
func TestWhy_ANodeRanBecauseAnInputChanged(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	w.observe("s", "quad")
	before := w.why("s", "quad", questions.Query{}) // which begins to record
	if n := before.Node; before.Kind != questions.KindNode || n.State != "up to date" || !n.Live || !strings.Contains(n.Need, "quad is observed") {
		t.Errorf("an observed node: %+v", n)
	}
	w.call("s", "add", "e2", 4)
	n := w.why("s", "quad", questions.Query{}).Node
	for n.Last == nil || n.Last.Event == nil || n.Last.Event.Event != "e2" { // the run may come after the receipt
		n = w.why("s", "quad", questions.Query{}).Node
	}
	if len(n.Inputs) != 1 || n.Inputs[0].Address != "double" || n.Inputs[0].Change == nil || fmt.Sprint(n.Inputs[0].Change.From, n.Inputs[0].Change.To) != "2 10" {
		t.Errorf("its inputs are %+v", n.Inputs)
	}
	if c := n.Last.Changes; len(c) != 1 || fmt.Sprint(c[0].From, c[0].To) != "4 20" || n.Last.Event.Stream != "add" {
		t.Errorf("its last run was %+v", n.Last)
	}
	if len(n.Recent) != 1 || n.Recent[0].Order < 2 || n.Recent[0].Wrote != 1 || n.Recent[0].Causes[0].Address != "double" || !strings.Contains(n.Recent[0].Causes[0].By, "double") {
		t.Errorf("its recorded runs are %+v", n.Recent)
	}
	if n.Cost == nil || n.Cost.Runs != 1 || n.Cost.Time <= 0 || n.Cost.Bytes == 0 {
		t.Errorf("its cost is %+v", n.Cost)
	}
}

// Why a node does not run: nothing observes it, its gate is closed, or nothing has changed; and a circle is named.
func TestWhy_ANodeDoesNotRun(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	// The partition may be handed to the other worker right now, and then nothing but the question loads the space.
	if n := w.why("s", "double", questions.Query{Load: true}).Node; n.State != "dormant" || n.Live || !strings.Contains(n.Need, "no node reads") && !strings.Contains(n.Need, "not observed") {
		t.Errorf("a node that is not observed: %+v", n)
	}
	w.observe("s", "slow")
	w.call("s", "add", "e2", 1)
	n := w.why("s", "slow", questions.Query{}).Node
	if n.State != "gated" || n.Gate != "debounce" || time.Until(n.Until) < 50*time.Minute || len(n.Pending) != 1 || n.Pending[0].Address != "count" || !strings.Contains(n.Reason, "held by its debounce until") {
		t.Errorf("a debounced node: %+v", n)
	}
	w.observe("s", "left")
	if n := w.why("s", "left", questions.Query{}).Node; !slices.Equal(n.Circle, []string{"left", "right"}) {
		t.Errorf("a node on a circle: %+v", n)
	}
}

// A document is explained by its last changes and the events of those.
func TestWhy_ADocumentWasChangedByAnEvent(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	w.call("s", "add", "e2", 4)
	w.observe("s", "double")
	a := w.why("s", "count", questions.Query{Limit: 1})
	d := a.Document
	if a.Kind != questions.KindDocument || fmt.Sprint(d.Value) != "5" || len(d.Changes) != 1 || d.Changes[0].Event.Event != "e2" || fmt.Sprint(d.Changes[0].Changes[0].From) != "1" || !slices.Contains(d.Readers, "double") {
		t.Errorf("%+v", d)
	}
	if d := w.why("s", "double", questions.Query{As: questions.KindDocument}).Document; d.Derived == nil || d.Derived.ID != "double" {
		t.Errorf("a derived document: %+v", d)
	}
}

// An event is explained by its receipt, or by what it waits for.
func TestWhy_AnEventHasEndedOrWaits(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	if e := w.why("s", "e1", questions.Query{}).Event; e == nil || e.State != string(model.Handled) || e.Revision == 0 || fmt.Sprint(e.Result) != "1" || e.Stream != "add" {
		t.Errorf("an event that was handled: %+v", e)
	}
	send := func(stream, id string) {
		if _, err := w.client.Send(t.Context(), settle.Outgoing{Space: "s", Stream: stream, ID: settle.ID(id), Payload: 1}); err != nil {
			t.Fatal(err)
		}
	}
	send("flaky", "f1")
	send("add", "e2")
	e := w.why("s", "f1", questions.Query{}).Event
	for e.State == "queued" || e.Attempts == 0 && e.State == "at the head" {
		e = w.why("s", "f1", questions.Query{}).Event
	}
	if !strings.Contains(e.Reason, "an error that may pass") && e.State != string(model.Failed) {
		t.Errorf("an event that is tried again: %+v", e)
	}
	if _, err := w.client.Space("s").Why(t.Context(), "nosuch", questions.Query{}); !isCode(err, model.CodeNotFound) || !strings.Contains(err.Error(), "double") {
		t.Errorf("a name that stands for nothing: %v", err)
	}
	for as, hint := range map[questions.Kind]bool{"": true, questions.KindEvent: true, questions.KindNode: false} {
		_, err := w.client.Space("s").Why(t.Context(), "m1", questions.Query{As: as})
		if err == nil || strings.Contains(err.Error(), "PRINCIPAL=m1") != hint {
			t.Errorf("as %q: %v", as, err)
		}
	}
}

func isCode(err error, code int) bool {
	e, is := errors.AsType[*model.ServiceError](err)
	return is && e.Code == code
}

// A space that does not return from a handler is reported as such, with that handler, and the question returns.
func TestWhy_ASpaceInsideOfAHandlerIsReported(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	if _, err := w.client.Send(t.Context(), settle.Outgoing{Space: "s", Stream: "block", ID: settle.ID("b1")}); err != nil {
		t.Fatal(err)
	}
	<-w.held
	defer close(w.release)
	l, err := w.client.Space("s").Lane(t.Context(), questions.Query{})
	if err != nil || l.State != questions.Running || !strings.Contains(l.Note, "b1 of stream block has not returned") {
		t.Errorf("%+v, %v", l, err)
	}
	if d := w.why("s", "count", questions.Query{}); d.State != questions.Running || d.Document == nil || d.Document.Changes[0].Event.Event != "e1" {
		t.Errorf("what the log knows: %+v", d)
	}
}

// A question does not load a space, nor create one, unless it demands it.
func TestAsleep_AQuestionLoadsNothing(t *testing.T) {
	w := start(t, worker.Options{Idle: time.Millisecond})
	w.call("s", "add", "e1", 1)
	s := w.client.Space("s")
	for l, err := s.Lane(t.Context(), questions.Query{}); ; l, err = s.Lane(t.Context(), questions.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if l.State == questions.Asleep {
			break
		}
	}
	for range 20 {
		a := w.why("s", "count", questions.Query{})
		if a.State != questions.Asleep || a.Document == nil || a.Document.Changes[0].Event.Event != "e1" {
			t.Fatalf("%+v", a)
		}
	}
	if e := w.why("s", "e1", questions.Query{}); e.State != questions.Asleep || e.Event.State != string(model.Handled) {
		t.Errorf("%+v", e)
	}
	if g, err := s.Graph(t.Context(), questions.Query{Load: true}); err != nil || g.State != questions.Awake || len(g.Nodes) != 6 {
		t.Errorf("%+v, %v", g, err)
	}
	for _, load := range []bool{false, true} {
		if _, err := w.client.Space("nosuch").Lane(t.Context(), questions.Query{Load: load}); !isCode(err, model.CodeNotFound) {
			t.Errorf("a space that does not exist, load %v: %v", load, err)
		}
	}
	if head, err := w.d.Bus().Head(t.Context(), "nosuch"); err != nil || head != 0 {
		t.Errorf("the question has created the space: %d, %v", head, err)
	}
}

// The graph has nodes with their states, and edges; circles are marked; the neighbourhood of a node is a part of it; pages put together are the whole.
func TestGraph_HasNodesEdgesAndCircles(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	w.observe("s", "quad")
	w.observe("s", "left")
	s := w.client.Space("s")
	g, err := s.Graph(t.Context(), questions.Query{})
	if err != nil {
		t.Fatal(err)
	}
	text := map[string]string{}
	for _, n := range g.Nodes {
		text[n.ID] = fmt.Sprintf("%s live=%v observed=%v circle=%d sources=%v", n.State, n.Live, n.Observed, n.Circle, n.Sources)
	}
	for id, want := range map[string]string{ // any order: nodes are independent
		"double": "up to date live=true observed=false circle=0 sources=[count]", "quad": "up to date live=true observed=true circle=0 sources=[]",
		"positive": "dormant live=false observed=false circle=0 sources=[]", "right": "up to date live=true observed=false circle=1 sources=[count]",
	} {
		if text[id] != want {
			t.Errorf("%s: %s, want %s", id, text[id], want)
		}
	}
	if !slices.ContainsFunc(g.Edges, func(e questions.GraphEdge) bool { return e.From == "double" && e.To == "quad" && e.Address == "double" }) {
		t.Errorf("the edges are %+v", g.Edges)
	}
	if len(g.Circles) != 1 || !slices.Equal(g.Circles[0], []string{"left", "right"}) || !slices.Equal(g.Observed, []string{"left", "quad"}) {
		t.Errorf("the circles are %v, observed are %v", g.Circles, g.Observed)
	}
	near, err := s.Graph(t.Context(), questions.Query{Of: "quad"})
	if err != nil || len(near.Nodes) != 2 || near.Nodes[0].ID != "double" {
		t.Errorf("the neighbourhood of quad: %+v, %v", near, err)
	}
	var ids []string
	for after := 0; ; {
		page, err := s.Graph(t.Context(), questions.Query{Limit: 4, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page.Nodes {
			ids = append(ids, n.ID)
		}
		if after = page.Next; after == 0 {
			break
		}
	}
	if len(ids) != len(g.Nodes) || g.Total != len(ids) {
		t.Errorf("pages have %v", ids)
	}
}

// The lane has the head with its reason, and a page of what waits behind it.
func TestLane_HasTheHeadAndWhatWaits(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	for n := range 5 {
		stream := "add"
		if n == 0 {
			stream = "flaky"
		}
		if _, err := w.client.Send(t.Context(), settle.Outgoing{Space: "s", Stream: stream, ID: settle.ID(fmt.Sprint("w", n)), Payload: 1}); err != nil {
			t.Fatal(err)
		}
	}
	s := w.client.Space("s")
	for {
		l, err := s.Lane(t.Context(), questions.Query{Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		if rc, err := s.FindReceipt(t.Context(), "flaky", settle.ID("w0")); err != nil || rc != nil {
			t.Fatalf("the event has ended before its lane was seen: %+v, %v", rc, err)
		}
		if l.Head == nil || l.Head.Attempts == 0 || l.Queued < 5 || l.Uncommitted > 0 {
			continue // the commit of e1 may have been stored and not acknowledged to its owner
		}
		if l.Head.Event != "w0" || l.Head.Cause != "retry" || l.Head.Until.IsZero() || len(l.Pending) != 2 || l.Next != 2 || l.Pending[1].Ahead != 1 {
			t.Errorf("%+v", l)
		}
		return
	}
}

// Whether a stream takes no events of clients is known of a space that never had an event. The worker that is asked need not be its own.
func TestLane_AnswersWhetherAStreamIsInternal(t *testing.T) {
	w := start(t, worker.Options{})
	asked := questions.Client{Bus: w.d.Bus()}
	for _, id := range w.d.Workers() { // they offer their services beside everything else
		if _, err := w.client.Top(t.Context(), id, 1); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 8 { // spaces of either worker
		space := fmt.Sprint("new", n)
		for stream, want := range map[string]bool{"hidden": true, "add": false, "nothing": false} {
			if is, err := asked.IsInternal(t.Context(), space, stream); err != nil || is != want {
				t.Errorf("%s: %v, %v", stream, is, err)
			}
		}
	}
}

// Questions from outside are checked.
func TestQuestions_AreChecked(t *testing.T) {
	w := start(t, worker.Options{})
	long := strings.Repeat("x", 2000)
	for _, id := range w.d.Workers() { // they offer their services beside everything else
		if _, err := w.client.Top(t.Context(), id, 1); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ endpoint, request string }{
		{"why", `{"space":"s"}`},
		{"why", `{"space":"a b","of":"x"}`},
		{"why", `{"space":"s","of":"x","as":"spoon"}`},
		{"why", `{"space":"s","of":"x","limit":101}`},
		{"why", `{"space":"s","of":"` + long + `"}`},
		{"why", `{"space":"s","of":"x","load":1}`},
		{"why", `{"space":"s","of":"x","else":1}`},
		{"why", `nonsense`},
		{"why", ``},
		{"lane", `{"space":"s","of":"x"}`},
		{"lane", `{"space":"s","limit":-1}`},
		{"lane", `{"space":"s","after":-1}`},
		{"graph", `{"space":"s","depth":17}`},
		{"graph", `{"space":"s","limit":501}`},
		{"top-w1", `{"limit":513}`},
		{"top-w1", `[]`},
		{"asked-w1", `{"endpoint":"why"}`},
		{"asked-w1", `{"endpoint":"other","query":{"space":"s"}}`},
		{"asked-w1", `{"endpoint":"why","query":{"space":"s"}}`},
	} {
		if _, err := w.d.Bus().Ask(t.Context(), c.endpoint, []byte(c.request)); !isCode(err, model.CodeBadRequest) {
			t.Errorf("%s %.60s: %v", c.endpoint, c.request, err)
		}
	}
}

// With a rule, a question about a space needs the right to read all of it, in the name of the principal.
func TestQuestions_NeedTheRightToReadTheWholeSpace(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("cart-1", "add", "e1", 1)
	allow := func(principal string, read ...string) {
		if _, err := access.Change(t.Context(), w.d.Bus(), principal, func(r *access.Rule) { r.Read = read }); err != nil {
			t.Fatal(err)
		}
	}
	allow("ann", "cart-*/*")
	allow("bob", "cart-*/count")
	ask := func(principal string) error {
		_, err := (&questions.Client{Bus: w.d.Bus(), Principal: principal}).Why(t.Context(), questions.Query{Space: "cart-1", Of: "count"})
		return err
	}
	for known := 0; known < 20; known++ { // until both workers know the rules: either may answer
		if ask("") == nil || ask("ann") != nil {
			known = 0
		}
	}
	for principal, may := range map[string]bool{"ann": true, "bob": false, "eve": false, "operator": true, "": false} { // any order: principals are independent
		if err := ask(principal); may && err != nil || !may && !isCode(err, model.CodeForbidden) {
			t.Errorf("principal %q: %v", principal, err)
		}
	}
}

// What takes most time is measured from the first question on, without the runs that a run has pulled; wasted runs are counted.
func TestTop_MeasuresRunsOnceItIsAsked(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e0", 1)
	w.observe("s", "quad")
	w.observe("s", "positive")
	of := func() (spaces, nodes map[string]worker.Usage) {
		spaces, nodes = map[string]worker.Usage{}, map[string]worker.Usage{}
		for _, id := range w.d.Workers() {
			top, err := w.client.Top(t.Context(), id, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range top.Spaces {
				spaces[u.Space] = u
			}
			for _, u := range top.Nodes {
				nodes[u.Node] = u
			}
		}
		return spaces, nodes
	}
	if spaces, nodes := of(); len(spaces)+len(nodes) != 0 {
		t.Errorf("before the first question %v and %v were measured", spaces, nodes)
	}
	for n := range 10 {
		w.call("s", "add", fmt.Sprint("e", n+1), 1)
	}
	spaces, nodes := of()
	for nodes["positive"].Runs < 1 || nodes["quad"].Runs < 1 { // runs may come after receipts
		spaces, nodes = of()
	}
	if a := nodes["add"]; !a.Handler || a.Runs != 10 || a.Bytes == 0 || a.Time <= 0 {
		t.Errorf("the handler: %+v", a)
	}
	if p := nodes["positive"]; p.Wasted != p.Runs || nodes["quad"].Wasted != 0 {
		t.Errorf("wasted runs: %+v and %+v", p, nodes["quad"])
	}
	if s := spaces["s"]; s.Runs < 12 || s.Node != "" || s.Time < nodes["add"].Time {
		t.Errorf("the space: %+v", s)
	}
}

// The log of a space is followed through a client.
func TestLog_IsFollowedThroughAClient(t *testing.T) {
	w := start(t, worker.Options{})
	w.call("s", "add", "e1", 1)
	events := 0
	for e, err := range w.client.Space("s").FollowLog(t.Context(), history.LogQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Steps {
			if s.Kind != history.StepHandler {
				continue
			}
			if events++; events == 1 {
				w.call("s", "add", "e2", 4)
			}
		}
		if events == 2 {
			if c := e.Steps[0].Changes[0]; fmt.Sprint(c.From, c.To) != "1 5" {
				t.Errorf("the second event has changed %+v", c)
			}
			return
		}
	}
}
