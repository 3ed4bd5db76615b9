package browser

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// pages are addresses of each page of a deployment that fill has filled: those of the navigation, and what they lead to.
func (b *tab) pages() []string {
	b.Helper()
	b.to("/")
	all := eval[[]string](b, `[...document.querySelectorAll("header nav a")].map((a) => a.getAttribute("href"))`)
	if len(all) < 2 {
		b.Fatalf("the navigation has only %v", all)
	}
	all = append(all, "/spaces/rome", "/spaces/oslo", "/spaces/rome/graph", "/spaces/rome/graph?why=value", "/spaces/rome/documents/stock", "/spaces/rome/documents/summary",
		"/spaces/berlin", "/spaces/berlin/events/ask/a1", "/spaces/berlin/runs/f1", "/spaces/rome/events/order/o1?as=graph", "/spaces/wide/graph", "/spaces?q=nothing", "/-/help", "/nowhere")
	kinds := map[string]bool{}
	for _, path := range all {
		kinds[kindOf(path)] = true
	}
	for _, path := range slices.Clone(all) { // one page of each kind that those lead to
		b.to(path)
		for _, to := range eval[[]string](b, `[...document.querySelectorAll("main a[href^='/']")].map((a) => a.getAttribute("href"))`) {
			if kind := kindOf(to); kind != "" && !kinds[kind] {
				kinds[kind] = true
				all = append(all, to)
			}
		}
	}
	return all
}

// kindOf tells pages of one kind from others: by the parts of the path that are no names, and the parameters.
func kindOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || strings.HasPrefix(u.Path, "/-/assets/") {
		return ""
	}
	if strings.HasPrefix(u.Path, "/-/") {
		return u.Path
	}
	parts := strings.Split(u.Path, "/")
	kind := fmt.Sprint(parts[1], len(parts))
	if len(parts) > 3 {
		kind += parts[3]
	}
	return kind
}

// look is a width, and a theme.
type look struct {
	width, height int64
	theme         string
}

// looks are those in which pages are checked: each width and each theme.
var looks = []look{{1440, 900, "light"}, {1024, 768, "dark"}, {390, 844, "light"}}

// tabs is in how many tabs pages are checked; as many at a time as go test runs tests.
const tabs = 4

// Each page keeps the rules of accessibility at three widths in both themes, is not wider than the window, and reports no error.
func TestPages_KeepTheRulesOfAccessibility(t *testing.T) {
	w := start(t, 2, gateway.Config{})
	w.fill()
	b := w.open()
	b.allow("status of 404") // of /nowhere
	all := b.pages()
	t.Logf("%d pages: %v", len(all), all)
	for n := range tabs {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			own := *w
			own.T = t
			b := own.open()
			b.allow("status of 404")
			for i := n; i < len(all); i += tabs {
				b.keepsTheRules(all[i], looks)
			}
		})
	}
}

// keepsTheRules checks a page in some looks.
func (b *tab) keepsTheRules(path string, looks []look) {
	b.Helper()
	b.to(path)
	for _, look := range looks {
		b.size(look.width, look.height)
		b.theme(look.theme)
		for _, v := range b.axe() {
			for _, n := range v.Nodes {
				b.Errorf("%s at %d, %s: %s (%s): %s: %s", path, look.width, look.theme, v.ID, v.Help, n.HTML, n.FailureSummary)
			}
		}
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > look.width {
			b.Errorf("%s at %d is %d wide", path, look.width, wide)
		}
		if small := eval[[]string](b, tooSmall); len(small) > 0 {
			b.Errorf("%s at %d: these are too small to touch: %v", path, look.width, small)
		}
		b.shot(fmt.Sprintf("%s-%d-%s", strings.Trim(strings.NewReplacer("/", "_", "?", "_", "=", "_").Replace(path), "_"), look.width, look.theme))
	}
}

// Tables keep words whole at each width, although none is wider than the window: only a word that is long, such as an id, is broken.
func TestPages_KeepWordsWhole(t *testing.T) {
	w := start(t, 2, gateway.Config{})
	w.fill()
	client, err := settle.NewClient(w.d.Bus(), settle.ClientConfig{ID: "m", Principal: "mallory"})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = access.Change(t.Context(), w.d.Bus(), "administrator", func(r *access.Rule) { r.Send, r.Read = []string{"*/*"}, []string{"*/*"} })
	if err != nil {
		t.Fatal(err)
	}
	for n, outcome := 0, model.Handled; outcome != model.Refused; n++ { // workers follow the rules, moments later
		rc, err := client.Call(t.Context(), settle.Outgoing{
			Space: "rome", Stream: "remind", ID: settle.ID(fmt.Sprint("a-reminder-of-the-lamp-that-was-ordered-last-year-", n)), Payload: map[string]any{"item": "lamp", "after": "1h"},
		})
		if err != nil {
			t.Fatal(err)
		}
		outcome = rc.Outcome
	}
	long := strings.Repeat("x", 60)
	_, err = access.Change(t.Context(), w.d.Bus(), long, func(r *access.Rule) { r.By, r.Send = long, []string{long + "/" + long} })
	if err != nil {
		t.Fatal(err)
	}
	boss, err := settle.NewClient(w.d.Bus(), settle.ClientConfig{ID: "b", Principal: "administrator"})
	if err != nil {
		t.Fatal(err)
	}
	defer boss.Close()
	for _, e := range []settle.Outgoing{{Space: long, Stream: "refuse", ID: settle.ID(long)}, {Space: "oslo", Stream: "deliver", ID: settle.ID(long), NotBefore: time.Now().Add(time.Hour)}} {
		if _, err := boss.Send(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	b := w.open()
	b.to("/settings")
	b.untilText("#disallowed", "remind")
	b.to("/dead")
	b.untilText("main", long)
	for _, path := range []string{"/settings", "/spaces", "/spaces/rome", "/spaces/oslo", "/spaces/" + long, "/fleet", "/programs", "/workflows", "/dead"} {
		b.to(path)
		for _, width := range []int64{390, 768, 1280} {
			b.size(width, 900)
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				b.Errorf("%s at %d is %d wide", path, width, wide)
			}
			if broken := eval[[]string](b, brokenWords); len(broken) > 0 {
				b.Errorf("%s at %d breaks %v", path, width, broken)
			}
			b.shot(fmt.Sprintf("words%s-%d", strings.ReplaceAll(path, "/", "_"), width))
		}
	}
}

// brokenWords lists the words of tables that are on more than one line, but for long ones, and those that may be broken at a hyphen.
const brokenWords = `[...document.querySelectorAll("main td, main th")].flatMap((cell) => {
	const found = [], texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
	for (let text; text = texts.nextNode();) {
		if (text.parentElement.closest(".hidden")) continue;
		for (const word of text.data.matchAll(/[^\s-\/]+/g)) {
			if (word[0].length > 14) continue;
			const range = document.createRange();
			range.setStart(text, word.index);
			range.setEnd(text, word.index + word[0].length);
			if (new Set([...range.getClientRects()].map((r) => Math.round(r.top))).size > 1) found.push(word[0]);
		}
	}
	return found;
})`

// tooSmall lists what a finger misses: 24 by 24 is the least of WCAG 2.2, but for links in a text.
const tooSmall = `[...document.querySelectorAll("button, input:not([type=hidden]), select, textarea, header a")].filter((e) => {
	const r = e.getBoundingClientRect();
	return r.width > 0 && !e.closest(".hidden") && (r.width < 18 || r.height < 18);
}).map((e) => e.outerHTML.slice(0, 100))`

// Without a script, pages show the same, and forms work.
func TestPages_WorkWithoutAScript(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	b := w.open()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.to("/spaces/rome?stream=order")
	if got := b.text("#documents"); !strings.Contains(got, "orders 1") {
		t.Errorf("the documents are %q", got)
	}
	b.fill("#f-item", "desk")
	b.fill("#f-pieces", "3")
	b.click("#send .primary")
	b.untilText(".notice", "was handled, with the result 2")
	if got := b.text("#documents"); !strings.Contains(got, "orders 2") {
		t.Errorf("after the event the documents are %q", got)
	}
	b.click(`a[href="/spaces/rome/graph"]`)
	b.untilText("h1", "nodes")
	b.to("/spaces/rome/graph?why=summary")
	b.untilText("#why", "Why summary")
}

// A page with all that it needs is less than 100 KB, and asks no other place for anything.
func TestPages_AreSmall(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill()
	for _, path := range []string{"/", "/spaces", "/spaces/rome", "/spaces/rome/graph?why=value"} {
		b := w.open() // a request to another place is a fault of the page
		b.to(path)
		b.live()
		if n := b.bytes(); n > 100<<10 || n == 0 {
			t.Errorf("%s takes %.0f bytes", path, n)
		}
	}
}

// That a page is being read is shown after a moment, so that one which arrives sooner does not flicker.
func TestPages_ThatArriveSoonDoNotFlicker(t *testing.T) {
	w := start(t, 0, gateway.Config{})
	b := w.open()
	b.to("/")
	if at := eval[string](b, `(() => {
		document.body.append(Object.assign(document.createElement("p"), {className: "reading", textContent: "…"}));
		return getComputedStyle(document.querySelector(".reading:last-child")).visibility;
	})()`); at != "hidden" {
		t.Errorf("when a page begins, that it is being read is %s", at)
	}
	b.until(`getComputedStyle(document.querySelector(".reading:last-child")).visibility === "visible"`)
}

// A deployment without spaces, and one without workers, are named on their pages, with what to do.
func TestEmpty_PagesTeach(t *testing.T) {
	w := start(t, 0, gateway.Config{})
	b := w.open()
	b.to("/")
	b.untilText("h1", "No worker runs here")
	b.untilText("main", "settle dev")
	b.shot("empty-overview")
	b.to("/spaces")
	b.untilText("main", "settle send SPACE STREAM PAYLOAD")
	b.shot("empty-spaces")
}
