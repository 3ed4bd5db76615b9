package bustest

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Relay forwards requests to the JetStream API from subjects with the prefix that it returns. answer may act
// before a request is forwarded, or answer in place of the server.
func Relay(t *testing.T, server interface{ ConnOption() nats.Option }, answer func(nc *nats.Conn, request string, m *nats.Msg) (answered bool)) (prefix string) {
	t.Helper()
	nc, err := nats.Connect("", server.ConnOption())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	prefix = "RELAY."
	_, err = nc.Subscribe(prefix+">", func(m *nats.Msg) {
		request := strings.TrimPrefix(m.Subject, prefix)
		if !answer(nc, request, m) {
			_ = nc.PublishRequest(jetstream.DefaultAPIPrefix+request, m.Reply, m.Data) // fails only at the end of the test
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return prefix
}

// Amend answers a request as the server does, with a change. It does not answer a request that fails, so that
// the client repeats it.
func Amend[A any](nc *nats.Conn, request string, m *nats.Msg, change func(*A)) bool {
	var a A
	reply, err := nc.Request(jetstream.DefaultAPIPrefix+request, m.Data, time.Minute)
	if err == nil {
		err = json.Unmarshal(reply.Data, &a)
	}
	if err != nil {
		return true
	}
	change(&a)
	if data, err := json.Marshal(a); err == nil {
		_ = m.Respond(data) // fails only at the end of the test
	}
	return true
}
