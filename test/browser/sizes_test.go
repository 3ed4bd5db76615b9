package browser

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
)

// flood sends events, many at a time, and waits until all are stored.
func (w *world) flood(n int, event func(i int) settle.Outgoing) {
	w.Helper()
	var sending sync.WaitGroup
	places := make(chan struct{}, 256)
	for i := range n {
		places <- struct{}{}
		sending.Go(func() { // ends with its event
			defer func() { <-places }()
			if _, err := w.d.Client().Send(w.Context(), event(i)); err != nil {
				w.Error(err)
			}
		})
	}
	sending.Wait()
}

// manySpaces is how many spaces are made besides those of testdata/large.star, of which every stuckEach-th is stuck.
const manySpaces, stuckEach = 10_000, 700

// large fills a deployment: many spaces, one of which has a graph of 600 nodes and 3,000 documents, and an event that has caused a thousand.
func (w *world) large() {
	w.Helper()
	for _, spaces := range []string{"large", "item-*", "packing-*"} {
		w.deploy("large", spaces)
	}
	w.flood(manySpaces, func(i int) settle.Outgoing {
		e := settle.Outgoing{Space: fmt.Sprintf("tenant-%04d", i), Stream: "deliver", ID: settle.ID("d1"), Payload: map[string]any{"item": "lamp", "pieces": i}}
		if i%stuckEach == 13 {
			e.Stream, e.Payload = "wait", nil
		}
		return e
	})
	w.send("large", "put", "", map[string]any{"at": "station-0-0", "n": 4})
	for i := range 10 {
		w.send("large", "store", "", map[string]any{"begin": i * 300, "n": 300})
	}
	w.send("large", "spread", "o1", map[string]any{"n": 340})
}

// sizes are the widths in which large pages are checked.
var sizes = []look{{1440, 900, "light"}, {820, 1180, "dark"}, {390, 844, "dark"}}

// mostElements bounds the elements of a page.
const mostElements = 8000

// Pages of a large deployment keep the rules of accessibility, are not wider than the window, and are of a size that does not depend on that of what
// they are about. All that is needed before the first paint are the page and one style sheet.
func TestSizes_PagesOfALargeDeployment(t *testing.T) {
	w := start(t, 2, gateway.Config{})
	w.large()
	b := w.open()
	b.to("/spaces/large/documents/station-23-24")
	b.submit(`form[action="/-/do/observe"] button`) // so that the space is in memory
	b.to("/spaces/large/events/spread/o1")
	b.untilText("h1", "o1") // 6 of the 999 events failed; where the machine is busy, fewer are read
	b.untilText("#tree", "there is more than is shown")
	b.to("/spaces/large/graph")
	b.untilText("h1", "600 nodes")
	b.to("/spaces")
	b.untilText("h1", "spaces are stuck")
	b.untilText(".filters", "10,048") // with 40 of items, 7 of packing, and large
	b.untilText("#list tbody tr", "an error that may pass")
	for _, path := range []string{
		"/", "/spaces", "/spaces?q=tenant-98&page=1", "/spaces/large", "/spaces/large?page=17", "/spaces/large/graph", "/spaces/large/graph?why=station-3-4",
		"/spaces/large/events/spread/o1", "/spaces/large/events/spread/o1?as=graph", "/spaces/large/events/spread/o1?show=stuck", "/fleet", "/dead", "/-/help",
	} {
		b.run(chromedp.Navigate("about:blank")) // it would draw its own updates meanwhile
		w.paintsWithLittle(path)
		b.keepsTheRules(path, sizes)
	}
	b.size(1440, 900)
	b.to("/spaces")
	b.fill("#find", "tenant-98")
	b.press("\r")
	b.untilText(".pager", "1–100 of 100")
	b.to("/spaces")
	b.submit(`a[rel="next"]`)
	b.untilText(".pager", "101–200 of 10,048")
	b.to("/spaces/large/graph")
	b.untilText("#summary", "600 nodes are too many to draw at once")
	if n := eval[int](b, `document.querySelectorAll("svg.graph g").length`); n < 5 || n > 301 {
		t.Errorf("%d boxes are drawn", n)
	}
}

// What is logged is the median of so many tabs. Browsers need processor time for a tab while and after it opens, and after it has been left: with two
// processors, a page without data has its first paint after 230 ms in a tab just opened beside one just left, and after 80 ms when all have come to rest.
var (
	paints = flag.Int("paints", 1, "in how many tabs to measure the first paint of each page")
	rest   = flag.Duration("rest", 0, "how long a tab stays empty before its first paint is measured: some seconds, to measure no other tab's work")
)

// paintsWithLittle checks what tabs that have loaded nothing yet need for a page, and logs how long they take.
func (w *world) paintsWithLittle(path string) {
	w.Helper()
	var first, paint []float64
	for n := range *paints {
		b := w.open()
		call(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
		b.until(fmt.Sprintf("performance.now() > %d", rest.Milliseconds()))
		b.to(path)
		b.until(`performance.getEntriesByName("first-contentful-paint").length > 0`)
		paint = append(paint, eval[float64](b, `performance.getEntriesByName("first-contentful-paint")[0].startTime`))
		first = append(first, eval[float64](b, `performance.getEntriesByType("navigation")[0].responseStart`))
		if n == 0 {
			b.loadsLittle(path)
		}
		b.close()
	}
	slices.Sort(first)
	slices.Sort(paint)
	w.Logf("%s: first byte after %.0f ms, first paint after %.0f ms (%.0f to %.0f)", path, first[len(first)/2], paint[len(paint)/2], paint[0], paint[len(paint)-1])
}

// loadsLittle checks what has been loaded for the page that is open.
func (b *tab) loadsLittle(path string) {
	b.Helper()
	blocking := eval[[]string](b, `performance.getEntriesByType("resource").filter((r) => r.renderBlockingStatus === "blocking").map((r) => new URL(r.name).pathname)`)
	if len(blocking) != 1 || blocking[0] != "/-/assets/console.css" {
		b.Errorf("%s: before the first paint these are loaded: %v", path, blocking)
	}
	if eval[bool](b, `[...document.scripts].some((s) => !s.src || !s.defer && !s.async)`) {
		b.Errorf("%s has a script that holds the first paint up", path)
	}
	all := eval[[]string](b, `performance.getEntriesByType("resource").filter((r) => r.initiatorType !== "other").map((r) => new URL(r.name).pathname)`)
	if files := strings.Join(all, " "); strings.Count(files, "/-/assets/") > 3 {
		b.Errorf("%s loads %v", path, all)
	}
	bytes := eval[float64](b, `[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter((r) => r.initiatorType !== "other").reduce((n, r) => n + r.encodedBodySize, 0)`)
	elements := eval[int](b, `document.querySelectorAll("*").length`)
	if bytes > 100<<10 || bytes == 0 {
		b.Errorf("%s takes %.0f bytes", path, bytes)
	}
	if elements > mostElements {
		b.Errorf("%s has %d elements", path, elements)
	}
	b.Logf("%s: %.0f bytes, %d elements", path, bytes, elements)
}
