package settle_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/gateway"
)

// posts starts a deployment that takes events over HTTP, and returns a function that sends one and returns the answer.
func posts(t *testing.T, web gateway.Config) func(path, token, key, body string) string {
	t.Helper()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	web.Addr = fmt.Sprint("127.0.0.1:", ports[0])
	p := counter().Handle("by", func(_ *settle.Tx, ev *settle.Event) (settle.Value, error) { return settle.ValueOf(ev.By()) }).
		Handle("echo", func(_ *settle.Tx, ev *settle.Event) (settle.Value, error) { return ev.Payload, nil })
	typed.Handle(p, func(*settle.Tx, bid) error { return nil })
	settle.NewStream[int]("inner").Internal().Handle(p, func(*settle.Tx, int) error { return nil })
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: func(space string) *settle.Program {
			if strings.HasPrefix(space, "unprogrammed") {
				return nil
			}
			return p
		},
		HTTP: web, Server: embedded.Config{StoreDir: t.TempDir()}, Bus: bus.Config{Partitions: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return func(path, token, key, body string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+web.Addr+strings.Replace("/v1/spaces/"+path, "/spaces/../", "/", 1), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		if key == "GET" { // no event
			r.Method, r.Body = http.MethodGet, nil
		}
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(a.StatusCode, " ", strings.TrimSpace(string(text)))
	}
}

var typed = settle.NewStream[bid]("bid")

// bid is a payload that checks itself.
type bid struct {
	Cents int `json:"cents"`
}

func (b bid) Check() error {
	switch {
	case b.Cents == 13:
		panic("superstition")
	case b.Cents <= 0:
		return errors.New("a bid is positive")
	}
	return nil
}

// An event over HTTP takes effect once, however often it is sent, and what is wrong is said before it is stored.
func TestIngress_AnEventTakesEffectOnce(t *testing.T) {
	post := posts(t, gateway.Config{})
	for try := range 3 {
		if got, want := post("s/streams/add?wait=receipt&timeout=1m", "", "order-17", ""), fmt.Sprintf(`200 {"duplicate":%v,"event":"order-17","outcome":"handled","result":1}`, try > 0); got != want {
			t.Errorf("try %d: %s, want %s", try, got, want)
		}
	}
	hashed := post("s/streams/add", "", "evt_1.2/3", "1")
	if again := post("s/streams/add", "", "evt_1.2/3", "1"); !strings.HasPrefix(hashed, `202 {"duplicate":false,"event":"-key-`) || again != strings.Replace(hashed, "false", "true", 1) {
		t.Errorf("a key with other characters: %s, and again: %s", hashed, again)
	}
	for _, path := range []string{"s/streams/add", "s/streams/add?wait=receipt"} {
		if got := post(path, "", "order-17", `{"other":1}`); !strings.HasPrefix(got, `422 {"detail":"event order-17 to s/add: an event of this id was sent before, with another payload`) || !strings.Contains(got, "#key-reused") {
			t.Errorf("another payload under a used key: %s", got)
		}
	}
	if one, two := post("s/streams/add", "", "", "1"), post("s/streams/add", "", "", "1"); one == two || !strings.HasPrefix(one, `202 {"duplicate":false,"event":"at-`) {
		t.Errorf("without a key: %s, %s", one, two)
	}
	for _, c := range []struct{ path, key, says string }{
		{"s/streams/nosuch", "e1", "404 "}, {"s%20t/streams/add", "e1", "400 "}, {"s/streams/add?after=48h&expires=1h", "e1", "400 "}, {"s/streams/add", "at-000000000001-x", "410 "},
	} {
		if got := post(c.path, "", c.key, "1"); !strings.HasPrefix(got, c.says) {
			t.Errorf("%s: %s, want %s", c.path, got, c.says)
		}
	}
	for body, says := range map[string]string{ // any order: each on its own
		`{"cents": "x"}`: "cents", `7`: "object", `{"cents": -1}`: "a bid is positive",
		`{"cents": 5, "tip": 1}`: `payload of bid: /tip: there is no such field; there is cents`, `{"cnets": 5}`: `/cnets: there is no such field`, `{}`: "/cents: the field is missing",
		`null`: "null is here", `{"cents": null}`: "/cents: null is here; an integer is wanted", "": "nothing is here; an object is wanted",
	} {
		if got := post("s/streams/bid", "", "", body); !strings.HasPrefix(got, "400 ") || !strings.Contains(got, says) || !strings.Contains(got, "nothing was stored") {
			t.Errorf("payload %s: %s, want one that says %q", body, got, says)
		}
	}
	if got := post("s/streams/bid?wait=receipt&timeout=1m", "", "", `{"cents": 5}`); !strings.Contains(got, `"handled"`) {
		t.Errorf("a payload as the handler wants it: %s", got)
	}
	if got := post("s/streams/bid?wait=receipt&timeout=1m", "", "", `{"cents": 13}`); !strings.Contains(got, `"failed"`) {
		t.Errorf("a payload with which the check panics is for the handler to refuse: %s", got)
	}
	if got := post("s/streams/add?wait=receipt&timeout=1m", "", "last", "0"); !strings.Contains(got, `"result":5`) {
		t.Errorf("at the end: %s", got)
	}
	if got := post("s/streams/echo?wait=receipt&timeout=1m", "", "", `{"n": [1, "x"]}`); !strings.Contains(got, `"result":{"n":[1,"x"]}`) {
		t.Errorf("the payload comes back as %s", got)
	}
}

// A handler sees the principal of the token, and two principals that choose one key have an event each.
func TestIngress_ThePrincipalComesFromTheToken(t *testing.T) {
	entry := func(name string) string {
		sum := sha256.Sum256([]byte("token of " + name))
		return fmt.Sprintf(`{"name": %q, "tokens_sha256": [%q], "send": ["s/by"]}`, name, hex.EncodeToString(sum[:]))
	}
	file := filepath.Join(t.TempDir(), "principals.json")
	if err := os.WriteFile(file, []byte(`{"principals": [`+entry("alice")+`, `+entry("bob")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	post := posts(t, gateway.Config{Principals: file})
	for _, name := range []string{"alice", "bob", "alice"} {
		if got := post("s/streams/by?wait=receipt&timeout=1m", "token of "+name, "order-17", ""); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, fmt.Sprintf(`"result":%q`, name)) {
			t.Fatalf("%s: %s", name, got)
		}
	}
	if got := post("s/streams/add", "token of alice", "order-17", "1"); !strings.HasPrefix(got, "403 ") {
		t.Errorf("another stream: %s", got)
	}
}

// The documents of a space are listed by prefix, in order and in pages.
func TestIngress_ListsDocuments(t *testing.T) {
	post := posts(t, gateway.Config{})
	if got := post("s/streams/add?wait=receipt&timeout=1m", "", "e1", "1"); !strings.Contains(got, "handled") {
		t.Fatal(got)
	}
	for query, want := range map[string]string{ // any order: each on its own
		"": `"document":"n","revision":`, "?prefix=n&limit=1": `"value":1}]}`, "?prefix=x": `200 {"documents":[]}`, "?after=n&order=asc": `200 {"documents":[]}`,
		"?limit=0": "400 ", "?order=up": "400 ", "?colour=red": "400 ", "?prefix=a%20b": "400 ",
	} {
		if got := post("s/documents"+query, "", "GET", ""); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if got := post("nosuch/documents", "", "GET", ""); got != `200 {"documents":[]}` {
		t.Errorf("a space that does not exist: %s", got)
	}
}

// An event over HTTP is stored for every space of a pattern, once under its key.
func TestIngress_AnEventForAllSpacesOfAPattern(t *testing.T) {
	post := posts(t, gateway.Config{})
	for _, space := range []string{"lot-1", "lot-2", "other"} {
		if got := post(space+"/streams/add?wait=receipt&timeout=1m", "", "e1", "1"); !strings.Contains(got, "handled") {
			t.Fatal(got)
		}
	}
	for _, c := range []struct{ query, key, body, want string }{
		{"add?spaces=lot-*", "m-1", "5", `200 {"event":"m-1","sent":2,"before":0}`},
		{"add?spaces=lot-*", "m-1", "5", `200 {"event":"m-1","sent":2,"before":2}`},
		{"add?spaces=lot-*&from=lot-1", "m-1", "5", `200 {"event":"m-1","sent":1,"before":1}`},
		{"add?spaces=lot-*", "m-1", "6", `"refused":["lot-1: event m-1`},
		{"nosuch?spaces=*", "m-2", "5", `"refused":["lot-1: the program of space lot-1 has no handler`},
		{"add?spaces=lot-*", "", "5", "400 "},
		{"add?spaces=lot", "m-3", "5", "400 "},
		{"add", "m-3", "5", "400 "},
		{"add?spaces=*&wait=receipt", "m-3", "5", "400 "},
	} {
		if got := post("../streams/"+c.query, "", c.key, c.body); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
	if got := post("lot-2/streams/add?wait=receipt&timeout=1m", "", "last", "0"); !strings.Contains(got, `"result":3`) {
		t.Errorf("at the end: %s", got)
	}
}
