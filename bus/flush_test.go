package bus_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/model"
)

// slowToSay is a server that answers only the second request whether it has processed everything sent before.
type slowToSay struct {
	nats.InProcessConnProvider
	armed atomic.Bool
}

func (s *slowToSay) InProcessConn() (net.Conn, error) {
	conn, err := s.InProcessConnProvider.InProcessConn()
	return &slowConn{Conn: conn, server: s}, err
}

type slowConn struct {
	net.Conn
	server *slowToSay
	held   bool // a question that has not been passed on; the connection writes one thing at a time
}

func (c *slowConn) Write(p []byte) (int, error) {
	ping := []byte("PING\r\n")
	if !bytes.Contains(p, ping) {
		return c.Conn.Write(p)
	}
	if c.server.armed.CompareAndSwap(true, false) {
		c.held = true
		return len(p), c.pass(bytes.Replace(p, ping, nil, 1))
	}
	if c.held {
		c.held = false
		return len(p), c.pass(append(ping, p...))
	}
	return c.Conn.Write(p)
}

func (c *slowConn) pass(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := c.Conn.Write(p)
	return err
}

// A slow server is no reason to give up: a worker or a coordinator that starts on a busy machine waits for
// it.
func TestServeAndAnswerPings_WaitForASlowServer(t *testing.T) {
	t.Parallel()
	server := &slowToSay{InProcessConnProvider: natstest.StartServer(t, embedded.Config{})}
	b := connect(t, bus.Config{AckTimeout: 100 * time.Millisecond, Options: []nats.Option{nats.InProcessServer(server)}})
	for what, do := range map[string]func(context.Context) error{ // any order: each on its own
		"answer pings": func(ctx context.Context) error { return b.AnswerPings(ctx, "w") },
		"serve": func(ctx context.Context) error {
			return b.Serve(ctx, model.Service{Name: "test", Endpoints: []model.Endpoint{{Name: "echo", Answer: func(q []byte) ([]byte, error) { return q, nil }}}})
		},
	} {
		server.armed.Store(true)
		if err := do(t.Context()); err != nil || server.armed.Load() {
			t.Errorf("%s: %v", what, err)
		}
	}
}
