package bus_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/internal/devserver"
)

// A client of settle dev in one directory does not become one of settle dev in another directory that has got its port.
func TestReconnect_NotToTheServerOfAnotherProject(t *testing.T) {
	t.Parallel()
	one, other := t.TempDir(), t.TempDir()
	first := natstest.StartServer(t, embedded.Config{StoreDir: one, Listen: "127.0.0.1:0", Name: devserver.NameOf(one)})
	at, err := url.Parse(first.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	log := newNotes()
	b := connect(t, bus.Config{URL: first.ClientURL(), Partitions: 1, Logger: log.logger()})
	if err := b.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.Shutdown()
	again := natstest.StartServer(t, embedded.Config{StoreDir: one, Listen: at.Host, Name: devserver.NameOf(one)})
	eventually(t, "it is connected again", b.Reachable)
	again.Shutdown()
	natstest.StartServer(t, embedded.Config{StoreDir: other, Listen: at.Host, Name: devserver.NameOf(other)})
	<-b.Streams().Stopped
	eventually(t, "the connection ends", b.Conn().IsClosed)
	if strings.Count(log.String(), "settle dev of another directory has this address now") != 1 {
		t.Errorf("nothing about it is logged:\n%s", log)
	}
}
