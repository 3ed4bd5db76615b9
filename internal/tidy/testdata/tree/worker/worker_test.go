package worker

import (
	"testing"
	"testing/synctest"
	"time"

	_ "github.com/nats-io/nats-server/v2/server" // want "start a server through bus/"
	_ "github.com/nats-io/nats.go"
	_ "github.com/settlehq/settle/bus/membus"
)

func TestHabits(t *testing.T) {
	t.Skip("later")           // want "a green run"
	t.Skipf("on %s", "this")  // want "a green run"
	time.Sleep(time.Second)   // want "time.Sleep in a test"
	<-time.After(time.Second) // want "is a sleep"
	t.Run("sub", func(t *testing.T) {
		t.SkipNow() // want "a green run"
	})
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
	})
	select {
	case <-time.After(time.Second):
	}
}

func BenchmarkHabits(b *testing.B) {
	b.Skip() // want "a green run"
}
