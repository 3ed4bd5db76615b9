package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

const (
	// maxSocketWatches bounds the watches of one socket, maxFrame the bytes of a request on it.
	maxSocketWatches, maxFrame = 1000, 4 << 10
)

// socketRequest opens a watch, under a number that the client chooses, or closes one.
type socketRequest struct {
	Open     uint64     `json:"open,omitzero"`
	Close    uint64     `json:"close,omitzero"`
	Space    string     `json:"space,omitzero"`
	Document string     `json:"document,omitzero"`
	From     live.Known `json:"from,omitzero"`
}

// socketEvent is what a socket sends. Watch is the number of the watch, 0 for a heartbeat of the socket.
type socketEvent struct {
	Watch uint64 `json:"watch,omitzero"`
	Event string `json:"event"`
	ID    string `json:"id,omitzero"`
	Data  any    `json:"data,omitempty"`
}

// socket has any number of watches on one connection, since a browser opens few to one server.
type socket struct {
	// ctx ends with the socket: a message that is written under a context that ends breaks the connection.
	ctx     context.Context
	h       handler
	r       *http.Request
	conn    *websocket.Conn
	writing sync.Mutex

	mu      sync.Mutex
	watches map[uint64]context.CancelFunc
	running sync.WaitGroup
}

// socket answers a request for a socket. Its watches end with the socket, and it ends when the worker leaves.
func (h handler) socket(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") == "" {
		fail(w, http.StatusBadRequest, "this path is for WebSocket; a single watch is at /v1/spaces/SPACE/documents/DOCUMENT/watch")
		return
	}
	end, tooMany := callerOf(r).beginSocket()
	if tooMany != "" {
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, tooMany)
		return
	}
	defer end()
	if !h.sockets.begin() {
		failWith(w, model.ErrStopped)
		return
	}
	defer h.sockets.end()
	// The guard has checked the origin of the page.
	hands := &handshake{ResponseWriter: w}
	conn, err := websocket.Accept(hands, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		if hands.refused {
			w.Header().Del("Connection")
			w.Header().Del("Upgrade")
			fail(w, http.StatusBadRequest, err.Error())
		}
		return
	}
	defer func() { _ = conn.CloseNow() }() // best effort
	conn.SetReadLimit(maxFrame)
	ctx, cancel := context.WithCancel(r.Context())
	s := &socket{ctx: ctx, h: h, r: r, conn: conn, watches: map[uint64]context.CancelFunc{}}
	defer s.running.Wait()
	defer cancel()
	s.running.Go(func() { s.beat(cancel) }) // ends with ctx
	defer context.AfterFunc(h.waits, func() { _ = conn.Close(websocket.StatusGoingAway, "the worker leaves") })()
	s.read()
}

// handshake leaves the answer to a request that is no handshake to the gateway, whose errors are problems.
type handshake struct {
	http.ResponseWriter
	refused bool
}

func (h *handshake) WriteHeader(status int) {
	if h.refused = status >= http.StatusBadRequest; !h.refused {
		h.ResponseWriter.WriteHeader(status)
	}
}

func (h *handshake) Write(data []byte) (int, error) {
	if h.refused {
		return len(data), nil
	}
	return h.ResponseWriter.Write(data)
}

func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// read takes requests until the client leaves or sends one that is not valid.
func (s *socket) read() {
	for {
		kind, data, err := s.conn.Read(s.ctx)
		if err != nil {
			return
		}
		var q socketRequest
		if kind != websocket.MessageText {
			err = fmt.Errorf("it is not text")
		} else {
			err = json.Unmarshal(data, &q)
		}
		switch {
		case err != nil || (q.Open == 0) == (q.Close == 0):
			_ = s.conn.Close(websocket.StatusPolicyViolation, `a request is {"open":1,"space":"alice","document":"total"} or {"close":1}`)
			return
		case q.Close != 0:
			s.closeWatch(q.Close)
		default:
			s.open(q)
		}
	}
}

func (s *socket) closeWatch(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.watches[n]; cancel != nil {
		cancel()
		delete(s.watches, n)
	}
}

// open begins a watch.
func (s *socket) open(q socketRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[q.Open] != nil {
		s.problem(q.Open, badRequestProblem, fmt.Sprintf("this socket has a watch %d already", q.Open))
		return
	}
	if len(s.watches) >= maxSocketWatches {
		s.problem(q.Open, tooManyRequests, fmt.Sprintf("a socket has at most %d watches", maxSocketWatches))
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.watches[q.Open] = cancel
	s.running.Go(func() { // ends with ctx
		p, detail := s.watch(ctx, q)
		if ctx.Err() == nil { // its number is not that of another one by now
			s.closeWatch(q.Open)
			s.problem(q.Open, p, detail) // by then a client can open another one in its place
		}
	})
}

// watch sends the events of a watch until it ends, and returns why it has.
func (s *socket) watch(ctx context.Context, q socketRequest) (why problem, detail string) {
	c := callerOf(s.r).reidentify()
	if c == nil {
		return tokenNeeded, endedToken
	}
	if refused := c.mayRead(q.Space, q.Document); refused != "" {
		return forbidden, refused
	}
	end, tooMany := c.begin(true)
	if tooMany != "" {
		return tooManyRequests, tooMany
	}
	defer end()
	permitted := c.stillReads(q.Space, q.Document)
	err := s.h.source.Watch(ctx, live.Watch{Space: q.Space, Document: q.Document, From: q.From}, func(e live.Event) error {
		if err := permitted(); err != nil {
			return err
		}
		return s.event(q.Open, e)
	})
	if ctx.Err() != nil {
		return problem{}, "" // the client knows
	}
	return problemOf(err)
}

// event sends an event of a watch.
func (s *socket) event(watch uint64, e live.Event) error {
	out := socketEvent{Watch: watch, Event: string(e.Kind)}
	switch e.Kind {
	case live.Value:
		out.ID, out.Data = e.Known().String(), json.RawMessage(e.Data)
	case live.Deleted:
		out.ID = e.Known().String()
	case live.Stale:
		out.Data = e.Stale
	case live.Current, live.Rewound:
	default:
		return nil // the socket has heartbeats of its own, and a watch that moves ends with an unavailable problem
	}
	return s.send(&out)
}

// problem reports the end of a watch.
func (s *socket) problem(watch uint64, p problem, detail string) {
	_ = s.send(&socketEvent{Watch: watch, Event: "problem", Data: p.body(detail)}) // the client may be gone
}

// isIdle reports whether the socket has no watch.
func (s *socket) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches) == 0
}

// beat sends heartbeats, so that both sides notice a connection that was lost. A socket without watches ends with its token: watches report that.
func (s *socket) beat(lost func()) {
	beats := time.NewTicker(live.Heartbeat)
	defer beats.Stop()
	for {
		if s.isIdle() && callerOf(s.r).reidentify() == nil {
			_ = s.conn.Close(websocket.StatusPolicyViolation, endedToken) // the client may be gone
			lost()
			return
		}
		if s.send(&socketEvent{Event: string(live.Beating)}) != nil {
			lost()
			return
		}
		select {
		case <-beats.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// send writes an event, and limits the time that the client may take to read it.
func (s *socket) send(e *socketEvent) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	ctx, cancel := context.WithTimeout(s.ctx, s.h.writeTimeout)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, data)
}

// sockets counts those that are open: http.Server does not wait for connections that it has handed over.
type sockets struct {
	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup
}

func (s *sockets) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.open.Add(1)
	return true
}

func (s *sockets) end() { s.open.Done() }

// wait returns when all have ended, and none begins any more.
func (s *sockets) wait() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.open.Wait()
}
