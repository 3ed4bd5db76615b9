package coordinator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// knowing is a bus with given denials and rewinds.
type knowing struct {
	port.Bus
	denied  time.Time
	rewinds []model.Rewind
}

func (k *knowing) LastDenial() (time.Time, string) { return k.denied, "Publish to x" }
func (k *knowing) Rewinds() []model.Rewind         { return slices.Clone(k.rewinds) }

// A coordinator reports its observations at its endpoint: the newest rewinds first, and the operations that its
// user was denied within the last ten minutes.
func TestFigures_ReportDenialsAndRewinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		b := &knowing{Bus: w.Connect("c")}
		w.CoordinatorOn(b, coordinator.Config{ID: "c1"})
		synctest.Wait()
		asked := func() (f coordinator.Figures) {
			t.Helper()
			reply, err := w.Client.Ask(t.Context(), coordinator.Endpoint("c1"), nil)
			if err == nil {
				err = json.Unmarshal(reply, &f)
			}
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		if f := asked(); f.Denied != "" || f.Rewinds != nil || f.RewindCount != 0 {
			t.Errorf("without observations the figures are %+v", f)
		}
		b.denied = time.Now()
		for i := range 25 {
			b.rewinds = append(b.rewinds, model.Rewind{At: time.Now().UTC(), Stream: fmt.Sprint("LOG_", i), Known: 90, Found: "it ends at 80"})
		}
		time.Sleep(9 * time.Minute)
		f := asked()
		if f.Denied != "Publish to x" || f.RewindCount != 25 || len(f.Rewinds) != 20 || f.Rewinds[0] != b.rewinds[24] || f.Rewinds[19] != b.rewinds[5] {
			t.Errorf("it says %+v", f)
		}
		time.Sleep(2 * time.Minute)
		if f := asked(); f.Denied != "" {
			t.Errorf("after eleven minutes the figures have %q", f.Denied)
		}
	})
}
