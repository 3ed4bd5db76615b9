// Package worldtest runs workers and coordinators over the in-memory bus in tests. A World belongs to one test, which
// runs it in a synctest bubble, so that time is virtual. Programs, and what a test expects of them, stay with the test.
package worldtest

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// World is a server in memory, a client of it, and the log of the processes that a test starts.
type World struct {
	*testing.T
	Server *membus.Server
	Client *membus.Bus
	Log    *Journal
}

// New returns a world without processes. Its client is closed when the test ends.
func New(t *testing.T, cfg membus.Config) *World {
	server := membus.NewServer(cfg)
	w := &World{T: t, Server: server, Client: server.Connect("client"), Log: &Journal{}}
	t.Cleanup(w.Client.Close)
	return w
}

// Connect returns a connection of a process, which is cut when the test ends.
func (w *World) Connect(id string) *membus.Bus {
	b := w.Server.Connect(id)
	w.Cleanup(b.Kill)
	return b
}

// Logger returns a logger that writes to the journal.
func (w *World) Logger() *slog.Logger { return slog.New(w.Log) }

// Pass waits for d of virtual time, in which the processes go on.
func (w *World) Pass(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// Eventually ends the test unless ok returns true within two minutes of virtual time.
func (w *World) Eventually(what string, ok func() bool) {
	w.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 24_000 {
		if ok() {
			return
		}
		<-tick.C
	}
	w.Fatalf("not within two minutes: %s; the processes have logged:\n%s", what, w.Log)
}

// Send stores an event, whose payload is JSON or empty, and ends the test if the server refuses it.
func (w *World) Send(space, stream, id string, payload ...string) model.SendResult {
	w.Helper()
	m := model.Message{Space: space, Stream: stream, ID: id}
	if len(payload) > 0 {
		m.Payload = []byte(strings.Join(payload, ""))
	}
	return w.SendMessage(m)
}

// SendMessage stores an event, and ends the test if the server refuses it.
func (w *World) SendMessage(m model.Message) model.SendResult {
	w.Helper()
	type answer struct {
		r   model.SendResult
		err error
	}
	done := make(chan answer, 1)
	w.Client.Send(m, func(r model.SendResult, err error) { done <- answer{r, err} })
	a := <-done
	if a.err != nil {
		w.Fatalf("send %s to %s/%s: %v", m.ID, m.Space, m.Stream, a.err)
	}
	return a.r
}
