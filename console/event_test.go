package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// The page of an event shows what it has caused, as a waterfall and as a graph, over spaces: what is done, what failed and why, and what waits for what.
func TestEvent_ShowsWhatItHasCaused(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.send("a", "order", "o1", map[string]int{"beans": 3})
	page := "/spaces/a/events/order/o1"
	text := w.until(page, "of the 3 events that o1 caused failed")
	for _, part := range []string{`"beans": 3`, "ordered", "Handled once, in commit", "stock · add", "bank · pay", errBank.Error(), "a · add", "waiting", "3 spaces", "Waterfall", "Graph", "not traced"} {
		if !strings.Contains(visible(text), part) && !strings.Contains(text, strings.ReplaceAll(part, `"`, "&#34;")) {
			t.Errorf("the page does not say %q: %s", part, visible(text))
		}
	}
	if n := strings.Count(text, "<rect class=\"s-"); n < 4 {
		t.Errorf("the waterfall has %d bars", n)
	}
	graph := w.want(page+"?as=graph", 200, "bank · pay")
	if nodes, edges := strings.Count(graph, `class="box"`), strings.Count(graph, `class="edge"`); nodes != 4 || edges != 3 {
		t.Errorf("the graph has %d nodes and %d edges", nodes, edges)
	}
	links := href.FindAllStringSubmatch(text, -1)
	found := ""
	for _, m := range links {
		if strings.HasPrefix(m[1], "/spaces/bank/events/pay/") {
			found = m[1]
		}
	}
	w.want(found, 200, "failed: "+errBank.Error(), "Caused by order of a", "Redrive", "Dismiss")
	w.want("/spaces/a/events/order/nothing", 404, "No event nothing of stream order is known in space a")
}

// Of a large tree, what is well is folded, and can be unfolded; what failed is shown. The page stays small.
func TestEvent_ALargeTreeIsFolded(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.c.trees.patience = time.Hour // how much of it is read in time is another test's
	w.send("a", "many", "m1", 180)
	if tree, err := w.d.Client().Space("a").WaitTree(w.within, "many", settle.ID("m1")); err != nil || tree.Events != 182 {
		t.Fatalf("%+v, %v", tree, err)
	}
	page := "/spaces/a/events/many/m1"
	text := w.until(page, "1 of the 181 events that m1 caused failed")
	if !strings.Contains(visible(text), "and 175 more") {
		t.Errorf("what is well is not folded: %s", visible(text))
	}
	if rows := strings.Count(text, `<li id="t-`); rows > 20 || !strings.Contains(visible(text), "bank · pay") {
		t.Errorf("%d rows: %s", rows, visible(text))
	}
	if len(text) > 100<<10 {
		t.Errorf("the page has %d bytes", len(text))
	}
	open := strings.ReplaceAll(lastBetween(text, `<a href="`, `">and 175 more`), "&amp;", "&")
	w.eventually("unfolded, there is a row for each", func() bool {
		_, text := w.get(open)
		return strings.Count(text, `<li id="t-`) == 182
	})
	if rows := strings.Count(w.until(page+"?show=stuck", "Show all 182"), `<li id="t-`); rows > 4 {
		t.Errorf("of what failed and is open, there are %d rows", rows)
	}
}

// busyBus is a deployment that answers about small trees, and not in time about others.
type busyBus struct {
	port.Bus
	asked []int
}

func (b *busyBus) Ask(ctx context.Context, _ string, request []byte) ([]byte, error) {
	var q history.TreeQuery
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, err
	}
	if b.asked = append(b.asked, q.MaxEvents); q.MaxEvents > 100 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return json.Marshal(history.Tree{Root: &history.TreeNode{}, Events: q.MaxEvents, More: true})
}

func (b *busyBus) FindEvents(ctx context.Context, _, _ string) ([]model.Message, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// If a tree cannot be read in time, less of it is; when that succeeds, more of it is tried again.
func TestEvent_LessOfATreeIsReadWhileServersAreBusy(t *testing.T) {
	t.Parallel()
	memory := membus.NewServer(membus.Config{Partitions: 1}).Connect("c")
	defer memory.Close()
	b := &busyBus{Bus: memory}
	client, err := settle.NewClient(b, settle.ClientConfig{ID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	s := &sharedTree{most: treeEvents}
	for _, want := range []int{20, 80, 40} {
		if tree, err := s.tree(t.Context(), client, history.EventRef{Space: "a", Stream: "x", Event: "e"}, time.Millisecond); err != nil || tree.Events != want {
			t.Errorf("%+v, %v; want %d events", tree, err, want)
		}
	}
	if want := []int{1000, 125, 20, 80, 320, 40}; !slices.Equal(b.asked, want) {
		t.Errorf("trees of %d events were asked for, want %d", b.asked, want)
	}
}

// lastBetween returns the last text between two others.
func lastBetween(text, from, to string) string {
	text, _, _ = strings.Cut(text, to)
	return text[strings.LastIndex(text, from)+len(from):]
}

// An event that waits says what for, how many are before it, and what can be done; the page changes when its state does.
func TestEvent_SaysWhatItWaitsFor(t *testing.T) {
	d := &doors{make(chan struct{})}
	w := operate(t, settle.Config{Programs: settle.Always(office(d))})
	open := w.opens(d)
	w.send("a", "hang", "h1", nil)
	w.send("a", "add", "a1", 1)
	w.until("/spaces/a/events/hang/h1", "the handler of event h1 of stream hang has not returned")
	w.until("/spaces/a/events/add/a1", "1 event before it")
	w.want("/spaces/a/events/hang/h1", 200, "Skip", "Cancel")
	w.changes("/spaces/a/events/add/a1", open, "a1 was handled")
}

// An event is redriven once, and its page leads to the new one.
func TestRedrive_SendsAnEventAgain(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.send("bank", "pay", "p1", nil)
	w.until("/dead", "1 event of pay failed")
	what := url.Values{"space": {"bank"}, "stream": {"pay"}, "event": {"p1"}}
	before, after := w.acts("redrive", what, nil, "settle redrive bank p1 --stream pay")
	if !strings.Contains(before, "It failed with: "+errBank.Error()) || !strings.Contains(after, "p1 is sent again, as ") {
		t.Errorf("%s\n%s", before, after)
	}
	w.until("/spaces/bank/events/pay/p1", "and sent again: failed")
	w.until(eventURL("bank", "pay", model.RedriveID("p1")), "failed: "+errBank.Error())
	w.want("/-/do/redrive?space=bank&stream=pay&event=p9", 404, "No event p9")
}

// A dismissed letter is off the list, with the reason; it can still be redriven.
func TestDismiss_TakesALetterOffTheList(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.send("bank", "pay", "p1", nil)
	w.until("/dead", "1 event of pay failed")
	what := url.Values{"space": {"bank"}, "stream": {"pay"}, "event": {"p1"}}
	_, after := w.acts("dismiss", what, url.Values{"reason": {"a test"}}, "settle dismiss bank p1 --stream pay --reason 'a test'")
	if !strings.Contains(after, "p1 is dismissed") {
		t.Error(after)
	}
	w.until("/dead", "No dead letter is open")
	w.acts("redrive", what, nil, "settle redrive bank p1 --stream pay")
}

// An event that waits for a time is cancelled, with its reason in the receipt; one that has ended is not.
func TestCancel_EndsAnEventThatWaits(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.send("a", "order", "o1", nil)
	text := w.until("/spaces/a/events/order/o1", "waiting")
	at := strings.ReplaceAll(lastBetween(text, `<a href="`, `">a · add`), "&amp;", "&")
	w.until(at, "is waiting")
	parts := strings.Split(at, "/")
	id, _ := url.PathUnescape(parts[len(parts)-1])
	what := url.Values{"space": {"a"}, "stream": {"add"}, "event": {id}}
	_, after := w.acts("cancel", what, url.Values{"reason": {"not needed"}}, fmt.Sprintf("settle cancel %s --space a --stream add", shellWord(id)))
	if !strings.Contains(after, "is cancelled") {
		t.Error(after)
	}
	w.until(at, "Cancelled, in commit")
	w.want(at, 200, "not needed")
	w.want("/-/do/cancel?"+what.Encode(), 400, "has ended before: cancelled")
}

// All that is open of a tree is cancelled; if there is more than in the preview, nothing is.
func TestCancelTree_EndsWhatIsOpen(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.send("a", "order", "o1", nil)
	page := "/spaces/a/events/order/o1"
	w.until(page, "Cancel all that is open: 1")
	what := url.Values{"space": {"a"}, "stream": {"order"}, "event": {"o1"}}
	few := url.Values{"count": {"0"}, "token": {w.token()}}
	for name, values := range what {
		few[name] = values
	}
	if answer, text := w.post("/-/do/cancel-tree", few); answer.StatusCode != 400 || !strings.Contains(text, "nothing was cancelled") {
		t.Errorf("%d %s", answer.StatusCode, visible(text))
	}
	before, after := w.acts("cancel-tree", what, nil, "settle cancel o1 --space a --tree")
	if !strings.Contains(before, "Cancel 1 event in 1 space") || !strings.Contains(after, "1 event cancelled") {
		t.Errorf("%s\n%s", before, after)
	}
	w.until(page, "settled: nothing of it is open")
}

// A timer that waits shows when it is due; one that its program has cancelled does not.
func TestEvent_ACancelledTimerIsNotDue(t *testing.T) {
	p := office(nil)
	p.Handle("remind", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		tx.SetTimer("reminder", "add", tx.Now().Add(2*time.Hour), 1)
		return settle.Value{}, nil
	})
	p.Handle("forget", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		tx.CancelTimer("reminder")
		return settle.Value{}, nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("a", "remind", "r1", nil)
	const page = "/spaces/a/events/remind/r1"
	if text := w.until(page, "the event that r1 caused is open"); !strings.Contains(text, "data-in") {
		t.Errorf("the timer has no time: %s", visible(text))
	}
	w.send("a", "forget", "f1", nil)
	if text := w.until(page, "r1 was handled, and all that it caused has ended: 1 event, 1 of them cancelled"); strings.Contains(text, "data-in") {
		t.Errorf("a cancelled timer shows when it is due: %s", visible(text))
	}
}

// The first event of a space is skipped, and those behind it are handled; an event that is not the first is not.
func TestSkip_LetsTheNextEventsPass(t *testing.T) {
	o := settle.Config{Programs: settle.Always(shop())}
	o.EventRetries = 1000
	w := operate(t, o)
	w.send("c", "flaky", "f1", nil)
	w.send("c", "add", "a1", 5)
	w.until("/spaces/c/events/flaky/f1", "Skip")
	w.want("/-/do/skip?space=c&stream=add&event=a1", 400, "The first event of space c is f1 of stream flaky, not a1; nothing was skipped")
	w.acts("skip", url.Values{"space": {"c"}, "stream": {"flaky"}, "event": {"f1"}}, nil, "settle skip c f1")
	w.until("/spaces/c/events/flaky/f1", "Cancelled, in commit")
	w.until("/spaces/c/events/add/a1", "a1 was handled")
}

// Of a space that a visitor may not read, a tree shows that there is an event, and nothing else; an action about it is refused.
func TestEvent_HidesSpacesThatTheVisitorMayNotRead(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.send("a", "order", "o1", nil)
	w.until("/spaces/a/events/order/o1", "of the 3 events that o1 caused failed")
	_, text := w.get("/spaces/a/events/order/o1", "Authorization", "Bearer clerk")
	if strings.Contains(text, "bank") || strings.Contains(text, "stock") || !strings.Contains(text, "a space that you may not read") {
		t.Error(visible(text))
	}
	for path, code := range map[string]int{"/spaces/bank/events/pay/p1": 403, "/-/do/redrive?space=bank&stream=pay&event=p1": 403, "/-/do/cancel-tree?space=a&stream=order&event=o1": 403, "/fleet": 403, "/doctor": 403, "/programs": 403, "/settings": 403, "/audit": 403} {
		if answer, text := w.get(path, "Authorization", "Bearer clerk"); answer.StatusCode != code {
			t.Errorf("%s: %d %s", path, answer.StatusCode, visible(text))
		}
	}
}

// An error is named as it is, whatever it contains and whatever else the reason for waiting says.
func TestTriedOr_NamesTheError(t *testing.T) {
	t.Parallel()
	const err = "supplier: the port is closed"
	if got := triedOr(3, err, err+"; tried again without a limit, the next time at 12:00"); got != " has failed 3 times, and is tried again: "+err {
		t.Error(got)
	}
	if got := triedOr(1, "", "it waits, and the space is awake: is to be handled"); got != ": is to be handled" {
		t.Error(got)
	}
}
