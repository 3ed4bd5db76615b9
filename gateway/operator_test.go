package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/gateway"
)

// ruled is a book with one rule, which allows a single principal something.
func ruled(t *testing.T) *access.Book {
	server := membus.NewServer(membus.Config{Partitions: 1})
	c := server.Connect("rules")
	t.Cleanup(c.Close)
	if _, err := access.Change(t.Context(), c, "alice", func(to *access.Rule) { to.Send, to.Read = []string{"s/*"}, []string{"s/*"} }); err != nil {
		t.Fatal(err)
	}
	book, err := access.Open(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	return book
}

// rightsOf are pages that answer with the rights of their visitor.
func rightsOf(w http.ResponseWriter, r *http.Request) {
	v := gateway.VisitorOf(r)
	if v == nil {
		fmt.Fprint(w, "nothing")
		return
	}
	fmt.Fprintf(w, "%s as %q, sees %v, reads %v, sends %v, operates %v", v.Key(), v.SendsAs(), v.SeesDeployment() == nil, v.MayRead("s", "n") == nil, v.MaySend("s", "add") == nil, v.MayOperate("") == nil)
}

// The pages of a process that owns its server have the rights of the operator, whatever the rules are; no page of another origin makes such a request, and
// what is sent and read under /v1 obeys the rules.
func TestOperatorPages_NoOtherOriginHasTheirRights(t *testing.T) {
	const operator, open = `operator as "operator", sees true, reads true, sends true, operates true`, `open as "", sees false, reads false, sends false, operates false`
	const refused, n, add = "403", "/v1/spaces/s/documents/n", "/v1/spaces/s/streams/add"
	all := func(cfg gateway.Config, of map[string]string) {
		t.Helper()
		cfg.Addr, cfg.Access, cfg.Pages, cfg.Origins = "127.0.0.1:0", ruled(t), http.HandlerFunc(rightsOf), []string{"https://board.example.com"}
		g, err := gateway.Listen(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		h := g.Handler(empty{}, &ingress{})
		for request, want := range of { // any order: the requests are independent
			parts := strings.Fields(request)
			r := httptest.NewRequest(parts[0], "http://127.0.0.1:7333"+parts[1], strings.NewReader("1"))
			r.Header.Set("Content-Type", "application/json")
			for _, header := range parts[2:] {
				name, value, _ := strings.Cut(header, "=")
				if r.Header.Set(name, value); name == "Host" {
					r.Host = value
				}
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK {
				if fmt.Sprint(w.Code) != want {
					t.Errorf("%s: status %d, want %s", request, w.Code, want)
				}
			} else if got := w.Body.String(); got != want {
				t.Errorf("%s: %s, want %s", request, got, want)
			}
		}
	}
	all(gateway.Config{OperatorPages: true}, map[string]string{
		"GET /spaces":                            operator, // a program of this machine
		"GET /spaces Sec-Fetch-Site=none":        operator,
		"GET /spaces Sec-Fetch-Site=same-origin": operator,
		"POST /-/do/send Origin=http://127.0.0.1:7333 Sec-Fetch-Site=same-origin":                   operator,
		"GET /spaces Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document":     operator, // a person follows a link
		"POST /-/do/send Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document": refused,
		"POST /-/do/send Origin=null":                                                                       refused,
		"POST /-/do/send Origin=https://evil.example":                                                       refused,
		"GET /spaces Sec-Fetch-Site=cross-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=iframe":               refused,
		"GET /spaces Host=evil.example":                                                                     refused,
		"POST /-/do/send Host=evil.example:7333 Origin=http://evil.example:7333 Sec-Fetch-Site=same-origin": refused, // a name that resolves to this machine
		"GET /spaces Origin=http://127.0.0.1:3000":                                                          refused,
		"GET /spaces Sec-Fetch-Site=same-site":                                                              open, // of another port of this machine
		"POST /-/do/send Sec-Fetch-Site=same-site Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document":          open,
		"GET /spaces Origin=https://board.example.com Sec-Fetch-Site=cross-site":                            open,
		"POST /-/do/send Origin=https://board.example.com Sec-Fetch-Site=cross-site":                        open,
		"GET " + n:    refused,
		"POST " + add: refused,
		"GET " + n + " Sec-Fetch-Site=none Sec-Fetch-Mode=navigate Sec-Fetch-Dest=document": refused,
		"POST " + add + " Origin=http://127.0.0.1:7333 Sec-Fetch-Site=same-origin":          refused,
	})
	all(gateway.Config{}, map[string]string{"GET /spaces": open, "POST /-/do/send Origin=http://127.0.0.1:7333": open, "POST " + add: refused})
	all(gateway.Config{OperatorPages: true, Token: "secret"}, map[string]string{
		"GET /spaces":                      "nothing",
		"GET /spaces Authorization=Bearer": "nothing",
	})
}

// noting is an ingress that remembers refusals.
type noting struct {
	*ingress
	refused []string
}

func (n *noting) Denied(principal, space, stream, _ string) {
	n.refused = append(n.refused, fmt.Sprintf("%q %s/%s", principal, space, stream))
}

// An event that its sender may not send is passed on as refused, also that for one of all spaces of a pattern; a name that nothing can have is not.
func TestSend_RefusalsArePassedOn(t *testing.T) {
	g, err := gateway.Listen(gateway.Config{Addr: "127.0.0.1:0", Access: ruled(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	in := &noting{ingress: &ingress{spaces: []string{"s", "t"}}}
	h := g.Handler(empty{}, in)
	for _, path := range []string{"/v1/spaces/s/streams/add", "/v1/spaces/s/streams/a.d", "/v1/streams/add?spaces=*"} {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:7333"+path, strings.NewReader("1"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", "k")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	if want := []string{`"" s/add`, `"" s/add`, `"" t/add`}; !slices.Equal(in.refused, want) {
		t.Errorf("%q, want %q", in.refused, want)
	}
}
