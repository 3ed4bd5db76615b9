package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/live"
)

// dial opens a socket, with headers in pairs.
func (s *site) dial(headers ...string) *websocket.Conn {
	s.Helper()
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	conn, _, err := websocket.Dial(s.Context(), "ws://"+s.g.Addr()+"/v1/watch", &websocket.DialOptions{HTTPClient: &s.http, HTTPHeader: h})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func (s *site) ask1(conn *websocket.Conn, text string) {
	s.Helper()
	if err := conn.Write(s.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

// wantNext checks the next message of a socket that is no heartbeat: it begins with these.
func (s *site) wantNext(conn *websocket.Conn, want string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 20*time.Second) // a safety net
	defer cancel()
	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			s.Fatalf("%v, want %s", err, want)
		}
		if string(data) == `{"event":"heartbeat"}` {
			continue
		}
		if !strings.HasPrefix(string(data), want) {
			s.Fatalf("%s, want %s", data, want)
		}
		return
	}
}

// A socket has any number of watches, and each goes on from the value that the client has.
func TestSocket_HasManyWatches(t *testing.T) {
	s := newSite(t, gateway.Config{})
	conn := s.dial()
	s.ask1(conn, `{"open":1,"space":"alice","document":"total","from":"16-07ee7e07b4b1"}`)
	s.source.events <- live.Event{Kind: live.Value, Revision: 17, Print: "07ee7e07b4b1", Data: []byte(`{"n":1}`)}
	s.wantNext(conn, `{"watch":1,"event":"value","id":"17-07ee7e07b4b1","data":{"n":1}}`)
	if q := s.source.asked[0]; q.Space != "alice" || q.Document != "total" || q.From.Revision != 16 {
		t.Errorf("asked: %+v", q)
	}
	for _, c := range []struct {
		event live.Event
		want  string
	}{
		{live.Event{Kind: live.Deleted, Revision: 18, Print: "07ee7e07b4b1"}, `{"watch":1,"event":"deleted","id":"18-07ee7e07b4b1"}`},
		{live.Event{Kind: live.Stale, Stale: "no light"}, `{"watch":1,"event":"stale","data":"no light"}`},
		{live.Event{Kind: live.Current}, `{"watch":1,"event":"current"}`},
		{live.Event{Kind: live.Rewound}, `{"watch":1,"event":"rewound"}`},
	} {
		s.source.events <- c.event
		s.wantNext(conn, c.want)
	}
	s.ask1(conn, `{"open":1,"space":"alice","document":"n"}`)
	s.wantNext(conn, `{"watch":1,"event":"problem","data":{"detail":"this socket has a watch 1 already"`)
	s.ask1(conn, `{"close":1}`)
	if err := <-s.source.done; !errors.Is(err, context.Canceled) {
		t.Errorf("the watch has ended with %v", err)
	}
	s.ask1(conn, `{"open":2,"space":"alice","document":"n"}`)
	s.source.events <- live.Event{Kind: live.Value, Revision: 3, Print: "07ee7e07b4b1", Data: []byte(`4`)}
	s.wantNext(conn, `{"watch":2,"event":"value"`)
}

// A watch that may not be, or that ends, is reported; the others on the socket go on.
func TestSocket_ProblemsAreThoseOfOneWatch(t *testing.T) {
	s := newSite(t, gateway.Config{Principals: principalsFile(t, `{"principals": [{"name": "lots", "tokens_sha256": ["`+sum("lots")+`"], "read": ["lot-*/total"], "watches": 1}]}`)})
	conn := s.dial("Authorization", "Bearer lots")
	s.ask1(conn, `{"open":1,"space":"alice","document":"total"}`)
	s.wantNext(conn, `{"watch":1,"event":"problem","data":{"detail":"principal lots may not read document total of space alice","status":403`)
	s.ask1(conn, `{"open":2,"space":"lot-1","document":"total"}`)
	s.source.events <- live.Event{Kind: live.Current}
	s.wantNext(conn, `{"watch":2,"event":"current"}`)
	s.ask1(conn, `{"open":3,"space":"lot-2","document":"total"}`)
	s.wantNext(conn, `{"watch":3,"event":"problem","data":{"detail":"principal lots has 1 open watches, which is its limit","status":429`)
	close(s.source.events) // the worker leaves
	s.wantNext(conn, `{"watch":2,"event":"problem"`)
	s.source.err = os.ErrClosed
	for range 50 { // the number and the place of a watch that has ended are free once that is reported
		s.ask1(conn, `{"open":4,"space":"lot-1","document":"total"}`)
		s.wantNext(conn, `{"watch":4,"event":"problem","data":{"detail":"file already closed","status":500`)
		if err := <-s.source.done; err == nil {
			t.Error("the watch has ended without an error")
		}
	}
}

// What is no request ends the socket; so do pages of other origins, before it begins.
func TestSocket_IsForThoseWhoMay(t *testing.T) {
	s := newSite(t, gateway.Config{})
	s.wantProblem(s.get("/v1/watch"), 400, "bad-request")
	s.wantProblem(s.get("/v1/watch", "Upgrade", "websocket", "Origin", "https://evil.example"), 403, "forbidden")
	locked := newSite(t, gateway.Config{Token: "secret"})
	locked.wantProblem(locked.get("/v1/watch", "Upgrade", "websocket"), 401, "token-needed")
	for _, text := range []string{`{`, `{}`, `{"open":1,"close":1}`, `{"open":"1"}`, `{"open":1,"from":"x"}`, `[]`} {
		conn := s.dial()
		s.ask1(conn, text)
		for {
			if _, _, err := conn.Read(t.Context()); err != nil {
				if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
					t.Errorf("%s: %v", text, err)
				}
				break
			}
		}
	}
}

// A worker that leaves closes its sockets, and does not end before they have.
func TestSocket_EndsWhenTheWorkerLeaves(t *testing.T) {
	s := newSite(t, gateway.Config{})
	conn := s.dial()
	s.ask1(conn, `{"open":1,"space":"alice","document":"total"}`)
	s.source.events <- live.Event{Kind: live.Current}
	s.wantNext(conn, `{"watch":1,"event":"current"}`)
	s.leave()
	for {
		_, data, err := conn.Read(t.Context())
		if err != nil {
			if websocket.CloseStatus(err) != websocket.StatusGoingAway {
				t.Errorf("the socket has ended with %v", err)
			}
			break
		}
		if !json.Valid(data) {
			t.Errorf("received %q", data)
		}
	}
	<-s.ended
	if err := <-s.source.done; err == nil {
		t.Error("the watch goes on")
	}
}

// The end of a token is a problem of the token, and not of the right: a client that has another token opens the watch again. A socket without watches
// ends with its token, too.
func TestSocket_TheEndOfATokenIsNoLackOfARight(t *testing.T) {
	file := principalsFile(t, `{"principals": [{"name": "lots", "tokens_sha256": ["`+sum("lots")+`"], "read": ["lot-*/total"]}]}`)
	s := newSite(t, gateway.Config{Principals: file})
	idle, conn := s.dial("Authorization", "Bearer lots"), s.dial("Authorization", "Bearer lots")
	s.ask1(conn, `{"open":1,"space":"lot-1","document":"total"}`)
	s.source.events <- live.Event{Kind: live.Current}
	s.wantNext(conn, `{"watch":1,"event":"current"}`)
	if err := os.WriteFile(file, []byte(`{"principals": [{"name": "other", "tokens_sha256": ["`+sum("other")+`"]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	beats := time.NewTicker(live.Heartbeat)
	defer beats.Stop()
	go func() { // ends with the watch, or the test
		for {
			select {
			case s.source.events <- live.Event{Kind: live.Beating}:
			case <-t.Context().Done():
				return
			}
			select {
			case <-beats.C:
			case <-t.Context().Done():
				return
			}
		}
	}()
	s.wantNext(conn, `{"watch":1,"event":"problem","data":{"detail":"the token is no longer valid","status":401`)
	for {
		if _, _, err := idle.Read(t.Context()); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
				t.Errorf("the socket without watches has ended with %v", err)
			}
			return
		}
	}
}

// A principal has no more sockets than watches.
func TestSocket_APrincipalHasAsManyAsWatches(t *testing.T) {
	s := newSite(t, gateway.Config{Principals: principalsFile(t, `{"principals": [{"name": "lots", "tokens_sha256": ["`+sum("lots")+`"], "read": ["lot-*/total"], "watches": 2, "requests_per_second": 100000}]}`)})
	first := s.dial("Authorization", "Bearer lots")
	s.dial("Authorization", "Bearer lots")
	s.wantProblem(s.get("/v1/watch", "Upgrade", "websocket", "Authorization", "Bearer lots"), 429, "too-many-requests")
	if err := first.Close(websocket.StatusNormalClosure, ""); err != nil {
		t.Fatal(err)
	}
	for { // until the gateway has noticed
		r := s.get("/v1/watch", "Upgrade", "websocket", "Authorization", "Bearer lots")
		if r.StatusCode != http.StatusTooManyRequests {
			return
		}
	}
}

// A socket bounds what a client can ask of it: the number of its watches, and the size of a request.
func TestSocket_BoundsWhatAClientAsks(t *testing.T) {
	s := newSite(t, gateway.Config{})
	conn := s.dial()
	go func() { // ends with the watches
		for range 1000 {
			if err := <-s.source.done; err == nil {
				t.Error("a watch has ended without an error")
			}
		}
	}()
	for n := 1; n <= 1001; n++ {
		s.ask1(conn, fmt.Sprintf(`{"open":%d,"space":"alice","document":"total"}`, n))
	}
	s.wantNext(conn, `{"watch":1001,"event":"problem","data":{"detail":"a socket has at most 1000 watches","status":429`)
	s.ask1(conn, `{"close":`+strings.Repeat(" ", 4<<10)+`1}`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a safety net: there is a heartbeat every second
	defer cancel()
	for {
		if _, _, err := conn.Read(ctx); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusMessageTooBig {
				t.Errorf("a request of more than 4 KiB: %v", err)
			}
			return
		}
	}
}
