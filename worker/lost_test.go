package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// A power cut can truncate one stream and spare others. A message sent after that looks like an old one, or
// follows a head that is gone: the worker refuses to serve rather than drop it or wait forever.
func TestAStreamThatIsShorterThanKnownIsRefused(t *testing.T) {
	for _, c := range []struct {
		what string
		lose func(t *testing.T, b *membus.Bus)
		want string
	}{
		{"the lane", func(t *testing.T, b *membus.Bus) {
			if err := b.SavePosition(t.Context(), 0, "lane", 50); err != nil {
				t.Fatal(err)
			}
		}, "the lane ends at 1, but its events were handled up to 50"},
		{"the log", func(t *testing.T, b *membus.Bus) {
			data, err := (&model.Mark{Version: model.MarkVersion}).Encode()
			if err != nil {
				t.Fatal(err)
			}
			if err := b.SaveState(t.Context(), "a", nil, &model.StateDoc{Data: data, Seq: 50}); err != nil {
				t.Fatal(err)
			}
		}, "the log ends at 0, but is known up to 50"},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1)
				w.Send("a", "add", "e1")
				c.lose(t, w.Client)
				p := w.worker("w1")
				time.Sleep(3 * time.Second)
				if w.Log.Count(c.want) == 0 {
					t.Errorf("the worker logged %q, want %q in it", w.Log, c.want)
				}
				if head := w.Server.Head("a"); head != 0 {
					t.Errorf("the worker nevertheless appended up to %d", head)
				}
				p.Shutdown()
			})
		})
	}
}
