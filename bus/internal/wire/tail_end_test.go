package wire

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
)

// reading is a subscription to the last message of each subject; it records whether the existing ones are all
// delivered.
type reading struct {
	*follower
	reached bool
}

func newReading() *reading {
	r := &reading{}
	r.follower = newFollower(aLink(), &Tail{Latest: true, Reached: func() { r.reached = true }}, func(Delivery) bool { return true })
	return r
}

// get is the n-th delivery, with pending messages after it.
func (r *reading) get(n int, subject string, pending int) {
	r.receive(&nats.Msg{Subject: subject, Reply: fmt.Sprintf("$JS.ACK.stream.consumer.1.%d.%d.0.%d", n+100, n, pending)})
}

// A message that is replaced while it is read arrives after the others, and for a moment nothing is pending:
// `settle fleet`, or a worker that starts, would miss a member that was just announcing itself.
func TestFollow_WaitsForAReplacedMessage(t *testing.T) {
	for _, when := range []int{0, 1, 2, 3} { // when the answer with the number of messages arrives
		r := newReading()
		for n, subject := range []string{"a", "b", "a", "c"} {
			if n == when {
				r.hasFound(3)
			}
			if r.reached {
				t.Errorf("after %d deliveries it is through", n)
			}
			r.get(n+1, subject, 0)
		}
		if !r.reached {
			t.Error("it never is through")
		}
	}
}

// The subscription does not wait for a message that was deleted for good.
func TestFollow_DoesNotWaitLongForARemovedMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading()
		r.hasFound(3)
		r.get(1, "a", 1)
		r.get(2, "b", 0)
		time.Sleep(defaultTiming.Heartbeat - time.Nanosecond)
		if r.receive(&nats.Msg{}); r.reached {
			t.Error("it was not waited for")
		}
		time.Sleep(time.Nanosecond)
		if r.receive(&nats.Msg{}); !r.reached {
			t.Error("it is still waited for")
		}
	})
}
