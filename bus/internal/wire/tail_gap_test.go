package wire

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
)

// following returns a subscription that records what it has delivered.
func following() (f *follower, got *[]uint64) {
	got = &[]uint64{}
	f = newFollower(aLink(), &Tail{}, func(d Delivery) bool { *got = append(*got, d.Seq); return true })
	return f, got
}

// message returns the n-th delivery of a consumer, for the message with sequence 100*n.
func message(n int) *nats.Msg {
	return &nats.Msg{Subject: "s", Reply: fmt.Sprintf("$JS.ACK.stream.consumer.1.%d.%d.0.0", 100*n, n)}
}

func (f *follower) isInterrupted() bool {
	select {
	case <-f.interrupted:
		return true
	default:
		return false
	}
}

// A lost message leaves a gap in the numbers of a consumer's deliveries. Nothing after it is delivered; the
// next consumer begins after the last delivery.
func TestFollow_NothingIsDeliveredAfterAGap(t *testing.T) {
	for _, c := range []struct {
		name string
		then []*nats.Msg
	}{
		{"a delivery is missing", []*nats.Msg{message(4), message(5)}},
		{"a delivery is repeated", []*nats.Msg{message(2), message(3)}},
		{"one cannot be read", []*nats.Msg{{Subject: "s", Reply: "$JS.ACK.what.is.this"}, message(3)}},
		{"a heartbeat names a delivery that has not arrived", []*nats.Msg{
			{Header: nats.Header{"Status": {"100"}, "Nats-Last-Consumer": {"3"}}}, message(3),
		}},
	} {
		f, got := following()
		f.receive(message(1))
		f.receive(message(2))
		if f.isInterrupted() {
			t.Fatal("it is interrupted for nothing")
		}
		for _, m := range c.then {
			f.receive(m)
		}
		if want := []uint64{100, 200}; !slices.Equal(*got, want) || f.t.After != 200 {
			t.Errorf("%s: delivered %v, and the next consumer begins after %d", c.name, *got, f.t.After)
		}
		if !f.isInterrupted() {
			t.Errorf("%s: the consumer is relied on", c.name)
		}
	}
}

// A heartbeat that names the last delivery confirms that nothing is missing.
func TestFollow_AHeartbeatOfTheLastDeliveryIsNoGap(t *testing.T) {
	f, got := following()
	f.receive(message(1))
	f.receive(&nats.Msg{Header: nats.Header{"Status": {"100"}, "Nats-Last-Consumer": {"1"}}})
	f.receive(message(2))
	if f.isInterrupted() || len(*got) != 2 {
		t.Errorf("delivered %v, interrupted %v", *got, f.isInterrupted())
	}
}

// A message that could not be taken is the first one of the next consumer.
func TestFollower_AMessageThatIsNotTakenIsDeliveredAgain(t *testing.T) {
	var tried []uint64
	takes := true
	f := newFollower(aLink(), &Tail{}, func(d Delivery) bool { tried = append(tried, d.Seq); return takes })
	f.receive(message(1))
	takes = false
	f.receive(message(2))
	f.receive(message(3))
	if !f.isInterrupted() || f.t.After != 100 || !slices.Equal(tried, []uint64{100, 200}) {
		t.Errorf("interrupted %v, after %d, tried %v", f.isInterrupted(), f.t.After, tried)
	}
}

// When more or less of each message is wanted, another consumer continues behind the last message.
func TestFollower_IsReplacedBehindTheMessageThatChangedWhatIsWanted(t *testing.T) {
	var got []uint64
	f := newFollower(aLink(), &Tail{Again: func() bool { return len(got) == 2 }}, func(d Delivery) bool { got = append(got, d.Seq); return true })
	for n := range 3 {
		f.receive(message(n + 1))
	}
	if !f.isInterrupted() || !f.replaced || f.t.After != 200 || !slices.Equal(got, []uint64{100, 200}) {
		t.Errorf("interrupted %v, replaced %v, after %d, got %v", f.isInterrupted(), f.replaced, f.t.After, got)
	}
}
