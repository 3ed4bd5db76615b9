package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

var anchors = regexp.MustCompile(`(?s)<a [^>]*?href="(/[^"]*|\?[^"]*|#[^"]*)"[^>]*>(.*?)</a>`)

// choices are the streams that the form of a space offers: they choose what the form sends, and lead to no other page.
var choices = regexp.MustCompile(`(?s)<nav [^>]*?id="streams".*?</nav>`)

// link returns where the link with a text leads on a page, "" if there is none. A link of the page itself comes before those of the navigation.
func link(text, label string) string {
	text = choices.ReplaceAllString(text, "")
	main := bodies.FindString(text)
	for _, part := range []string{main, text} {
		for _, m := range anchors.FindAllStringSubmatch(part, -1) {
			if strings.TrimSpace(html.UnescapeString(blanks.ReplaceAllString(tags.ReplaceAllString(m[2], " "), " "))) == label {
				return html.UnescapeString(m[1])
			}
		}
	}
	return ""
}

// clicks follows links, by their texts, from the overview, as a person does. It waits for each of them, and returns the address of the last page.
func (w *world) clicks(labels ...string) string {
	w.Helper()
	at := "/"
	for _, label := range labels {
		to := ""
		w.eventually(fmt.Sprintf("%s has a link %q", at, label), func() bool {
			answer, text := w.get(at)
			to = link(text, label)
			return answer.StatusCode == http.StatusOK && to != ""
		})
		at, _, _ = strings.Cut(to, "#")
	}
	w.Logf("%d links: %s", len(labels), at)
	return at
}

// watches watches a document until the test ends, so that it is needed.
func (w *world) watches(space, doc string) {
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

// names checks that a page comes to say all that is needed to know the cause.
func (w *world) names(page string, words ...string) {
	w.Helper()
	for _, word := range words {
		w.until(page, word)
	}
}

// A stuck space: the overview names it, and its page names the event, the handler that has not returned, and the events behind it.
func TestIncident_AStuckSpace(t *testing.T) {
	d := &doors{make(chan struct{})}
	w := operate(t, settle.Config{Programs: settle.Always(office(d))})
	w.opens(d)
	w.send("cart", "hang", "h1", nil)
	w.send("cart", "add", "a1", 1)
	w.names("/", "1 space is stuck", "hang h1: its handler has been running since")
	w.names(w.clicks("cart"), "cart is stuck: hang h1: its handler has been running since", "the handler of event h1 of stream hang has not returned")
	w.names(w.clicks("Fleet", "hang h1"), "the handler of event h1 of stream hang has not returned", "Skip")
}

// A wrong derived value: its page names what it was computed of, and the page of that input names the event that has made it wrong, with its payload.
func TestIncident_AWrongDerivedValue(t *testing.T) {
	p := office(nil)
	price := settle.NewCell[int]("price")
	sum := settle.NewDerived[int]("total")
	p.Handle("reprice", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		n, _ := ev.Payload.AsInt()
		price.Set(tx, int(n))
		return settle.Value{}, nil
	})
	sum.Compute(p, func(v *settle.View) (int, error) { return price.Get(v) * count.Get(v), nil })
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.watches("cart", "total")
	total := "/spaces/cart/documents/total"
	w.send("cart", "add", "a1", 3)
	w.until(total, "total is 0")
	w.send("cart", "reprice", "list-1", 5)
	w.until(total, "total is 15")
	w.send("cart", "reprice", "list-2", -7) // which is wrong
	w.names(w.clicks("Spaces", "cart", "total"), "total is -21", "computed by total", "price", "15 → -21")
	w.names(w.clicks("Spaces", "cart", "total", "price"), "price is -7", "5 → -7", "list-2", "reprice")
	w.names(w.clicks("Spaces", "cart", "total", "price", "reprice"), "list-2 was handled", "-7")
}

// A slow handler: the overview leads to what takes time, of which it is the most, with its space and how long each run takes.
func TestIncident_ASlowHandler(t *testing.T) {
	w := busyOffice(t, func(int) string { return "mill" })
	w.names(w.clicks("What takes time"), "slow handler mill")
}

// A hot space: the overview leads to the spaces that take most time.
func TestIncident_AHotSpace(t *testing.T) {
	w := busyOffice(t, func(i int) string { return []string{"hot", "hot", "hot", "hot", "hot", "cold"}[i%6] })
	w.names(w.clicks("What takes time"), "Busiest spaces hot")
}

// busyOffice starts a deployment with a handler that takes a while, to which events are sent until the test ends.
func busyOffice(t *testing.T, space func(i int) string) *world {
	t.Helper()
	p := office(nil)
	p.Handle("slow", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		busy(5 * time.Millisecond)
		return settle.Value{}, nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	ctx, cancel := context.WithCancel(context.Background())
	var sending sync.WaitGroup
	sending.Go(func() { // ends with the test
		for i := 0; ctx.Err() == nil; i++ {
			_, err := w.d.Client().Call(ctx, settle.Outgoing{Space: space(i), Stream: "slow", ID: settle.ID(fmt.Sprint("s", i))})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
		}
	})
	t.Cleanup(func() { cancel(); sending.Wait() })
	return w
}

// A failing action: the list of runs names the run that failed, and its page names the action, its arguments, its error and its attempts.
func TestIncident_AFailingAction(t *testing.T) {
	var repaired atomic.Bool
	w := operate(t, settle.Config{Programs: settle.Always(harbour(t, &repaired))})
	w.ships("r1", "ann")
	w.until("/spaces/a/runs/r1", "Send signal approve")
	form := map[string][]string{"space": {"a"}, "run": {"r1"}, "signal": {"approve"}}
	if answer, text := w.post("/-/do/run-signal", form); answer.StatusCode != 200 {
		t.Fatal(visible(text))
	}
	w.names(w.clicks("Workflows", "r1"), "r1 failed: Storm: the port is closed", "ship", "1100", "2 failed")
}

// A failing action outside of workflows: the overview names the action, its task and its error, whether it is tried again or was given up, and leads to
// the tasks of the space. Where the program handles what was given up, nothing is wrong.
func TestIncident_AnActionThatFailsAgainAndAgain(t *testing.T) {
	p := office(nil)
	fails := func(stream, action string, how settle.ActionOption) settle.Action[int, int] {
		a := settle.NewAction[int, int](action)
		a.Perform(p, func(context.Context, string, int) (int, error) { return 0, errors.New("the port is closed") }, how)
		p.Handle(stream, func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
			a.Start(tx, ev.ID, 1)
			return settle.Value{}, nil
		})
		return a
	}
	fails("go", "ship", settle.Backoff(10*time.Millisecond, 10*time.Millisecond))
	fails("depart", "sail", settle.Attempts(1))
	fails("leave", "row", settle.Attempts(1)).Done(p, func(*settle.Tx, settle.Task[int, int]) error { return nil })
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("pier", "leave", "o3", nil)
	w.names("/", "All is well", "task o3 of action row was given up after 1 attempt: the port is closed; its program handles that")
	w.send("harbour", "go", "o1", nil)
	w.names("/", "harbour: task o1 of action ship is tried again after", "the port is closed")
	w.send("harbour", "depart", "o2", nil)
	w.names("/", "2 things need attention", "task o2 of action sail was given up after 1 attempt: the port is closed")
	w.names(w.clicks("harbour"), "ship o1 tried again", "failed attempts", "sail o2 failed", "the port is closed")
}

// A circle: the overview names the nodes that do not converge and the way round.
func TestIncident_ACircle(t *testing.T) {
	p := office(nil)
	a, b, c := settle.NewDerived[int]("a"), settle.NewDerived[int]("b"), settle.NewDerived[int]("c")
	a.Compute(p, func(v *settle.View) (int, error) { return c.Get(v) + 1, nil })
	b.Compute(p, func(v *settle.View) (int, error) { return a.Get(v) + 1, nil })
	c.Compute(p, func(v *settle.View) (int, error) { return b.Get(v) + 1, nil })
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("ring", "add", "a1", 1)
	w.watches("ring", "c")
	w.names("/", "not converge", "-&gt;")
	w.names(w.clicks("ring"), "converge")
	w.names(w.clicks("why"), "circle")
}

// A lagging coordinator: the overview and the fleet name the partition that it has not released, and the event that waits names the coordinator.
func TestIncident_ALaggingCoordinator(t *testing.T) {
	var slow atomic.Bool
	slow.Store(true)
	cfg := settle.Config{Programs: settle.Always(office(nil))}
	cfg.Bus.AckTimeout = 500 * time.Millisecond
	cfg.Bus.Faults = func(a faults.Attempt) faults.Fault {
		if slow.Load() && a.Op == faults.OpSend && strings.Contains(a.Subject, "bank") {
			return faults.DropRequest
		}
		return faults.Deliver
	}
	w := operate(t, cfg)
	w.Cleanup(func() { slow.Store(false) })
	w.send("a", "order", "o1", nil)
	partition := model.PartitionOf("a", 2)
	what := "what order of space a sends to bank is the first that is not delivered" // stock has its event
	w.names("/", fmt.Sprint("The coordinator is behind: it has not released 1 commit of partition ", partition), "its coordinator is behind: "+what)
	w.names(w.clicks(fmt.Sprint("partition ", partition)), "The coordinator is behind: it has not released", "of partition", "not released", "c1 behind", what)
	w.names(w.clicks("why"), "bank · pay", "parked", fmt.Sprint("the coordinator that puts it into its lane is behind: none of partition ", partition, " has left since"))
	late, err := OnBus(w.d.Bus(), Config{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	f, err := late.shared.Fleet(w.within, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if s := late.stalled(w.within, f)[partition]; s == nil || f.At.Sub(s.Since) < stalledAfter { // with its first page
		t.Errorf("a console that has begun later does not know it: %+v", s)
	}
	slow.Store(false)
	w.until("/spaces/a/events/order/o1", "of the 3 events that o1 caused failed")
}

// A denied principal: the dead letters name the principal, what it has sent and to which space; the settings have the rules.
func TestIncident_ADeniedPrincipal(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.send("safe", "add", "a1", 1)
	w.until("/spaces/safe/events/add/a1", "a1 was handled")
	_, err := access.Change(t.Context(), w.d.Bus(), "boss", func(r *access.Rule) { r.Send, r.Read = []string{"*/*"}, []string{"*/*"} })
	if err != nil {
		t.Fatal(err)
	}
	client, err := settle.NewClient(w.d.Bus(), settle.ClientConfig{ID: "m", Principal: "mallory"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w.until("/settings", "1 rule about access")
	for n := 0; ; n++ { // workers follow the rules, moments later
		rc, err := client.Call(w.within, settle.Outgoing{Space: "safe", Stream: "add", ID: settle.ID(fmt.Sprint("m", n)), Payload: 1})
		if err != nil {
			t.Fatalf("mallory is not refused: %v %s", err, visible(w.want("/", 200)))
		}
		if rc.Outcome == model.Refused {
			break
		}
	}
	w.names("/", "failed or refused, neither redriven nor dismissed; add: principal mallory may not send events of stream add to space safe")
	w.names(w.clicks("dead letters"), "principal mallory", "add", "safe", "refused")
	w.names("/", "mallory add to safe: 1 event was refused, mallory=m", "principal mallory may not send events of stream add to space safe")
	w.names(w.clicks("mallory"), "Events that no rule allows", "mallory safe add 1 mallory=m", "refused principal mallory may not send events of stream add to space safe")
	w.names(w.clicks("Settings"), "what none allows is refused", "boss")

	// What was sent to a space that does not exist has no receipt, and no dead letter.
	if _, err := client.Send(w.within, settle.Outgoing{Space: "nowhere", Stream: "add", ID: settle.ID("m"), Payload: 1}); err != nil {
		t.Fatal(err)
	}
	w.until("/", "add to nowhere: 1 event was passed over, the last of them mallory=m: the space does not exist, and principal mallory may not send")
	w.until("/settings", "mallory nowhere add 1 mallory=m")
	w.names("/settings", "principal mallory may not send events of stream add to space nowhere")
}

// A bad deploy: the dead letters name the error; the programs say which version was deployed since when by what name, and the difference has the line. A version
// that does not compile is named on the overview.
func TestIncident_ABadDeploy(t *testing.T) {
	w := operate(t, settle.Config{Hosted: true})
	good := basket("5")
	first := w.deploys(good, "the first")
	w.send("cart-1", "add", "a0", nil)
	w.until("/spaces/cart-1/events/add/a0", "a0 was handled")
	bad := w.deploys(strings.Replace(good, "items.n += 1", `fail("the shelf is empty")`, 1), "quicker shelves")
	n := 0
	w.eventually("an event fails", func() bool {
		n++
		rc, err := w.d.Client().Call(w.within, settle.Outgoing{Space: "cart-1", Stream: "add", ID: settle.ID(fmt.Sprint("b", n))})
		if err != nil {
			t.Fatal(err)
		}
		return rc.Outcome == model.Failed
	})
	w.names("/", "; add: ", "the shelf is empty")
	w.names(w.clicks("dead letters"), "the shelf is empty", "cart-1", "after cart@"+bad.Version+" was deployed")
	w.names(w.clicks("dead letters", "cart@"+bad.Version), "cart@"+bad.Version+" against "+first.Version+": 2 lines changed", "the shelf is empty")
	w.names(w.clicks("Programs"), "quicker shelves", "ann", bad.Version, "Roll back")
	w.names(w.clicks("Programs", "difference"), "cart@"+bad.Version+" against "+first.Version+": 2 lines changed", "+ fail(", "the shelf is empty")

	broken, err := program.NewVersion(star.Source{Name: "cart", Entry: "cart.star", Files: map[string]string{"cart.star": "handle("}}, "ann", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := program.Publish(t.Context(), w.d.Bus(), broken); err != nil {
		t.Fatal(err)
	}
	_, err = program.Decide(t.Context(), w.d.Bus(), "cart*", func(r program.Rule) (program.Choice, error) {
		return program.Choice{Target: broken.Target(), By: "ann", At: time.Now()}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.names("/", "a deployed version cannot run here", broken.ID)
}

// A lost trace: the page of an event says to which trace it belongs, and where a trace ends that its cause belongs to.
func TestIncident_ALostTrace(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	m := model.Message{Space: "a", Stream: "order", ID: "o1", Trace: model.Trace{Parent: "00-" + trace + "-00f067aa0ba902b7-01"}}
	stored := make(chan error, 1)
	w.d.Bus().Send(m, func(_ model.SendResult, err error) { stored <- err })
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	w.until("/spaces/a/events/order/o1", "of the 3 events that o1 caused failed")
	w.want("/spaces?q=o1", 200, "“o1” is an event", "of stream order was sent to space")
	if found := link(w.want("/spaces?q=o1", 200), "o1"); found != "/spaces/a/events/order/o1" {
		t.Errorf("the search for the event leads to %q", found)
	}
	page := w.clicks("Spaces", "a", "order")
	w.names(page, trace[:11])
	w.names(w.clicks("Spaces", "a", "order", "bank · pay"), trace[:11])

	// An event that is sent under the id of a redrive follows from the one that it repeats. Here a program without traces has sent it.
	pay := strings.Split(w.clicks("Spaces", "a", "order", "bank · pay"), "/")
	again := model.RedriveID(pay[len(pay)-1])
	w.d.Bus().Send(model.Message{Space: "bank", Stream: "pay", ID: again}, func(_ model.SendResult, err error) { stored <- err })
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	w.names(eventURL("bank", "pay", again), "failed", "The trace ends before this event: its cause", "pay of bank", "belongs to trace "+trace[:11])
}
