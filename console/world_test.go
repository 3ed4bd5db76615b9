package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/leaks"
	"github.com/settlehq/settle/internal/parallel"
	"github.com/settlehq/settle/worker"
)

func TestMain(m *testing.M) {
	parallel.Allow()
	leaks.VerifyTestMain(m)
}

// testPatience turns a hang into a failure; no test waits for it otherwise, on a machine that may be heavily loaded.
const testPatience = 5 * time.Minute

var (
	count  = settle.NewCell[int]("count")
	double = settle.NewDerived[int]("double")
	quad   = settle.NewDerived[int]("quad")
	broken = settle.NewDerived[int]("broken")
	charge = settle.NewAction[string, string]("charge")
)

func shop() *settle.Program {
	p := settle.NewProgram("shop")
	p.Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		by, _ := ev.Payload.AsInt()
		count.Update(tx, func(n *int) { *n += int(by) })
		return settle.ValueOf(count.Get(tx))
	})
	p.Handle("flaky", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		return settle.Value{}, settle.Transient(errors.New("not today"))
	})
	p.Handle("fail", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		return settle.Value{}, errors.New("<b>never</b>")
	})
	p.Handle("buy", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		key, _ := ev.Payload.AsString()
		charge.Start(tx, key, "a card")
		return settle.Value{}, nil
	})
	charge.External(p)
	double.Compute(p, func(v *settle.View) (int, error) { return 2 * count.Get(v), nil })
	quad.Compute(p, func(v *settle.View) (int, error) { return 2 * double.Get(v), nil })
	broken.Compute(p, func(v *settle.View) (int, error) { return count.Get(v), errors.New("no light") })
	return p
}

// world is a deployment with a console that is served as settle dev does.
type world struct {
	*testing.T
	server *embedded.Server
	d      *settle.Deployment
	c      *Console
	g      *gateway.Gateway
	http   http.Client
	base   string
	within context.Context // bounds waits
	// reads counts the readings of heads of logs, and slow, if not nil, holds back what is written to requests with the header X-Slow.
	reads atomic.Int64
	slow  chan struct{}
	// hold, if not nil, holds these readings up until it is closed.
	hold atomic.Pointer[chan struct{}]
}

// counted counts what a console reads.
type counted struct {
	*bus.Bus
	w *world
}

// Head counts the readings of a space: a page of a space has one for each load.
func (c counted) Head(ctx context.Context, space string) (uint64, error) {
	c.w.reads.Add(1)
	if hold := c.w.hold.Load(); hold != nil {
		<-*hold
	}
	return c.Bus.Head(ctx, space)
}

// held is a connection to a browser that takes nothing for a while.
type held struct {
	http.ResponseWriter
	until chan struct{}
}

func (h held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// SetWriteDeadline does nothing: how long the test takes is not what the browser does.
func (h held) SetWriteDeadline(time.Time) error { return nil }

func (h held) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte("event: part")) {
		<-h.until
	}
	return h.ResponseWriter.Write(text)
}

// ServeHTTP is the console.
func (w *world) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Slow") != "" {
		out = held{out, w.slow}
	}
	w.c.ServeHTTP(out, r)
}

func start(t *testing.T, workers int, web gateway.Config, options ...worker.Options) *world {
	t.Helper()
	t.Parallel()
	within, cancel := context.WithTimeout(t.Context(), testPatience)
	t.Cleanup(cancel)
	w := &world{T: t, within: within, server: natstest.StartServer(t, embedded.Config{Listen: ":0"})}
	var err error
	w.d, err = settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(shop()), Bus: bus.Config{Server: w.server, Partitions: 2}, Workers: workers, Options: slices.Concat(options, []worker.Options{{}})[0],
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.d.Stop(context.Background()); err != nil && w.server.ClientURL() != "" {
			t.Log(err)
		}
	})
	w.serve(web)
	return w
}

// serve serves a console.
func (w *world) serve(web gateway.Config) {
	w.Helper()
	var err error
	if w.c, err = OnBus(w.d.Bus(), Config{Version: "test"}); err != nil {
		w.Fatal(err)
	}
	read := counted{w.d.Bus(), w}
	w.c.cfg.Bus, w.c.shared.bus, w.c.asks.Bus = read, read, read
	web.Addr, web.Pages = "127.0.0.1:0", w
	if w.g, err = gateway.Listen(web); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { // ends with the test
		defer close(ended)
		w.g.Serve(ctx, nil, nil, nil)
	}()
	w.base = "http://" + w.g.Addr()
	jar, _ := cookiejar.New(nil) // never fails
	w.http = http.Client{Transport: &http.Transport{}, Timeout: testPatience, Jar: jar}
	w.Cleanup(func() {
		w.http.CloseIdleConnections()
		cancel()
		<-ended
		w.c.Close()
	})
}

// get returns a page.
func (w *world) get(path string, headers ...string) (*http.Response, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.base+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	return w.do(r, headers)
}

func (w *world) do(r *http.Request, headers []string) (*http.Response, string) {
	w.Helper()
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := w.http.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }() // only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer, string(text)
}

// want gets a page, and checks that it has some texts.
func (w *world) want(path string, code int, texts ...string) string {
	w.Helper()
	answer, text := w.get(path)
	// On a loaded machine a page may take longer than the console waits; a browser loads it again.
	for answer.StatusCode == http.StatusServiceUnavailable && answer.StatusCode != code && w.within.Err() == nil {
		select {
		case <-w.within.Done():
		case <-time.After(50 * time.Millisecond):
			answer, text = w.get(path)
		}
	}
	if answer.StatusCode != code {
		w.Errorf("%s is answered with %d, want %d: %s", path, answer.StatusCode, code, visible(text))
	}
	for _, t := range texts {
		if !strings.Contains(visible(text), t) {
			w.Errorf("%s does not say %q: %s", path, t, visible(text))
		}
	}
	return text
}

// until gets a page until it has a text.
func (w *world) until(path, text string) string {
	w.Helper()
	for {
		_, got := w.get(path)
		if strings.Contains(visible(got), text) {
			return got
		}
		select {
		case <-w.within.Done():
			w.Fatalf("%s never says %q: %s", path, text, visible(got))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// post sends a form with the token of the browser.
func (w *world) post(path string, form url.Values, headers ...string) (*http.Response, string) {
	w.Helper()
	if form.Get("token") == "" {
		form.Set("token", w.token())
	}
	r, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.do(r, headers)
}

// token returns the token of the forms of this browser.
func (w *world) token() string {
	w.Helper()
	_, text := w.get("/-/help")
	found := tokenField.FindStringSubmatch(text)
	if found == nil {
		w.Fatalf("no form has a token: %s", text)
	}
	return found[1]
}

// fill sends some events.
func (w *world) fill(spaces ...string) {
	w.Helper()
	for _, space := range spaces {
		if _, err := w.d.Client().Call(w.Context(), settle.Outgoing{Space: space, Stream: "add", ID: settle.ID("a1"), Payload: 2}); err != nil {
			w.Fatal(err)
		}
	}
}

var (
	tokenField = regexp.MustCompile(`name="token" value="([0-9a-f]+)"`)
	tags       = regexp.MustCompile(`<[^>]*>`)
	blanks     = regexp.MustCompile(`\s+`)
	bodies     = regexp.MustCompile(`(?s)<main.*</main>`)
)

// visible is the text of a page.
func visible(html string) string {
	if main := bodies.FindString(html); main != "" {
		html = main
	}
	return blanks.ReplaceAllString(tags.ReplaceAllString(html, " "), " ")
}
