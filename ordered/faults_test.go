package ordered_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/ordered"
)

// During an outage of an hour, a server logs the fault at first, then at growing intervals. After the outage,
// all events are handled.
func TestFaults_AnHourWithoutAStoreWritesFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2)
		b := w.Server.Connect("o1")
		outage := membus.NewOutage(b)
		p := w.serveOn(outage, b, ordered.Config{Name: "o1"})
		for i := range 6 {
			w.Send(fmt.Sprint("k", i), "pay", "e1", `{"cents":1}`)
		}
		for i := range 6 {
			w.EventuallyEnded(fmt.Sprint("k", i), 1)
		}
		outage.Begin()
		for i := range 6 {
			w.Send(fmt.Sprint("k", i), "pay", "e2", `{"cents":1}`)
		}
		w.Pass(time.Hour)
		written, _ := worldtest.Faults(w.Log.Lines(""))
		for fault, n := range written { // any order: each on its own
			if n > 9 {
				t.Errorf("%d lines: %s", n, fault)
			}
		}
		if len(written) < 6 {
			t.Errorf("the logger wrote:\n%s", w.Log)
		}
		outage.Over()
		for i := range 6 {
			w.EventuallyEnded(fmt.Sprint("k", i), 2)
		}
		w.stop(p)
	})
}
