package browser

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/gateway"
)

// line is what is between the page and the gateway: it can be cut.
type line struct {
	net.Listener
	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

// Accept closes connections at once while the line is cut.
func (l *line) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		_ = c.Close()
	} else {
		l.conns = append(l.conns, c)
	}
	return c, nil
}

// cut closes all connections, or permits new ones.
func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

// counting starts a deployment that runs testdata/counter.star. The files of the repository are served, and its gateway behind a line: two origins.
func counting(t *testing.T) (w *world, l *line) {
	t.Helper()
	files := http.NewServeMux()
	files.Handle("/", http.FileServer(http.Dir("../..")))
	files.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	site := httptest.NewServer(files)
	t.Cleanup(site.Close)
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprint("127.0.0.1:", ports[0])
	w = &world{T: t, base: site.URL, server: natstest.StartServer(t, embedded.Config{Listen: ":0"})}
	cfg := settle.Config{Hosted: true, HTTP: gateway.Config{Addr: address, Origins: []string{site.URL}}, Bus: bus.Config{Server: w.server, Partitions: 2}}
	if w.d, err = settle.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.d.Stop(context.Background()); err != nil {
			t.Log(err)
		}
	})
	w.deploy("counter", "*")
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = &line{Listener: inner}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
		r.Out.Host = r.In.Host
	}}
	wire := &http.Server{Handler: proxy} //nolint:gosec // of a test
	var serving sync.WaitGroup
	serving.Go(func() { _ = wire.Serve(l) }) // ends with wire
	t.Cleanup(func() {
		l.cut(true)
		_ = wire.Close()
		serving.Wait()
	})
	return w, l
}

// add adds to the counter of alice as another client does.
func (w *world) add(by int) {
	w.Helper()
	w.send("alice", "add", "", map[string]any{"by": by})
}

// counter opens the example.
func (w *world) counter(l *line) *tab {
	w.Helper()
	b := w.open()
	to := "http://" + l.Addr().String()
	b.allow("a request to another place: "+to+"/", "a request to another place: ws://", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED", "ERR_SOCKET_NOT_CONNECTED",
		"ERR_INTERNET_DISCONNECTED", "status of 422", "WebSocket connection to")
	b.to("/examples/live/?space=alice&gateway=" + url.QueryEscape(to))
	return b
}

// The example shows what others do and what it does itself, at once. What the handler rejects is rolled back.
func TestClient_TheLiveExample(t *testing.T) {
	w, l := counting(t)
	w.add(1)
	b := w.counter(l)
	b.untilText("#count", "1")
	b.untilText("#double", "2")
	w.add(5)
	b.untilText("#count", "6")
	b.untilText("#double", "12")
	b.click("#add")
	b.untilText("#count", "7")
	b.untilText("#log", "is handled")
	b.untilText("#double", "14")
	b.click("#many")
	b.untilText("#log", `"value":17`)
	b.untilText("#log", "has no effect: ten are too many")
	b.untilText("#count", "7")
	b.untilText("#double", "14")
	if n := eval[int](b, `performance.getEntriesByType("resource").filter((r) => r.name.endsWith("/watch") && r.name.includes("/documents/")).length`); n != 0 {
		t.Errorf("%d watches are no part of the socket", n)
	}
}

// Under load from others, the count that is shown never goes back: no event is in it twice, and none is missing in between.
func TestClient_NoEventIsShownTwice(t *testing.T) {
	w, l := counting(t)
	w.add(1)
	b := w.counter(l)
	b.untilText("#count", "1")
	eval[bool](b, `window.shown = [1]; new MutationObserver(() => shown.push(Number(document.getElementById("count").textContent))).observe(document.getElementById("count"), { childList: true, characterData: true, subtree: true }); true`)
	const others, own = 40, 40
	eval[bool](b, fmt.Sprintf(`let left = %d; const more = () => { if (left-- > 0) { document.getElementById("add").click(); setTimeout(more, 5) } }; more(); true`, own))
	for range others {
		w.add(1)
	}
	b.until(fmt.Sprintf(`shown.at(-1) === %d && document.getElementById("log").textContent.split("is handled").length === %d`, 1+others+own, 1+own))
	shown := eval[[]int](b, `shown`)
	for i := 1; i < len(shown); i++ {
		if shown[i] < shown[i-1] {
			t.Fatalf("the page has shown %v", shown)
		}
	}
}

// What is added while no worker can be reached is shown, survives a reload of the page, and takes effect once when there is one again.
func TestClient_TheQueueSurvivesAReload(t *testing.T) {
	w, l := counting(t)
	w.add(1)
	b := w.counter(l)
	b.untilText("#count", "1")
	l.cut(true)
	b.untilText("#state", "no worker answers")
	for range 3 {
		b.click("#add")
	}
	b.untilText("#count", "4")
	eval[bool](b, `window.before = true; location.reload(); true`)
	b.until(`!window.before && document.readyState === "complete"`)
	if n := eval[int](b, `Object.keys(localStorage).filter((k) => k.startsWith("settle-queue:")).length`); n != 3 {
		t.Errorf("%d events are kept", n)
	}
	w.add(10 - 4 - 1)
	l.cut(false)
	b.untilText("#count", "9")
	b.untilText("#double", "18")
	b.until(`Object.keys(localStorage).length === 0`)
	w.add(1)
	b.untilText("#count", "10")
}
