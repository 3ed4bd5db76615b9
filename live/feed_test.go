package live

import (
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/worker"
)

// A reading of the log that begins again may begin with what was before.
func TestFeed_TakesNothingThatIsOlder(t *testing.T) {
	f := &feed{subs: map[*sub]bool{}}
	for _, c := range []worker.Change{
		{Value: model.Int(0)}, // there is none so far
		{Value: model.Int(3), Revision: 3},
		{Value: model.Int(2), Revision: 2},
		{Value: model.Int(3), Revision: 3},
		{Value: model.Int(5), Revision: 5, Previous: 3},
		{Value: model.Int(4), Revision: 4},
	} {
		f.take(c)
	}
	if e := f.newest; e.Revision != 5 || string(e.Data) != "5" || e.Previous != 3 {
		t.Errorf("the newest is %+v", e)
	}
}
