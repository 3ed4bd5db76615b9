package attack_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/gateway"
)

// hostileRequest is a request that must be refused.
type hostileRequest struct {
	method, path string
	header       map[string]string
	body         string
}

// token is that of the principal "shop", which may send shop-*/add and read shop-*/n.
const token = "the-token-of-shop"

func hostileRequests() (all []hostileRequest) {
	bearer := map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json"}
	with := func(h map[string]string) map[string]string {
		both := map[string]string{}
		for _, m := range []map[string]string{bearer, h} {
			for k, v := range m { // any order: into a map
				both[k] = v
			}
		}
		return both
	}
	const send = "/v1/spaces/shop-1/streams/add"
	add := func(method, path string, header map[string]string, body string) {
		all = append(all, hostileRequest{method, path, header, body})
	}
	for _, authorization := range []string{ // a token that is none
		"", "Bearer", "Bearer ", "Bearer x", "Basic " + token, token, "Bearer " + token + "x", "bearer\t" + token + "0", "Bearer " + strings.Repeat("a", 4000),
		"Bearer " + hash(token), "Bearer null", "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJzaG9wIn0.",
	} {
		h := map[string]string{"Content-Type": "application/json", "Authorization": authorization}
		add(http.MethodPost, send, h, "1")
		add(http.MethodGet, "/v1/spaces/shop-1/documents/n", h, "")
		add(http.MethodGet, "/v1/spaces/shop-1/documents/n/watch", h, "")
		for _, path := range questionPaths("shop-1") {
			add(http.MethodGet, path, h, "")
		}
	}
	for _, space := range []string{"shop-1", "other", "*", "%3E", "shop-1%2F..", "=checkpoint", strings.Repeat("x", 300)} { // shop may read one document
		for _, path := range questionPaths(space) {
			add(http.MethodGet, path, bearer, "")
			add(http.MethodGet, path+"?load=true&access_token="+token, nil, "")
		}
	}
	add(http.MethodPost, send+"?access_token="+token, map[string]string{"Content-Type": "application/json"}, "1")
	add(http.MethodPost, send, map[string]string{"Content-Type": "application/json", "X-Forwarded-User": "shop", "Settle-Principal": "shop"}, "1")
	for _, path := range []string{ // what the principal may not
		"/v1/spaces/other/streams/add", "/v1/spaces/shop-1/streams/pass", "/v1/spaces/shop/streams/add", "/v1/spaces/SHOP-1/streams/add",
		"/v1/spaces/shop-1%2F..%2Fother/streams/add", "/v1/spaces/shop-1/../other/streams/add", "/v1/spaces//streams/add", "/v1/spaces/shop-1/streams/",
		"/v1/spaces/*/streams/add", "/v1/spaces/%3E/streams/add", "/v1/spaces/shop-1.x/streams/add", "/v1/spaces/shop-1/streams/add.x", "/v1/spaces/shop-1/streams/%00",
		"/v1/spaces/shop-" + strings.Repeat("x", 300) + "/streams/add", "/v1/spaces/shop-%F0%9F/streams/add", "/v1/spaces/shop-1%0D%0AX/streams/add",
		"/v1/spaces/$JS/streams/add", "/v1/spaces/=checkpoint/streams/add", "/v1/spaces/shop-1/streams/add/extra", "/v2/spaces/shop-1/streams/add",
	} {
		add(http.MethodPost, path, bearer, "1")
	}
	for _, path := range []string{
		"/v1/spaces/other/documents/n", "/v1/spaces/shop-1/documents/secret", "/v1/spaces/shop-1/documents/=checkpoint", "/v1/spaces/shop-1/documents/%3E",
		"/v1/spaces/shop-1/documents/n.x", "/v1/spaces/shop-1/documents/" + strings.Repeat("n", 500), "/v1/spaces/other/documents/n/watch", "/v1/spaces/shop-1/documents/n/watch/x",
		"/v1/spaces/shop-1/documents/n?timeout=-1s", "/v1/spaces/shop-1/documents/n?timeout=forever", "/v1/spaces/shop-1/documents/n/watch?from=-1",
		"/v1/spaces/shop-1/documents/n/watch?from=99999999999999999999", "/v1/spaces?limit=-1", "/v1/spaces?spaces=%3E", "/v1/watch", "/v1/spaces/shop-1/documents/n?path=x&limit=0", "/../../etc/passwd", "/v1/principals", "/debug/pprof/", "/v1/spaces/shop-1",
	} {
		add(http.MethodGet, path, bearer, "")
	}
	for _, body := range []string{ // what is no JSON, or too much of it
		"{", "{]", "nul", "NaN", "1 2", `{"a":1,"a":2}`, "\x00", "\xff\xfe", `"\ud800"`, strings.Repeat("[", 100_000), strings.Repeat("9", 2<<20), `{"n":1e999}`, "'x'", "<a/>",
	} {
		add(http.MethodPost, send, bearer, body)
	}
	for _, header := range []map[string]string{
		{"Content-Type": "text/plain"},
		{"Content-Type": "application/x-www-form-urlencoded"},
		{"Content-Type": "multipart/form-data"},
		{"Content-Type": ""},
		{"Origin": "https://evil.example"},
		{"Origin": "null"},
		{"Content-Encoding": "gzip"},
		{"Idempotency-Key": strings.Repeat("k", 5000)},
	} {
		add(http.MethodPost, send, with(header), "1")
	}
	for _, query := range []string{
		"?wait=forever", "?wait=receipt&timeout=1h", "?wait=receipt&timeout=x", "?after=-1s", "?after=x", "?expires=-1s", "?expires=1000000h1x", "?after=2h&expires=1h",
	} {
		add(http.MethodPost, send+query, bearer, "1")
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodTrace, http.MethodConnect, "PROPFIND", http.MethodGet} {
		add(method, send, bearer, "")
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodPost} {
		add(method, "/v1/spaces/shop-1/documents/n", bearer, "1")
	}
	return all
}

// questionPaths are those of questions about a space, and about all.
func questionPaths(space string) []string {
	of := "/v1/spaces/" + space
	return []string{of + "/why/n", of + "/lane", of + "/graph", of + "/log", of + "/documents/n/history", "/v1/top"}
}

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// A request over HTTP that is not what a principal may send or read is refused with a status of the client's, and stores nothing.
func TestAttack_HostileRequestsAreRefused(t *testing.T) {
	t.Parallel()
	d := start(t)
	ports, err := natstest.FreePorts(1)
	d.must(err)
	file := filepath.Join(t.TempDir(), "principals.json")
	d.must(os.WriteFile(file, fmt.Appendf(nil, `{"principals": [{"name": "shop", "tokens_sha256": [%q], "send": ["shop-*/add"], "read": ["shop-*/n"], "requests_per_second": 100000}]}`, hash(token)), 0o600))
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	w, err := settle.StartWorker(t.Context(), d.as(roles.Worker), settle.WorkerConfig{ID: "web", Programs: settle.Always(shop()), HTTP: gateway.Config{Addr: addr, Principals: file}})
	d.must(err)
	t.Cleanup(w.Kill)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	do := func(h hostileRequest) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), h.method, "http://"+addr, strings.NewReader(h.body))
		d.must(err)
		req.URL.Opaque = "//" + addr + h.path // as it is: nothing is cleaned
		for k, v := range h.header {          // any order: they are a set
			req.Header.Set(k, v)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s %.200s: %v", h.method, h.path, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	_, before := d.ends()
	all := hostileRequests()
	if len(all) < 100 {
		t.Fatalf("only %d requests", len(all))
	}
	for _, h := range all {
		if status := do(h); status < 400 || status > 499 {
			t.Errorf("%s %.200s %.200v %.100q: status %d", h.method, h.path, h.header, h.body, status)
		}
	}
	if _, after := d.ends(); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("something is stored: the lanes end at %v, before at %v", after, before)
	}
	good := hostileRequest{http.MethodPost, "/v1/spaces/shop-1/streams/add", map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json"}, "1"}
	if status := do(good); status != http.StatusAccepted {
		t.Errorf("a good request: status %d", status)
	}
}
