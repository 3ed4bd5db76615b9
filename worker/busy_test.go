package worker_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// board is a program whose events take work, and whose list has rows that add further rows, 35 of them.
func board(t *testing.T, work func()) *space.Program {
	t.Helper()
	p := space.NewProgram("board")
	add := func(tx *space.Tx) (model.Value, error) {
		for _, key := range tx.GetShallow("rows").Keys() {
			n, _ := strconv.Atoi(key)
			tx.Node(space.NodeSpec{ID: "row-" + key, Kind: space.Effect, Writes: []space.Address{{Doc: "rows"}}, Run: func(tx *space.Tx) (model.Value, error) {
				if n < 35 {
					tx.Set("rows", true, strconv.Itoa(n+1))
				}
				return model.Value{}, nil
			}})
		}
		return model.Value{}, nil
	}
	err := errors.Join(
		p.Handle("move", func(tx *space.Tx, ev *model.Event) (model.Value, error) {
			work()
			tx.Set("last", ev.ID)
			return model.Value{}, nil
		}),
		p.Handle("fan", func(tx *space.Tx, _ *model.Event) (model.Value, error) {
			tx.Set("rows", true, "0")
			return model.Value{}, nil
		}),
		p.Add(space.NodeSpec{ID: "list", Kind: space.Effect, Run: add}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A space that is at work most of the time is no warning: it may have a lot to do. Neither is a wave that takes more
// steps than a pass has, and ends.
func TestBusy_NeitherABusyBoardNorAnHonestFanOutIsAWarning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		work := func() { time.Sleep(600 * time.Millisecond) }
		p := w.process(worker.Config{ID: "w1", Programs: worldtest.Always(board(t, work))}, nil)
		for i := range 30 {
			w.Send("busy", "move", fmt.Sprint("e", i))
			w.Pass(time.Second)
		}
		w.Send("fan", "fan", "f1")
		w.Eventually("the fan-out is complete", func() bool { return strings.Count(w.Doc("fan", "rows"), "true") == 36 })
		w.Eventually("the busy space is in the log", func() bool { return w.Log.Count("a space is at work most of the time") > 0 })
		for _, line := range w.Log.Lines("") {
			if line[:4] == "WARN" {
				t.Error(line)
			}
		}
		if n := p.Figures().UnsettledCount; n != 0 {
			t.Errorf("%d spaces do not converge", n)
		}
		p.Shutdown()
	})
}
