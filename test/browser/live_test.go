package browser

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
)

// record takes notes of each value of orders and twice that the page shows at a time, once it shows both.
const record = `window.shown = []; (() => {
	const value = (doc) => { const text = document.getElementById("d-" + doc)?.querySelector(".val").textContent; return /^\d+$/.test(text || "") ? Number(text) : -1; };
	const note = () => { const now = [value("orders"), value("twice")], last = window.shown.at(-1); if (!last || last[0] !== now[0] || last[1] !== now[1]) window.shown.push(now); };
	note();
	new MutationObserver(note).observe(document.getElementById("page"), { subtree: true, childList: true, characterData: true, attributes: true });
})(); true`

// check compares what the page has shown with what was so: the number of orders never goes back, twice is of the same commit, and the last is the newest.
func (b *tab) check(orders int) {
	b.Helper()
	b.until(fmt.Sprintf(`window.shown.at(-1)[0] === %d && window.shown.at(-1)[1] === %d`, orders, 2*orders))
	last := -1
	shown := eval[[][2]int](b, `window.shown`)
	for _, s := range shown {
		if s[0] < last || s[1] != 2*s[0] {
			b.Errorf("the page has shown %v after %d, of %d orders", s, last, orders)
		}
		last = s[0]
	}
	if len(shown) < 2 {
		b.Errorf("the page has shown only %v", shown)
	}
	b.Logf("%d orders, %d states shown", orders, len(shown))
}

// load sends orders to rome until the returned function is called, which returns the number of orders then.
func (w *world) load() (stop func() int) {
	ctx, cancel := context.WithCancel(w.Context())
	sent := 1 // that of fill
	var sending sync.WaitGroup
	sending.Go(func() { // ends with stop
		for ctx.Err() == nil {
			e := settle.Outgoing{Space: "rome", Stream: "order", ID: settle.ID(fmt.Sprint("load-", sent)), Payload: map[string]any{"item": "lamp", "pieces": 1}}
			for { // the same one until it is handled
				if _, err := w.d.Client().Call(w.Context(), e); err == nil {
					break
				} else if w.Context().Err() != nil {
					w.Error(err)
					return
				}
			}
			sent++
		}
	})
	return sync.OnceValue(func() int { cancel(); sending.Wait(); return sent })
}

// observed opens rome, with twice observed.
func (w *world) observed() *tab {
	w.Helper()
	b := w.open()
	b.to("/spaces/rome/documents/twice")
	b.submit(`form[action="/-/do/observe"] button`)
	b.to("/spaces/rome")
	b.live()
	b.untilText("#d-twice .val", "2")
	eval[bool](b, record)
	return b
}

// Under load, what a page shows is of one commit, never goes back, and ends with the newest. Nothing is loaded again, and the stream stays the same.
func TestLive_UnderLoad(t *testing.T) {
	w := start(t, 2, gateway.Config{})
	w.fill()
	b := w.observed()
	_, ever := b.openStreams()
	eval[bool](b, `window.same = true`)
	stop := w.load()
	defer stop()
	b.until(`window.shown.length > 8`)
	b.check(stop())
	if now, after := b.openStreams(); now != 1 || after != ever || !eval[bool](b, `window.same`) {
		t.Errorf("%d streams are open, %d were opened, %d before the load", now, after, ever)
	}
}

// When the worker of the space is killed under load, the page goes on from what was confirmed: no value is wrong, none is lost.
func TestLive_TheWorkerIsKilled(t *testing.T) {
	w := start(t, 2, gateway.Config{})
	w.fill()
	b := w.observed()
	stop := w.load()
	defer stop()
	b.until(`window.shown.length > 3`)
	owner := w.owner("rome")
	b.untilText("#about", owner)
	if !w.d.KillWorker(owner) {
		t.Fatalf("%s serves rome, and is not there", owner)
	}
	b.until(fmt.Sprintf(`!document.querySelector("#about").innerText.includes(%q) && /w\d|\d/.test(document.querySelector("#about").innerText)`, owner))
	at := eval[int](b, `window.shown.length`)
	b.until(fmt.Sprintf(`window.shown.length > %d`, at+3))
	b.check(stop())
}

// When the console is killed, the page keeps its values and says how old they are. With the next console it goes on by itself, from the newest.
func TestLive_TheConsoleIsKilled(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.observed()
	b.allow("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")
	w.end()
	b.untilText("#live", "connection lost")
	b.until(`document.querySelector("#page.old") && /\d+ s old/.test(document.querySelector("#stale").innerText)`)
	if got := b.text("#d-orders .val"); got != "1" {
		t.Errorf("the page shows %q", got)
	}
	b.shot("broken-space")
	for range 3 {
		w.send("rome", "order", "", map[string]any{"item": "lamp", "pieces": 1})
	}
	w.serve()
	if !w.alive() {
		t.Error("the console does not answer")
	}
	b.live()
	b.until(`!document.querySelector("#page.old") && document.querySelector("#stale").hidden`)
	b.untilText("#d-orders .val", "4")
	// The switch was one of the console that was killed: twice is not kept up to date any more, and the page offers to observe it.
	b.untilText("#d-twice .act", "Observe")
	for _, s := range eval[[][2]int](b, `window.shown`) {
		if s[0] != 1 && s[0] != 4 {
			t.Errorf("the page has shown %v", s)
		}
	}
}

// Without a server, a page keeps its values, gives the reason, and goes on when there is one again.
func TestLive_TheServerIsLost(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.observed()
	w.server.Shutdown()
	b.untilText("#stale", "no NATS server can be reached")
	b.until(`document.querySelector("#page.old")`)
	if got := b.text("#d-orders .val"); got != "1" {
		t.Errorf("the page shows %q", got)
	}
	b.allow("status of 503")
	b.to("/spaces")
	b.untilText("h1", "does not answer")
	b.shot("broken-spaces")
}

// A tab that is hidden has no stream, and gets the newest when it is shown.
func TestLive_AHiddenTabHasNoStream(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/spaces/rome")
	b.live()
	const hide = `Object.defineProperty(document, "hidden", { get: () => %v, configurable: true }); document.dispatchEvent(new Event("visibilitychange")); true`
	eval[bool](b, fmt.Sprintf(hide, true))
	b.untilStreams(0)
	w.send("rome", "order", "", map[string]any{"item": "lamp", "pieces": 1})
	if got := b.text("#d-orders .val"); got != "1" {
		t.Errorf("the hidden page shows %q", got)
	}
	eval[bool](b, fmt.Sprintf(hide, false))
	b.untilText("#d-orders .val", "2")
	b.untilStreams(1)
}

// Rows do not move under a pointer: new ones wait until it has left.
func TestLive_RowsDoNotMoveUnderAPointer(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	b.to("/spaces")
	b.live()
	b.hover("#s-rome")
	w.send("amsterdam", "order", "", map[string]any{"item": "lamp", "pieces": 1})
	b.untilText(".newer", "news")
	if strings.Contains(b.text("#list"), "amsterdam") {
		t.Error("a row has come under the pointer")
	}
	b.hover("h1")
	b.untilText("#list", "amsterdam")
	b.until(`!document.querySelector(".newer")`)
}

// While 200 other consoles have a page open, it is live in a browser, too: a change is there, and each of the others gets it.
func TestLive_AmongTwoHundredConsoles(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.send("rome", "order", "o1", map[string]any{"item": "lamp", "pieces": 1})
	const consoles = 200
	ctx, end := context.WithCancel(t.Context())
	var open, changed, all sync.WaitGroup
	defer all.Wait()
	defer end()
	for range consoles {
		open.Add(1)
		changed.Add(1)
		all.Go(func() { // ends with ctx, or when it has got the change
			begun, seen := sync.OnceFunc(open.Done), sync.OnceFunc(changed.Done)
			defer begun()
			defer seen()
			w.follow(ctx, "/spaces/rome", func(line string) bool {
				begun()
				return strings.Contains(line, `"id":"documents"`) && strings.Contains(line, ">2<")
			})
		})
	}
	open.Wait()
	b := w.open()
	b.to("/spaces/rome")
	b.live()
	b.untilText("#documents", "orders 1")
	w.send("rome", "order", "o2", map[string]any{"item": "lamp", "pieces": 1})
	b.untilText("#documents", "orders 2")
	changed.Wait()
}
