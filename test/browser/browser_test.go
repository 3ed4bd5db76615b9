package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chrome is the browser of all tests.
var chrome context.Context

// axeSource is axe-core.
var axeSource string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	path, err := chromium()
	if err == nil {
		var source []byte
		source, err = os.ReadFile("node_modules/axe-core/axe.min.js")
		axeSource = string(source)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err, "(see doc.go)")
		return 1
	}
	allocated, end := chromedp.NewExecAllocator(context.Background(), chromedp.ExecPath(path), chromedp.Flag("headless", true), chromedp.Flag("no-sandbox", true), chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true))
	defer end()
	var quit context.CancelFunc
	chrome, quit = chromedp.NewContext(allocated)
	defer quit()
	if _, err := chromedp.Run(chrome, chromedp.Navigate("about:blank")); err != nil {
		fmt.Fprintln(os.Stderr, path, "does not start:", err)
		return 1
	}
	return m.Run()
}

// chromium returns the path of a browser.
func chromium() (string, error) {
	if named := os.Getenv("CHROMIUM"); named != "" {
		return named, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium in the path; install the package chromium, or name one in CHROMIUM")
}

// tab is a tab of a browser window of its own, with its own cookies.
type tab struct {
	*testing.T
	w   *world
	ctx context.Context

	close func()

	mu       sync.Mutex
	faults   []string
	allowed  []string
	received map[network.RequestID]float64      // bytes, by request
	document cdp.LoaderID                       // the page that is open, or is loaded
	streams  map[network.RequestID]cdp.LoaderID // those that are open, with their pages
	opened   int                                // the number of streams that were
}

// open opens a tab. When the test ends, whatever the page has reported as an error is one of the test.
func (w *world) open() *tab {
	w.Helper()
	ctx, end := chromedp.NewContext(chrome, chromedp.WithNewBrowserContext())
	w.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	w.Cleanup(cancel)
	b := &tab{close: end, T: w.T, w: w, ctx: ctx, received: map[network.RequestID]float64{}, streams: map[network.RequestID]cdp.LoaderID{}}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		w.Fatal(err)
	}
	call(b, runtime.Enable, cdp.Empty{})
	call(b, log.Enable, cdp.Empty{})
	call(b, network.Enable, network.EnableParams{})
	b.size(1440, 900)
	w.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, f := range b.faults {
			w.Errorf("the page reports: %s", f)
		}
	})
	return b
}

// hear takes notes of what the browser reports.
func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fault := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		for _, a := range b.allowed {
			if strings.Contains(text, a) {
				return
			}
		}
		b.faults = append(b.faults, text)
	}
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault("exception: %v", jsonOf(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			fault("console: %v", jsonOf(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			fault("%s: %s (%s)", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.w.base+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			fault("a request to another place: %s", e.Request.URL)
		}
		if e.Type == network.ResourceTypeDocument {
			b.document = e.LoaderID
		}
		if e.Type == network.ResourceTypeEventSource {
			b.streams[e.RequestID] = e.LoaderID
			b.opened++
		}
	case *network.EventLoadingFinished:
		b.received[e.RequestID] += e.EncodedDataLength
		delete(b.streams, e.RequestID)
	case *network.EventLoadingFailed:
		delete(b.streams, e.RequestID)
	}
}

func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// allow says which reports are no errors: those that contain a text.
func (b *tab) allow(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.allowed = append(b.allowed, texts...)
}

func (b *tab) run(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatalf("%v (%s)", err, b.where())
	}
}

// call sends a command to the tab.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	answer, err := chromedp.Call(b.ctx, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

func (b *tab) where() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location()) // for a message only
	return at
}

// to goes to a page.
func (b *tab) to(path string) {
	b.Helper()
	b.run(chromedp.Navigate(b.w.base + path))
}

// path returns the path of the page that is open.
func (b *tab) path() string {
	u, err := url.Parse(b.where())
	if err != nil {
		return ""
	}
	return u.Path
}

// size sets the size of the window.
func (b *tab) size(width, height int64) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 768})
}

// theme sets what the system of the visitor prefers: light or dark, and no motion, since a picture of a fade is of no colour at all.
func (b *tab) theme(name string) {
	b.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// eval runs JavaScript in the page, and waits for its promise.
func eval[T any](b *tab, script string) T {
	b.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%v (%s): %s", err, b.where(), script)
	}
	return value
}

// text returns the text of an element, "" if it is not there.
func (b *tab) text(selector string) string {
	b.Helper()
	return eval[string](b, fmt.Sprintf(`(document.querySelector(%q)?.innerText || "").replace(/\s+/g, " ").trim()`, selector))
}

// until waits until a script returns true.
func (b *tab) until(script string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		is, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!!(`+script+`)`))
		if is {
			return
		}
		if ctx.Err() != nil {
			b.Fatalf("%s is never true (%s): %v", script, b.where(), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// patience bounds the wait for a condition. What is waited for takes a second on a machine that does nothing else.
const patience = time.Minute

// untilText waits until an element has a text.
func (b *tab) untilText(selector, text string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for last, said := "", ""; !strings.Contains(last, text); {
		if ctx.Err() != nil {
			b.Fatalf("%s never says %q, but %q", selector, text, said)
		}
		// An error is one of a page that is being left.
		last, _ = chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(`(document.querySelector(%q)?.innerText || "").replace(/\s+/g, " ")`, selector)))
		if last != "" {
			said = last
		}
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// click clicks on an element; the page that follows, if one does, is loaded then.
func (b *tab) click(selector string) {
	b.Helper()
	b.run(chromedp.Click(chromedp.CSS(selector)))
}

// submit clicks on a button that leads to another page, and waits for it.
func (b *tab) submit(selector string) {
	b.Helper()
	eval[bool](b, `window.before = true`)
	b.click(selector)
	b.until(`!window.before && document.readyState === "complete"`)
}

// fill writes a text in an input.
func (b *tab) fill(selector, text string) {
	b.Helper()
	eval[bool](b, fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.focus(); e.select(); return true; })()`, selector))
	b.press(text)
}

// key presses a key, as a keyboard does: what a page does not want of it is not written.
func (b *tab) key(name string) {
	b.Helper()
	call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyDown, Key: name, Text: name, UnmodifiedText: name})
	call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeKeyUp, Key: name})
}

// press presses keys, one after the other.
func (b *tab) press(keys string) {
	b.Helper()
	b.run(chromedp.KeyEvent(keys))
}

// live waits until the page has its stream.
func (b *tab) live() {
	b.Helper()
	b.until(`document.querySelector("#live")?.dataset.state === "live"`)
}

// violation is a rule of accessibility that a page does not keep.
type violation struct {
	ID    string
	Help  string
	Nodes []struct {
		HTML           string `json:"html"`
		FailureSummary string `json:"failureSummary"`
	}
}

// axe checks the page as it is.
func (b *tab) axe() []violation {
	b.Helper()
	if !eval[bool](b, `typeof axe === "object"`) {
		eval[bool](b, axeSource+";true")
	}
	return eval[[]violation](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => ({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 3)})))`)
}

// shot takes a picture of the whole page, if there is a directory for pictures.
func (b *tab) shot(name string) {
	b.Helper()
	dir := os.Getenv("SHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
		b.Fatal(err)
	}
}

// bytes returns how much the browser has received.
func (b *tab) bytes() (sum float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.received { // any order
		sum += n
	}
	return sum
}

// openStreams returns the number of streams that are open, and of those that were. A page that has gone has none, though the browser does not always report their ends.
func (b *tab) openStreams() (now, ever int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, page := range b.streams { // any order
		if page == b.document {
			now++
		}
	}
	return now, b.opened
}

// hover moves the pointer to an element.
func (b *tab) hover(selector string) {
	b.Helper()
	at := eval[[2]float64](b, fmt.Sprintf(`(() => { const r = document.querySelector(%q).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`, selector))
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
}

// untilStreams waits until the tab has a number of open streams.
func (b *tab) untilStreams(n int) {
	b.Helper()
	for now, _ := b.openStreams(); now != n; now, _ = b.openStreams() {
		select {
		case <-b.ctx.Done():
			b.Fatalf("%d streams are open, not %d", now, n)
		case <-time.After(30 * time.Millisecond):
		}
	}
}
