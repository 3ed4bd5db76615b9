package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// mostClicks is how far from the overview the cause of an incident is said at most.
const mostClicks = 3

// visit is a visit of a person without knowledge of Settle: it begins at the overview, and follows links of the pages.
type visit struct {
	*tab
	clicks int
}

// visits opens the overview.
func (w *world) visits() *visit {
	w.Helper()
	v := &visit{tab: w.open()}
	v.to("/")
	return v
}

// follows clicks on the first link with a text, of the page itself or else of the navigation.
func (v *visit) follows(text string) {
	v.Helper()
	v.clicks++
	if v.clicks > mostClicks {
		v.Errorf("%q is the click number %d", text, v.clicks)
	}
	find := fmt.Sprintf(`[...document.querySelectorAll("main a[href], header a[href]")].find((a) => a.innerText.trim() === %q && a.getBoundingClientRect().width > 0)`, text)
	v.until(find)
	eval[bool](v.tab, `window.before = true`)
	eval[bool](v.tab, find+`.click(); true`)
	v.until(`!window.before && document.readyState === "complete"`)
}

// reads waits until the page says all of it.
func (v *visit) reads(texts ...string) {
	v.Helper()
	for _, text := range texts {
		v.untilText("main", text)
	}
	name := strings.TrimPrefix(strings.ReplaceAll(v.Name(), "/", "-"), "TestIncident_")
	v.shot(fmt.Sprintf("incident-%s-%d", name, v.clicks))
}

// depot is the program of most incidents: it has what goes wrong in them.
func depot(held <-chan struct{}) *settle.Program {
	stock, price := settle.NewCell[int]("stock"), settle.NewCell[int]("price")
	p := settle.NewProgram("depot")
	set := func(stream string, doc settle.Cell[int]) {
		p.Handle(stream, func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			n, _ := ev.Payload.AsInt()
			doc.Set(tx, int(n))
			return settle.Value{}, nil
		})
	}
	set("deliver", stock)
	set("reprice", price)
	settle.NewDerived[int]("worth").Compute(p, func(v *settle.View) (int, error) { return stock.Get(v) * price.Get(v), nil })
	p.Handle("count", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		<-held
		return settle.Value{}, nil
	})
	p.Handle("weigh", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		for until := time.Now().Add(5 * time.Millisecond); time.Now().Before(until); {
			spins.Add(1)
		}
		return settle.Value{}, nil
	})
	p.Handle("fetch", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		return settle.Value{}, settle.Transient(errors.New("the supplier does not answer"))
	})
	p.Handle("pay", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		return settle.Value{}, errors.New("the bank declines")
	})
	p.Handle("order", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		tx.Send("bank", "pay", nil)
		return settle.Value{}, nil
	})
	ship := settle.NewAction[int, int]("ship")
	ship.Perform(p, func(context.Context, string, int) (int, error) { return 0, errors.New("the port is closed") }, settle.Backoff(10*time.Millisecond, 10*time.Millisecond))
	p.Handle("send", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		ship.Start(tx, ev.ID, 1)
		return settle.Value{}, nil
	})
	a, b := settle.NewDerived[int]("tariff"), settle.NewDerived[int]("margin")
	a.Compute(p, func(v *settle.View) (int, error) { return b.Get(v) + 1, nil })
	b.Compute(p, func(v *settle.View) (int, error) { return a.Get(v) + 1, nil })
	return p
}

// spins counts the turns of what takes time.
var spins atomic.Int64

// incident starts a deployment of depot, with something else of its configuration.
func incident(t *testing.T, change func(cfg *settle.Config)) *world {
	t.Helper()
	held := make(chan struct{})
	cfg := settle.Config{Programs: settle.Always(depot(held)), Logger: slog.New(slog.DiscardHandler)}
	cfg.Options.EventRetries = 100_000
	if change != nil {
		change(&cfg)
	}
	w := startWith(t, cfg, gateway.Config{})
	t.Cleanup(func() { close(held) })
	w.serve()
	for i := range 8 { // a deployment in which other things are well
		w.send(fmt.Sprint("depot-", i), "deliver", "d1", 3+i)
	}
	return w
}

// post sends an event, and does not wait for its end.
func (w *world) post(space, stream, id string, payload any) {
	w.Helper()
	if _, err := w.d.Client().Send(w.Context(), settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(id), Payload: payload}); err != nil {
		w.Fatal(err)
	}
}

// needs watches a document until the test ends.
func (w *world) needs(space, doc string) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { // ends with ctx
		for _, err := range w.d.Client().Space(space).Watch(ctx, doc) {
			if err != nil && ctx.Err() == nil {
				w.Error(err)
			}
		}
	})
	w.Cleanup(func() { cancel(); watching.Wait() })
}

// busy sends events that take time until the test ends.
func (w *world) busy(space func(i int) string) {
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	sending.Go(func() { // ends with ctx
		for i := 0; ctx.Err() == nil; i++ {
			_, err := w.d.Client().Call(ctx, settle.Outgoing{Space: space(i), Stream: "weigh", ID: settle.ID(fmt.Sprint("g", i))})
			if err != nil && ctx.Err() == nil {
				w.Error(err)
				return
			}
		}
	})
	w.Cleanup(func() { cancel(); sending.Wait() })
}

func TestIncident_AStuckSpace(t *testing.T) {
	w := incident(t, nil)
	w.post("oslo", "count", "c1", nil)
	w.post("oslo", "deliver", "d1", 1)
	v := w.visits()
	v.reads("1 space is stuck", "count c1: its handler has been running since")
	v.follows("oslo")
	v.reads("oslo is stuck: count c1: its handler has been running since", "deliver")
}

func TestIncident_AnEventIsTriedAgainAndAgain(t *testing.T) {
	w := incident(t, nil)
	w.post("oslo", "fetch", "f1", nil)
	v := w.visits()
	v.reads("1 space is stuck", "the supplier does not answer")
	v.follows("oslo")
	v.reads("oslo waits: fetch f1 has failed", "times, and is tried again: the supplier does not answer", "of at most 100000")
	v.follows("fetch")
	v.reads("f1 has failed", "times, and is tried again: the supplier does not answer", "an error that may pass has ended")
}

func TestIncident_AWrongDerivedValue(t *testing.T) {
	w := incident(t, nil)
	w.needs("oslo", "worth")
	w.send("oslo", "deliver", "d1", 3)
	w.send("oslo", "reprice", "list-1", 5)
	v := w.visits()
	w.send("oslo", "reprice", "list-2", -7) // which is wrong
	v.follows("Spaces")
	v.reads()
	v.follows("oslo")
	v.reads()
	v.follows("worth")
	v.reads("worth is -21", "reads stock 3 price -7", "15 → -21 worth because price changed reprice list-2")
}

func TestIncident_ASlowHandler(t *testing.T) {
	w := incident(t, nil)
	w.busy(func(int) string { return "mill" })
	v := w.visits()
	v.reads()
	v.follows("What takes time")
	v.reads("Handler weigh of space mill takes the most time")
}

func TestIncident_AHotSpace(t *testing.T) {
	w := incident(t, nil)
	w.busy(func(i int) string { return []string{"hot", "hot", "hot", "hot", "hot", "cold"}[i%6] })
	v := w.visits()
	v.reads()
	v.follows("What takes time")
	v.reads("Handler weigh of space hot takes the most time", "Busiest spaces hot")
}

func TestIncident_AFailingAction(t *testing.T) {
	w := incident(t, nil)
	w.send("harbour", "send", "s1", nil)
	v := w.visits()
	v.reads("harbour", "task s1 of action ship is tried again after", "the port is closed")
	v.follows("harbour")
	v.reads("harbour: task s1 of ship is tried again: the port is closed", "ship s1", "failed attempts")
}

func TestIncident_ACircle(t *testing.T) {
	w := incident(t, nil)
	w.send("ring", "deliver", "d1", 1)
	w.needs("ring", "margin")
	v := w.visits()
	v.reads("ring", "converge: tariff -> margin -> tariff")
	v.follows("ring")
	v.reads("converge")
	v.follows("why")
	v.reads("circle")
}

func TestIncident_ALaggingCoordinator(t *testing.T) {
	var slow atomic.Bool
	slow.Store(true)
	w := incident(t, func(cfg *settle.Config) {
		cfg.Bus.AckTimeout = 500 * time.Millisecond
		cfg.Bus.Faults = func(a faults.Attempt) faults.Fault {
			if slow.Load() && a.Op == faults.OpSend && strings.Contains(a.Subject, "bank") {
				return faults.DropRequest
			}
			return faults.Deliver
		}
	})
	t.Cleanup(func() { slow.Store(false) })
	w.send("oslo", "order", "o1", nil)
	v := w.visits()
	v.reads("The coordinator is behind", "what order of space oslo sends to bank is the first that is not delivered")
	v.follows("why")
	v.reads("the event that o1 caused is open", "the coordinator that puts it into its lane is behind")
}

func TestIncident_ADeniedPrincipal(t *testing.T) {
	w := incident(t, nil)
	w.send("oslo", "deliver", "d1", 1)
	_, err := access.Change(t.Context(), w.d.Bus(), "boss", func(r *access.Rule) { r.Send, r.Read = []string{"*/*"}, []string{"*/*"} })
	if err != nil {
		t.Fatal(err)
	}
	client, err := settle.NewClient(w.d.Bus(), settle.ClientConfig{ID: "m", Principal: "mallory"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for n := 0; ; n++ { // workers follow the rules, moments later
		rc, err := client.Call(t.Context(), settle.Outgoing{Space: "oslo", Stream: "deliver", ID: settle.ID(fmt.Sprint("m", n)), Payload: 1})
		if err != nil {
			t.Fatal(err)
		}
		if rc.Outcome == model.Refused {
			break
		}
	}
	v := w.visits()
	v.reads("principal mallory may not send events of stream deliver to space oslo")
	v.follows("dead letters")
	v.reads("principal mallory may not send")
}

func TestIncident_ABadDeploy(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	order := map[string]any{"item": "lamp", "pieces": 1}
	w.send("oslo", "order", "o1", order)
	w.redeploy("shop", "*", "orders.set(orders.get() + 1)", `fail("the till is locked")`)
	for n := 0; ; n++ { // a space changes over moments later
		rc, err := w.d.Client().Call(t.Context(), settle.Outgoing{Space: "oslo", Stream: "order", ID: settle.ID(fmt.Sprint("b", n)), Payload: order})
		if err != nil {
			t.Fatal(err)
		}
		if rc.Outcome == model.Failed {
			break
		}
	}
	v := w.visits()
	v.reads("order: ", "the till is locked")
	v.follows("dead letters")
	v.reads("the till is locked", "was deployed")
}

func TestIncident_ALostTrace(t *testing.T) {
	w := incident(t, nil)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	stored := make(chan error, 1)
	put := func(m model.Message) {
		w.d.Bus().Send(m, func(_ model.SendResult, err error) { stored <- err })
		if err := <-stored; err != nil {
			t.Fatal(err)
		}
	}
	put(model.Message{Space: "oslo", Stream: "order", ID: "o1", Trace: model.Trace{Parent: "00-" + trace + "-00f067aa0ba902b7-01"}})
	b := w.open()
	b.to("/spaces/oslo/events/order/o1")
	const pay = `document.querySelector('main a[href*="/events/pay/"]')`
	b.until(pay)
	id := eval[string](b, pay+`.href.split("/").at(-1)`)
	put(model.Message{Space: "bank", Stream: "pay", ID: model.RedriveID(id)}) // as a program without traces sends it
	v := w.visits()
	v.follows("dead letters")
	v.reads()
	v.follows(model.RedriveID(id))
	v.reads("The trace ends before this event: its cause", "belongs to trace "+trace[:11])
}
