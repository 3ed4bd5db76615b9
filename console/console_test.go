package console

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/audit"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// addresses are those of all pages that a deployment with space "a" has.
func addresses(c *Console) (all []string) {
	for i := range c.pages {
		path := strings.TrimSuffix(c.pages[i].pattern, "{$}")
		path = strings.NewReplacer("{space}", "a", "{document}", "count", "{stream}", "add", "{event}", "a1").Replace(path)
		if !strings.Contains(path, "{") {
			all = append(all, path)
		}
	}
	return append(all, "/spaces/a/graph?why=double", "/spaces/a/documents/double", "/spaces?q=zz", "/-/help", "/spaces/a?stream=add&doc=c")
}

// inline finds what the policy forbids: scripts and styles in a page, and handlers in attributes.
var inline = regexp.MustCompile(`(?i)<script(?:[^>]*[^r]|)>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:|https?://`)

// Each page of an empty deployment, of one with spaces, and of one without a server says what is so, with the strict policy and without anything inline.
func TestPages_SayWhatIsSo(t *testing.T) {
	w := start(t, -1, gateway.Config{})
	w.want("/", 200, "No worker runs here", "settle dev")
	w.want("/spaces", 200, "There are no spaces yet", "settle send SPACE STREAM PAYLOAD")
	w.want("/spaces/a", 404, "There is no space a")
	w.want("/spaces/a/graph", 404, "There is no space a")
	w.want("/spaces/a/documents/count", 404, "There is no space a")
	w.want("/spaces/a%20b", 404, "not allowed")
	w.want("/nowhere", 404, "There is no page /nowhere")
	if _, err := w.d.AddWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.fill("a", "b")
	w.until("/", "All is well")
	w.until("/spaces", "a well")
	w.until("/spaces/a", "count 2")
	w.want("/spaces/a", 200, "a is well", "in memory", "double", "not computed: nothing reads it", "Send add", "add a1 count – → 2")
	w.want("/spaces/a/graph", 200, "3 nodes, of which 3 dormant", "double", "quad")
	w.want("/spaces/a/graph?why=quad", 200, "Why quad", "dormant: it never ran", "no node reads it, and it is not observed")
	w.want("/spaces/a/documents/count", 200, "count is 2", "Written by handlers", "– → 2", "a1")
	w.want("/spaces/a/documents/double", 200, "double was not computed: nothing reads it", "nothing reads it, so that it does not run", "Observe")
	w.want("/spaces/a/documents/nothing", 404, "Space a has no document nothing")
	for _, path := range addresses(w.c) {
		answer, text := w.get(path)
		if answer.StatusCode != 200 && answer.StatusCode != 404 {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
		if got := answer.Header.Get("Content-Security-Policy"); got != policy {
			t.Errorf("%s has the policy %q", path, got)
		}
		if found := inline.FindString(text); found != "" {
			t.Errorf("%s has %q", path, found)
		}
		if strings.Contains(text, tokenMark) || strings.Contains(text, "ZgotmplZ") {
			t.Errorf("%s has a mark that was not replaced", path)
		}
		if len(text) > 100<<10 {
			t.Errorf("%s has %d bytes", path, len(text))
		}
	}
}

// A space that is stuck comes first, with what it waits for; an error of a handler is escaped.
func TestPages_WhatIsStuckComesFirst(t *testing.T) {
	o := worker.Options{Aside: time.Second}
	o.EventRetries = 1000
	w := start(t, 1, gateway.Config{}, o)
	w.fill("a", "b", "c")
	for _, e := range []settle.Outgoing{{Space: "c", Stream: "flaky", ID: settle.ID("f1")}, {Space: "b", Stream: "fail", ID: settle.ID("x1")}} {
		if _, err := w.d.Client().Send(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	text := w.until("/spaces/c", "and is tried again: not today")
	if !strings.Contains(visible(text), "an error that may pass has ended") {
		t.Errorf("the page does not say why: %s", visible(text))
	}
	text = w.until("/spaces/b", "never")
	if strings.Contains(text, "<b>never") {
		t.Error("the error of a handler is markup of the page")
	}
	w.until("/", "1 space is stuck")
	w.until("/", "1 event failed or refused")
	text = w.until("/spaces", "1 space is stuck")
	if strings.Index(text, `id="s-c"`) > strings.Index(text, `id="s-a"`) {
		t.Error("the stuck space is not the first")
	}
	w.until("/spaces?state=stuck", "1–1 of 1")
}

// What a space does outside is listed: what is pending or has failed first.
func TestSpace_ListsItsTasks(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	for _, key := range []string{"k1", "k2"} {
		if _, err := w.d.Client().Call(t.Context(), settle.Outgoing{Space: "a", Stream: "buy", ID: settle.ID(key), Payload: key}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("/spaces/a", "charge k1 pending")
	end := map[string]any{"key": "k1", "error": "the card is refused"}
	if _, err := w.d.Client().Call(t.Context(), settle.Outgoing{Space: "a", Stream: "charge", ID: settle.ID("end"), Payload: end}); err != nil {
		t.Fatal(err)
	}
	text := visible(w.until("/spaces/a", "the card is refused"))
	if failed, pending := strings.Index(text, "charge k1 failed"), strings.Index(text, "charge k2 pending"); failed < 0 || pending < failed {
		t.Errorf("the page lists %s", text)
	}
}

// The page about the console names each page.
func TestDocs_NameEachPage(t *testing.T) {
	text, err := os.ReadFile("../docs/console.md")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("{$}", "", "{space}", "SPACE", "{document}", "DOCUMENT", "{stream}", "STREAM", "{event}", "EVENT", "{run}", "RUN", "{program}", "PROGRAM", "{version}", "VERSION", "{job}", "JOB")
	c, err := New(Config{Bus: nobus{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, p := range c.pages {
		if !strings.Contains(string(text), "`"+names.Replace(p.pattern)+"`") {
			t.Errorf("docs/console.md does not name the page %s", p.pattern)
		}
	}
}

var href = regexp.MustCompile(`(?:href|action|data-open)="(/[^"]*)"`)

// Each link of each page leads to a page.
func TestLinks_LeadSomewhere(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a", "b")
	if _, err := w.d.Client().Send(t.Context(), settle.Outgoing{Space: "b", Stream: "fail", ID: settle.ID("x1")}); err != nil {
		t.Fatal(err)
	}
	w.until("/", "1 event failed")
	seen := map[string]bool{}
	for todo := addresses(w.c); len(todo) > 0 && len(seen) < 400; todo = todo[1:] {
		path, _, _ := strings.Cut(strings.ReplaceAll(todo[0], "&amp;", "&"), "#")
		if seen[path] {
			continue
		}
		seen[path] = true
		if strings.HasPrefix(path, "/-/do/") || path == "/-/theme" || path == "/-/logout" {
			continue
		}
		answer, text := w.get(path)
		if answer.StatusCode != 200 {
			t.Errorf("%s leads to %d", path, answer.StatusCode)
		}
		for _, m := range href.FindAllStringSubmatch(text, -1) {
			todo = append(todo, m[1])
		}
	}
	if len(seen) < 15 {
		t.Errorf("%d links were followed: %v", len(seen), seen)
	}
}

// An action needs the token of a form in the same browser and comes from no other site; it has its effect once, and is in the audit trail.
func TestActions_NeedTheFormAndAreRecorded(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	send := func() url.Values {
		return url.Values{"space": {"a"}, "stream": {"add"}, "payload": {"5"}, "id": {"once"}, "back": {"/spaces/a"}}
	}
	forged := send()
	forged.Set("token", "0123456789abcdef0123456789abcdef")
	if answer, text := w.post("/-/do/send", forged); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a wrong token: %d %s", answer.StatusCode, visible(text))
	}
	for _, headers := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		if answer, text := w.post("/-/do/send", send(), headers...); answer.StatusCode != http.StatusForbidden {
			t.Errorf("%v: %d %s", headers, answer.StatusCode, visible(text))
		}
	}
	if answer, _ := w.get("/-/do/send?space=a&stream=add"); answer.StatusCode != http.StatusNotFound {
		t.Errorf("a GET of an action: %d", answer.StatusCode)
	}
	w.until("/spaces/a", "count 2")
	for range 2 {
		answer, text := w.post("/-/do/send", send(), "Sec-Fetch-Site", "same-origin")
		if answer.StatusCode != 200 || answer.Request.URL.Path != "/spaces/a" || !strings.Contains(visible(text), "Event add once") || !strings.Contains(visible(text), "result 7") {
			t.Errorf("%d at %s: %s", answer.StatusCode, answer.Request.URL, visible(text))
		}
	}
	w.until("/spaces/a", "count 7")
	for field, value := range map[string]string{"payload": "{", "stream": "no such", "id": "a b", "space": "a b"} {
		bad := send()
		bad.Set(field, value)
		if answer, text := w.post("/-/do/send", bad); answer.StatusCode != http.StatusBadRequest || !strings.Contains(text, "Nothing was sent") {
			t.Errorf("%s %q: %d %s", field, value, answer.StatusCode, visible(text))
		}
	}
	all, err := audit.List(t.Context(), w.d.Bus())
	if err != nil || len(all) != 2 || all[0].Command != "settle send a add '5' --id once" || !strings.Contains(all[0].By, "(console)") {
		t.Errorf("the audit trail has %+v, %v", all, err)
	}
	away := send()
	away.Set("back", "https://evil.example/")
	if answer, _ := w.post("/-/do/send", away); answer.Request.URL.Host != w.g.Addr() {
		t.Errorf("the answer leads to %s", answer.Request.URL)
	}
}

// principals writes a file of principals, whose tokens are their names.
func principals(t *testing.T, entries ...string) string {
	file := filepath.Join(t.TempDir(), "principals.json")
	for i, e := range entries {
		name, rest, _ := strings.Cut(e, " ")
		sum := sha256.Sum256([]byte(name))
		entries[i] = fmt.Sprintf(`{"name":%q,"tokens_sha256":[%q]%s}`, name, hex.EncodeToString(sum[:]), rest)
	}
	if err := os.WriteFile(file, []byte(`{"principals":[`+strings.Join(entries, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A visitor without a token is asked for one; a principal sees and does what its entry allows, on every page and in every stream.
func TestRights_DecideWhatAVisitorSees(t *testing.T) {
	file := principals(t, `alice ,"read":["a/*"],"send":["a/add"]`, `bob ,"read":["*/*"]`, `carol ,"read":["b/count"]`)
	w := start(t, 1, gateway.Config{Principals: file})
	w.fill("a", "b")
	w.want("/", 401, "This console needs a token")
	w.want("/spaces/a", 401, "This console needs a token")
	if answer, _ := w.get("/spaces", "Accept", "text/event-stream"); answer.StatusCode != 401 {
		t.Errorf("a stream without a token: %d", answer.StatusCode)
	}
	as := func(name string) func(path string) (int, string) {
		return func(path string) (int, string) {
			answer, text := w.get(path, "Authorization", "Bearer "+name)
			return answer.StatusCode, visible(text)
		}
	}
	for _, c := range []struct {
		name, path string
		code       int
		has, lacks string
	}{
		{"alice", "/", 403, "may not see the whole deployment", ""},
		{"alice", "/spaces", 200, "a well", "b well"},
		{"alice", "/spaces/a", 200, "Send add", ""},
		{"alice", "/spaces/a/graph", 200, "3 nodes", ""},
		{"alice", "/spaces/b", 403, "no document of space b", ""},
		{"alice", "/spaces/b/graph", 403, "", ""},
		{"bob", "/", 200, "spaces", ""},
		{"bob", "/spaces/b", 200, "count", "Send add"},
		{"carol", "/spaces", 200, "b well", "a well"},
		{"carol", "/spaces/b", 200, "count", "Newest commits 1"},
		{"carol", "/spaces/b/documents/count", 200, "count is 2", ""},
		{"carol", "/spaces/b/documents/double", 403, "", ""},
		{"carol", "/spaces/b/graph", 403, "", ""},
		{"mallory", "/spaces", 401, "needs a token", ""},
	} {
		code, text := as(c.name)(c.path)
		if code != c.code || !strings.Contains(text, c.has) || c.lacks != "" && strings.Contains(text, c.lacks) {
			t.Errorf("%s at %s: %d %s", c.name, c.path, code, text)
		}
	}
	// The token of a form is that of the browser; the rights are those of the principal.
	form := url.Values{"space": {"a"}, "stream": {"add"}, "payload": {"1"}, "id": {"p1"}, "back": {"/spaces/a"}}
	page, text := w.get("/-/help", "Authorization", "Bearer alice")
	form.Set("token", tokenField.FindStringSubmatch(text)[1])
	_ = page
	if answer, text := w.post("/-/do/send", form, "Authorization", "Bearer bob"); answer.StatusCode != 403 {
		t.Errorf("bob sends: %d %s", answer.StatusCode, visible(text))
	}
	if answer, text := w.post("/-/do/send", form, "Authorization", "Bearer alice"); answer.StatusCode != 200 || !strings.Contains(visible(text), "result 3") {
		t.Errorf("alice sends: %d %s", answer.StatusCode, visible(text))
	}
}

// streamOf opens the stream of a page, and returns its lines.
func (w *world) streamOf(path string, headers ...string) (lines <-chan string, end func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := http.Client{Transport: &http.Transport{}}
	answer, err := client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	if answer.StatusCode != 200 || !strings.Contains(answer.Header.Get("Content-Type"), "event-stream") {
		w.Fatalf("%s: %s", path, answer.Status)
	}
	out := make(chan string, 10000)
	var reading sync.WaitGroup
	reading.Go(func() { // ends with the stream
		defer close(out)
		scan := bufio.NewScanner(answer.Body)
		scan.Buffer(nil, 1<<22)
		for scan.Scan() {
			out <- scan.Text()
		}
	})
	return out, sync.OnceFunc(func() {
		cancel()
		_ = answer.Body.Close() // only read
		reading.Wait()
		client.CloseIdleConnections()
	})
}

// untilLine reads a stream until a line has a text.
func (w *world) untilLine(lines <-chan string, text string) string {
	w.Helper()
	for {
		select {
		case line, open := <-lines:
			if !open {
				w.Fatalf("the stream has ended without %q", text)
			}
			if strings.Contains(line, text) {
				return line
			}
		case <-w.within.Done():
			w.Fatalf("the stream has no %q", text)
		}
	}
}

// A change reaches all consoles that show it; they share one topic, in which it is rendered once.
func TestStream_AChangeIsRenderedOnceForAll(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	w.until("/spaces/a", "count 2")
	var all []<-chan string
	for range 5 {
		lines, end := w.streamOf("/spaces/a")
		defer end()
		all = append(all, lines)
		w.untilLine(lines, `"id":"documents"`)
	}
	if _, err := w.d.Client().Call(t.Context(), settle.Outgoing{Space: "a", Stream: "add", ID: settle.ID("a2"), Payload: 40}); err != nil {
		t.Fatal(err)
	}
	for _, lines := range all {
		w.untilLine(lines, ">42<")
	}
	topics := 0
	w.c.hub.mu.Lock()
	for key, topic := range w.c.hub.topics {
		if strings.HasSuffix(key, "/spaces/a") {
			topics++
			topic.mu.Lock()
			if topic.streams != 5 {
				t.Errorf("%d streams share the topic", topic.streams)
			}
			topic.mu.Unlock()
		}
	}
	w.c.hub.mu.Unlock()
	if topics != 1 {
		t.Errorf("%d topics show the page", topics)
	}
}

// What a browser has already is not sent again; what it has of another process is.
func TestStream_BeginsWithWhatIsMissing(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	text := w.until("/spaces/a", "count 2")
	seen := regexp.MustCompile(`data-seen="([^"]+)"`).FindStringSubmatch(text)
	if seen == nil {
		t.Fatal("the page does not say which version it is")
	}
	w.until("/spaces/a", "count 2")
	lines, end := w.streamOf("/spaces/a?_seen=" + seen[1])
	defer end()
	for line := range lines {
		if strings.Contains(line, `"id":"documents"`) {
			t.Error("the documents are sent, and the browser has them")
		}
		if strings.HasPrefix(line, "event: status") {
			break
		}
	}
	other, endOther := w.streamOf("/spaces/a?_seen=XXXXXXXX-7")
	defer endOther()
	w.untilLine(other, `"id":"documents"`)
}

// A stream ends when the right to see its page does.
func TestStream_EndsWithTheRight(t *testing.T) {
	file := principals(t, `alice ,"read":["*/*"]`)
	w := start(t, 1, gateway.Config{Principals: file})
	w.fill("a")
	lines, end := w.streamOf("/spaces/a", "Authorization", "Bearer alice")
	defer end()
	w.untilLine(lines, `"id":"documents"`)
	if err := os.WriteFile(file, []byte(`{"principals":[]}  `), 0o600); err != nil {
		t.Fatal(err)
	}
	w.untilLine(lines, "event: gone")
}

// A slow console gets the newest version of each part that has changed, once; a part within another one that is sent is not sent beside it.
func TestVersions_ASlowConsoleSkipsToTheNewest(t *testing.T) {
	v := &version{number: 9, parts: []rendered{{id: "a", since: 3}, {id: "b", since: 9}, {id: "c", since: 9, within: "b"}, {id: "d", since: 8, within: "a"}}}
	ids := func(seen uint64) (all []string) {
		for _, p := range v.newer(seen) {
			all = append(all, p.id)
		}
		return all
	}
	for seen, want := range map[uint64][]string{0: {"a", "b"}, 3: {"b", "d"}, 8: {"b"}, 9: nil} {
		if got := ids(seen); !slices.Equal(got, want) {
			t.Errorf("after %d: %v, want %v", seen, got, want)
		}
	}
}

// Pages and streams hold no lease and load no space; the switch Observe is demand, until it is switched off.
func TestLooking_IsFree(t *testing.T) {
	w := start(t, 1, gateway.Config{}, worker.Options{Idle: 100 * time.Millisecond})
	w.fill("a")
	w.until("/spaces/a", "a is well, and asleep")
	leases := make(chan model.Lease, 1000)
	for p := range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { _ = w.d.Bus().FollowLeases(ctx, p, func(l model.Lease) { leases <- l }) }) // ends with the test
		defer following.Wait()
		defer cancel()
	}
	awake := func() (n int) {
		f, err := fleet.Look(t.Context(), w.d.Bus())
		if err != nil {
			t.Fatal(err)
		}
		for i := range f.Workers {
			if fig := f.Workers[i].Figures; fig != nil {
				n += fig.Awake
			}
		}
		return n
	}
	before := awake()
	for _, path := range addresses(w.c) {
		w.get(path)
	}
	lines, end := w.streamOf("/spaces/a")
	defer end()
	w.untilLine(lines, "asleep")
	graph, endGraph := w.streamOf("/spaces/a/graph?why=double")
	defer endGraph()
	w.untilLine(graph, "event: status")
	if n := awake(); n != before || n != 0 {
		t.Errorf("%d spaces are in memory, %d were before the visit", n, before)
	}
	select {
	case l := <-leases:
		t.Errorf("looking holds %+v", l)
	default:
	}
	if answer, text := w.post("/-/do/observe", url.Values{"space": {"a"}, "document": {"double"}, "back": {"/spaces/a"}}); answer.StatusCode != 200 || !strings.Contains(visible(text), "is observed until") {
		t.Fatalf("%d %s", answer.StatusCode, visible(text))
	}
	if l := <-leases; l.Space != "a" || l.Doc != "double" || l.TTL <= 0 {
		t.Errorf("the switch holds %+v", l)
	}
	w.until("/spaces/a/documents/double", "double is 4")
	w.post("/-/do/observe", url.Values{"space": {"a"}, "document": {"double"}, "back": {"/"}, "end": {"1"}})
	for {
		if l := <-leases; l.TTL == 0 {
			break
		}
	}
}

// Without a server, pages show what they knew, and say that it is old; a page that was never shown says that the deployment does not answer.
func TestBroken_PagesKeepTheirValues(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	w.until("/spaces/a", "count 2")
	lines, end := w.streamOf("/spaces/a")
	defer end()
	w.untilLine(lines, `"id":"documents"`)
	w.server.Shutdown()
	line := w.untilLine(lines, `"stale":"no NATS server can be reached"`)
	if !strings.Contains(line, `"age":`) {
		t.Errorf("the stream does not say how old the page is: %s", line)
	}
	_, text := w.get("/spaces/a")
	if !strings.Contains(visible(text), "count 2") || !strings.Contains(text, `id="page" class="old"`) {
		t.Errorf("the page does not keep its values: %s", visible(text))
	}
	answer, text := w.get("/spaces/b")
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Refresh") != refreshAfter || !strings.Contains(visible(text), "loaded again every 5 seconds") {
		t.Errorf("%d, again after %q: %s", answer.StatusCode, answer.Header.Get("Refresh"), visible(text))
	}
}

// A redirect after an action leads to this console only.
func TestLocal_LeadsNowhereElse(t *testing.T) {
	for given, want := range map[string]string{
		"/spaces/a?x=1#y": "/spaces/a?x=1#y", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/", "evil": "/", "": "/", "javascript:alert(1)": "/", "/a\nb": "/",
	} {
		if got := local(given); got != want {
			t.Errorf("%q leads to %q, want %q", given, got, want)
		}
	}
}
