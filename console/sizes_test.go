package console

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/status"
)

// visitors is how many consoles are open at a time.
const visitors = 200

// 200 consoles open one page, and it changes: it is read and rendered once for all of them, as often as its pace allows. A load is one reading of the
// space, and renders each part at most once; 200 loads would take longer than the test may.
func TestStream_ManyVisitorsShareTheWork(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	w.until("/spaces/a", "count 2")
	before := inUse()
	reads, rendered := w.reads.Load(), w.c.looks.rendered.Load()
	all := make([]<-chan string, visitors)
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	for i := range all {
		lines, end := w.streamOf("/spaces/a")
		all[i], ends = lines, append(ends, end)
		w.untilLine(lines, `"id":"documents"`)
	}
	t.Logf("%d KiB of memory each, of which half is the browser's side", (inUse()-before)/visitors>>10)
	if _, err := w.d.Client().Call(t.Context(), settle.Outgoing{Space: "a", Stream: "add", ID: settle.ID("a2"), Payload: 40}); err != nil {
		t.Fatal(err)
	}
	for _, lines := range all {
		w.untilLine(lines, ">42<")
	}
	reads, rendered = w.reads.Load()-reads, w.c.looks.rendered.Load()-rendered
	t.Logf("%d visitors: %d readings, %d parts rendered", visitors, reads, rendered)
	const parts = 9 // of the page of a space
	if reads == 0 || reads >= visitors/2 || rendered > uint64(parts*(reads+1)) {
		t.Errorf("for %d visitors, the space was read %d times, and %d parts were rendered", visitors, reads, rendered)
	}
}

// inUse is what the process uses, in bytes.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse) //nolint:gosec // far below the limit
}

// A console that takes nothing does not delay the others; when it goes on, it gets the newest state, and not those in between.
func TestStream_ASlowVisitorDelaysNoOther(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.slow = make(chan struct{})
	goOn := sync.OnceFunc(func() { close(w.slow) })
	defer goOn()
	w.fill("a")
	w.until("/spaces/a", "count 2")
	slow, endSlow := w.streamOf("/spaces/a", "X-Slow", "1")
	defer endSlow()
	defer goOn() // before that
	lines, end := w.streamOf("/spaces/a")
	defer end()
	for n := range 3 {
		w.send("a", "add", fmt.Sprint("s", n), 1)
		w.untilLine(lines, fmt.Sprintf(">%d<", 3+n))
	}
	goOn()
	var seen []string
	for !slices.Contains(seen, "5") {
		line := w.untilLine(slow, `"id":"documents"`)
		seen = append(seen, countIn.FindStringSubmatch(line)[1])
	}
	if slices.Contains(seen, "3") || slices.Contains(seen, "4") {
		t.Errorf("the slow visitor gets %v", seen)
	}
}

// countIn finds the value of the document count in a part of a stream.
var countIn = regexp.MustCompile(`count</a>.*?<td class=\\"val\\"[^>]*>\D*?(\d+)`)

// restAfter gives a page that takes long to load as much rest.
func TestTopic_APageThatTakesLongIsLoadedLessOften(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: pace, 20 * time.Millisecond: pace, 3 * time.Second: 9 * time.Second, time.Minute: maxEase} {
		if got := restAfter(took); got != want {
			t.Errorf("after a load of %s the next one comes %s later, want %s", took, got, want)
		}
	}
}

// The waterfall, the graph and what is stuck of one event are three pages, which share one reading of its tree. After an action it is read anew.
func TestEvent_FormsOfATreeShareOneReading(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	w.until("/spaces/a/events/add/a1", "a1 was handled")
	before := w.c.trees.reads.Load()
	for _, form := range []string{"", "?as=graph", "?show=stuck"} {
		w.want("/spaces/a/events/add/a1"+form, 200, "a1 was handled")
	}
	// One that has settled may be five seconds old: at most one reading falls into the test.
	if n := w.c.trees.reads.Load() - before; n > 1 {
		t.Errorf("the tree was read %d times for three pages", n)
	}
	w.c.hub.stale()
	before = w.c.trees.reads.Load()
	w.want("/spaces/a/events/add/a1", 200, "a1 was handled")
	if w.c.trees.reads.Load() == before {
		t.Error("after an action the tree was not read again")
	}
}

// Of 10,000 spaces, those that are stuck come first, and are counted though the workers do not name all of them; each space is on one page, a page
// has a hundred, and its size does not depend on how many there are.
func TestSpaces_TenThousand(t *testing.T) {
	w := start(t, 0, gateway.Config{})
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("tenant-%05d", i)
	}
	here := []fleet.Member{{ID: "w1", State: fleet.Here}}
	f := &fleet.Fleet{Workers: here, Coordinators: here, Partitions: make([]fleet.Partition, 2), StuckCount: 500}
	for i := range 20 {
		f.Stuck = append(f.Stuck, fleet.Stuck{Stuck: status.Stuck{Space: names[i*400+7], Cause: status.CauseRetry, Reason: "no light", Since: time.Now()}})
	}
	later := time.Now().Add(time.Hour)
	w.c.shared.spaces.value, w.c.shared.spaces.at = names, later
	w.c.shared.fleet.value, w.c.shared.fleet.at = f, later
	text := w.want("/spaces", 200, "500 spaces are stuck", "stuck 500", "well 9,500", "all 10,000", "480 more are stuck")
	if n := len(text); n > 64<<10 {
		t.Errorf("the page has %d bytes", n)
	}
	listed := map[string]int{}
	for page := range 100 {
		text := w.want("/spaces?page="+strconv.Itoa(page+1), 200)
		rows := spaceRows.FindAllStringSubmatch(text, -1)
		if len(rows) != 100 {
			t.Fatalf("page %d has %d rows", page+1, len(rows))
		}
		for i, r := range rows {
			listed[r[1]]++
			if stuck := strings.Contains(r[0], "stuck"); stuck != (page == 0 && i < 20) {
				t.Fatalf("page %d, row %d: %s", page+1, i, visible(r[0]))
			}
		}
	}
	if len(listed) != len(names) {
		t.Errorf("%d spaces are listed", len(listed))
	}
	overview := w.want("/", 200, "500 spaces are stuck", "20 spaces such as tenant-00007: no light", "480 more spaces", "9,500 spaces are well")
	if to := link(overview, "20 spaces"); to != "/spaces?state=stuck" {
		t.Errorf("the line about those that are stuck alike leads to %q", to)
	}
	w.want("/spaces?q=tenant-0040", 200, "1–10 of 10", "tenant-00407 stuck no light")
	w.want("/spaces?state=stuck", 200, "1–20 of 20")
	w.want("/spaces?page=999", 200, "9,901–10,000 of 10,000")
	w.want("/spaces?q=nothing", 200, "No space or event is called like")

	// The workers name the others when they are asked: then each is listed, found, and part of one line on the overview.
	all := slices.Clone(f.Stuck)
	for i := range 480 {
		all = append(all, fleet.Stuck{Stuck: status.Stuck{Space: names[i*20+3], Cause: status.CauseRetry, Reason: "no light", Since: time.Now()}})
	}
	w.c.shared.stuck.value, w.c.shared.stuck.at = all, later
	w.c.hub.stale()
	text = w.want("/spaces", 200, "500 spaces are stuck", "stuck 500", "well 9,500")
	if strings.Contains(text, "not named") {
		t.Error("the page says that some are not named")
	}
	w.want("/spaces?state=stuck", 200, "1–100 of 500")
	w.want("/spaces?page=5", 200, "tenant-09583 stuck no light")
	w.want("/spaces?q=tenant-00983", 200, "1 space is stuck", "tenant-00983 stuck no light")
	w.want("/", 200, "500 spaces are stuck", "500 spaces such as tenant-00007: no light")
}

var spaceRows = regexp.MustCompile(`(?s)<tr id="s-([^"]+)".*?</tr>`)

// A tree of a thousand events, of which more were not read: what has failed is shown, what is well is folded, and nothing claims to know what was not read.
func TestEvent_AThousandEvents(t *testing.T) {
	root := &history.TreeNode{EventRef: history.EventRef{Space: "shop", Stream: "order", Event: "o1"}, State: lineage.Handled}
	for i := range 333 {
		leaf := &history.TreeNode{EventRef: history.EventRef{Space: "pack", Stream: "pack", Event: fmt.Sprint("p", i)}, State: lineage.Handled, More: i % 2}
		if i%50 == 49 {
			leaf.State, leaf.Error = lineage.Failed, "no address"
		}
		pick := &history.TreeNode{EventRef: history.EventRef{Space: "item", Stream: "pick", Event: fmt.Sprint("i", i)}, State: lineage.Handled, Caused: []*history.TreeNode{leaf}}
		root.Caused = append(root.Caused, pick)
	}
	d := &eventData{Tree: &history.Tree{Root: root, Events: 667, More: true}, Root: root, q: queryFor("/spaces/shop/events/order/o1")}
	d.fill()
	failed, folded := 0, 0
	for i := range d.Rows {
		r := &d.Rows[i]
		if r.State == lineage.Failed {
			failed++
		}
		folded += r.Folded
		if r.Rest && strings.Contains(r.Text, "handled, rejected or cancelled") {
			t.Errorf("a row says %q of events of which some were not read", r.Text)
		}
	}
	if failed != 6 || len(d.Rows) > 40 || d.Cut != 0 || len(d.Rows)+folded < 667 {
		t.Errorf("%d rows, with %d failed, %d folded, and %d cut", len(d.Rows), failed, folded, d.Cut)
	}
}

// A commit of six hundred runs is a few lines, and why a node is needed through forty readers is a sentence.
func TestSpace_ALargeCommitIsAFewLines(t *testing.T) {
	e := &history.Entry{Steps: make([]history.Step, 600)}
	if got := stepsOf(e); len(got.Steps) != mostSteps || got.More != 600-mostSteps {
		t.Errorf("%d steps, %d more", len(got.Steps), got.More)
	}
	s := history.Step{Changes: make([]history.Place, 300), More: 7}
	if got := changesOf(s); len(got.Changes) != mostChanges || got.More != 307-mostChanges {
		t.Errorf("%d changes, %d more", len(got.Changes), got.More)
	}
	var chain []string
	for i := range 40 {
		chain = append(chain, fmt.Sprint("n", i))
	}
	const want = "read by n0, which is read by n1, which is read by n2, and so on: 36 readers later by n39"
	if got := needOf("read by " + strings.Join(chain, ", which is read by ")); got != want {
		t.Error(got)
	}
	if short := "read by a, which is read by b"; needOf(short) != short {
		t.Error(needOf(short))
	}
}

// A space of three thousand documents has a hundred on a page, wherever that is, and each is on one page. The page is small, and what it asks is what that of
// a space of one document does.
func TestSpace_ThreeThousandDocuments(t *testing.T) {
	p := settle.NewProgram("store")
	p.Handle("store", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		begin, _ := ev.Payload.AsInt()
		for i := range 300 {
			tx.Set(fmt.Sprintf("doc-%04d", int(begin)+i), map[string]any{"item": "lamp", "pieces": i, "where": map[string]any{"shelf": i % 7, "row": i % 13}})
		}
		return settle.Value{}, nil
	})
	p.Handle("one", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
		tx.Set("doc-0000", map[string]any{"item": "lamp"})
		return settle.Value{}, nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	calls := func(space, stream string, payload any) {
		if _, err := w.d.Client().Call(t.Context(), settle.Outgoing{Space: space, Stream: stream, ID: settle.NewID(), Payload: payload}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		calls("large", "store", i*300)
	}
	calls("small", "one", nil)
	w.until("/spaces/large", "3,000 documents")
	listed := map[string]int{}
	for page := range 30 {
		text := w.want("/spaces/large?page="+strconv.Itoa(page+1), 200)
		rows := docRows.FindAllStringSubmatch(text, -1)
		if len(rows) != maxDocs || len(text) > 160<<10 {
			t.Fatalf("page %d has %d rows in %d bytes", page+1, len(rows), len(text))
		}
		for _, r := range rows {
			listed[r[1]]++
		}
	}
	if len(listed) != 3000 {
		t.Errorf("%d documents are listed", len(listed))
	}
	w.until("/spaces/small", "doc-0000")
	asks := func(path string) uint64 {
		least := uint64(math.MaxUint64)
		for range 3 { // what the deployment does beside it only adds
			w.c.hub.stale()
			before := w.d.Bus().Conn().Stats().OutMsgs
			w.want(path, 200)
			least = min(least, w.d.Bus().Conn().Stats().OutMsgs-before)
		}
		return least
	}
	if large, small := asks("/spaces/large"), asks("/spaces/small"); large > small+10 {
		t.Errorf("the page of the large space asks %d times, that of the small one %d times", large, small)
	}
}

var docRows = regexp.MustCompile(`<tr id="d-([^"]+)"`)

// What a commit has sent is grouped: an event to three hundred spaces is one line.
func TestSpace_ManySendsAreOneLine(t *testing.T) {
	s := history.Step{}
	for i := range 300 {
		s.Sends = append(s.Sends, history.SentEvent{EventRef: history.EventRef{Space: fmt.Sprint("s", i%40), Stream: "pick"}})
	}
	s.Sends = append(s.Sends, history.SentEvent{EventRef: history.EventRef{Space: "here", Stream: "pick"}})
	for i := range 20 {
		s.Sends = append(s.Sends, history.SentEvent{EventRef: history.EventRef{Space: "here", Stream: "ring"}, Timer: fmt.Sprint("t", i)})
	}
	list := sendsOf("here", s)
	if len(list.Groups) != mostSendGroups || list.More != 10 {
		t.Errorf("%d lines, %d more", len(list.Groups), list.More)
	}
	if g := list.Groups[0]; g.Count != 300 || len(g.Spaces) != mostSendSpaces || g.More != 34 {
		t.Errorf("%+v", g)
	}
}

// mostBegin bounds what a browser gets before a page is read, in bytes before compression.
const mostBegin = 8 << 10

// mostBeforePaint bounds what a browser needs before its first paint, the beginning of the page and the style sheet, after compression: what a server sends on a
// new connection before the first acknowledgement, ten segments.
const mostBeforePaint = 10 * 1460

// compressed returns the size of a text after compression.
func compressed(text string) int {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // the level is valid
	_, _ = io.WriteString(z, text)                  // to memory
	_ = z.Close()
	return b.Len()
}

// A browser that opens a page gets the beginning while the deployment is read: it paints what is around the page, and needs no more for that than the style sheet.
// Others get an answer with the status of what was read.
func TestPage_ABrowserGetsTheBeginningWhileThePageIsRead(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	w.until("/spaces/a", "count 2")
	w.c.headStart = 0
	for _, c := range []struct {
		path, says, status string
		browser            bool
	}{
		{"/spaces/a/documents/count", "count is 2", "200 OK", true},
		{"/spaces/nowhere", "There is no space nowhere", "200 OK", true}, // it was begun before that was known
		{"/spaces/nowhere/graph", "There is no space nowhere", "404 Not Found", false},
	} {
		hold := make(chan struct{})
		w.hold.Store(&hold)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.base+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.browser {
			r.Header.Set("Sec-Fetch-Dest", "document")
		} else {
			close(hold) // or there would be no answer
		}
		answer, err := w.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		begin := ""
		if c.browser {
			for buffer := make([]byte, 1<<10); !strings.Contains(begin, "Reading the deployment"); {
				n, err := answer.Body.Read(buffer)
				if begin += string(buffer[:n]); err != nil {
					t.Fatalf("%s ends with %q: %v", c.path, begin, err)
				}
			}
			if !strings.Contains(begin, `rel="stylesheet"`) || !strings.Contains(begin, "</nav>") || strings.Contains(begin, "<main") {
				t.Errorf("%s begins with %s", c.path, begin)
			}
			if len(begin) > mostBegin {
				t.Errorf("%s begins with %d bytes", c.path, len(begin))
			}
			if n := compressed(begin) + len(w.c.looks.assets["console.css"].small); n > mostBeforePaint {
				t.Errorf("%s: %d bytes are needed before the first paint", c.path, n)
			}
			close(hold)
		}
		rest, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		text := begin + string(rest)
		if err != nil || answer.Status != c.status || !strings.Contains(visible(text), c.says) || strings.Count(text, "<main") != 1 || !strings.HasSuffix(strings.TrimSpace(text), "</html>") {
			t.Errorf("%s: %s %v\n%s", c.path, answer.Status, err, text)
		}
	}
}

// A mistake in a page ends the answer, and not the process: the server catches what a handler panics with.
func TestPage_APanicEndsTheAnswer(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("the handler does not panic")
		}
	}()
	broken := &topic{visitor: &gateway.Visitor{}} // without a caller
	(&Console{}).answerWith(t.Context(), httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), broken)
}

// A page refers to one style sheet, one script that holds nothing up, and an icon, all of its own host; together they are small, and a browser may
// keep them.
func TestAssets_AreFewAndSmall(t *testing.T) {
	w := start(t, -1, gateway.Config{})
	_, text := w.get("/")
	var files []string
	size := 0
	for _, tag := range loads.FindAllStringSubmatch(text, -1) {
		files = append(files, tag[1])
		if !strings.HasPrefix(tag[2], "/-/assets/") {
			t.Errorf("the page loads %s", tag[2])
			continue
		}
		if tag[1] == "script" && !strings.Contains(tag[0], " defer") {
			t.Errorf("%s holds the first paint up", tag[0])
		}
		answer, body := w.get(tag[2], "Accept-Encoding", "gzip")
		if answer.StatusCode != 200 || !strings.Contains(answer.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s, %s", tag[2], answer.Status, answer.Header.Get("Cache-Control"))
		}
		size += len(body)
	}
	slices.Sort(files)
	if !slices.Equal(files, []string{"link", "link", "script"}) {
		t.Errorf("the page loads %v", files)
	}
	if size == 0 || size > 24<<10 {
		t.Errorf("the style sheet, the script and the icon have %d bytes", size)
	}
}

// loads finds what a page loads.
var loads = regexp.MustCompile(`<(link|script|img|iframe|video|object)\b[^>]*(?:src|href)="([^"]*)"[^>]*>`)

// A page asks the deployment few questions: messages to servers and to workers, by a console that has asked nothing before.
func TestPages_AskLittle(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	w.until("/spaces/a", "count 2")
	asks := func(path string) (least uint64) {
		least = math.MaxUint64
		for range 3 { // what the deployment does beside it only adds
			w.c.Close()
			w.http.CloseIdleConnections()
			w.serve(gateway.Config{})
			w.c.memory.running = true // without samples, which are taken beside the pages
			before := w.d.Bus().Conn().Stats().OutMsgs
			w.want(path, 200)
			least = min(least, w.d.Bus().Conn().Stats().OutMsgs-before)
		}
		return least
	}
	for path, most := range map[string]uint64{ // any order: the pages are independent
		"/": 45, "/spaces": 45, "/spaces/a": 50, "/spaces/a/documents/count": 25, "/spaces/a/graph": 35, "/spaces/a/events/add/a1": 22, "/workflows": 14, "/fleet": 35, "/dead": 40,
	} {
		if n := asks(path); n == 0 || n > most {
			t.Errorf("%s asks %d times, and may %d times", path, n, most)
		}
	}
}
