package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const paying = `
order = cell("order", {"state": "open"})

def answered(t):
    if t.state == "done":
        order.state = "%d %s" % (t.output.status, t.output.body.number)
    else:
        order.state = t.error

call = action("call", done = answered, attempts = 3)

def place(e):
    start_task(call, e.id, http_post(e.to + "/charges", {"cents": e.cents}, headers = {"X-Shop": space()}))

handle("place", place, payload = {"id": str, "cents": int, "to": str})
`

// A file alone calls a service, once the operator has allowed the host.
func TestPerform_HTTPRequestsToAllowedHosts(t *testing.T) {
	t.Parallel()
	hosting(t)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"number":"`+r.Header.Get("Idempotency-Key")+` `+r.Header.Get("Settle-Event")+` `+r.Header.Get("X-Shop")+` `+strings.ReplaceAll(string(body), `"`, "'")+`"}`)
	}))
	defer service.Close()
	want(t, 0, "deployed", "deploy", file(t, t.TempDir(), "paying.star", paying), "--space", "*")
	perform := background(t, "perform", "call", "--http", service.URL, "--private")
	defer perform()
	eventually(t, "handled", "send", "shop", "place", `{"id":"o-1","cents":5,"to":"`+service.URL+`"}`, "--id", "e-1", "--wait")
	eventually(t, `{"state":"201 settle.shop.call.o-1 e-1 shop {'cents':5}"}`, "get", "shop", "order")
	want(t, 0, "handled", "send", "other", "place", `{"id":"o-1","cents":5,"to":"http://127.0.0.1:1"}`, "--wait")
	eventually(t, `NotAllowed: requests to http://127.0.0.1:1 are not allowed here`, "get", "other", "order")
	want(t, 2, "name a command, behind --, or hosts", "perform", "call")
	want(t, 2, "name a command, behind --, or hosts", "perform", "call", "--http", service.URL, "--", "true")
	want(t, 2, "--private is for --http", "perform", "call", "--private", "--", "true")
	want(t, 2, "this is no public address, so every request would be refused; add --private", "perform", "call", "--http", service.URL)
	want(t, 2, "begins with neither", "perform", "call", "--http", "api.example.com")
}
