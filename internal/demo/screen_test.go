package demo

import (
	"bytes"
	"testing"
	"time"
)

func TestThePlainScreenTellsEveryQuarterOnce(t *testing.T) {
	var b bytes.Buffer
	s := NewScreen(&b).(*plainScreen)
	now := Snapshot{Phase: Running, Total: 400}
	s.Start(Plan{Flights: 200, Airports: 3, Workers: 2, Partitions: 1, Server: "embedded NATS"}, func() Snapshot { return now })
	close(s.ends) // from here on, the test says when to look
	s.done.Wait()
	for _, handled := range []int{0, 99, 100, 150, 399} {
		now.Handled, now.Elapsed = handled, time.Duration(handled)*time.Millisecond
		s.progress(now)
	}
	s.Note(Note{Kind: Killed, Worker: "w2", Share: 0.99})
	s.ends = make(chan struct{})
	now.Handled, now.Phase = 400, Verifying
	s.Stop()
	const want = `settle demo flights: 200 flights between 3 airports, 2 workers, 1 partition, embedded NATS
 25 %  100 of 400 departures and arrivals handled after 0.1 s
 75 %  399 of 400 departures and arrivals handled after 0.4 s
 99 %  w2 killed
100 %  400 of 400 departures and arrivals handled after 0.4 s
       reading everything back to verify it

`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &b, want)
	}
}
