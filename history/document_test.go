package history

import (
	"fmt"
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// A watcher that was away, and finds neither the document nor its deletion, receives the deletion once.
func TestFollow_AForgottenDeletionIsDelivered(t *testing.T) {
	var seen []string
	var w Watch
	there, gone := model.Int(1), model.Value{}
	for _, d := range []replica.Document{
		{Value: gone, Read: 3},          // never existed
		{Value: gone, Read: 4},          // still absent
		{Value: there, Seq: 5, Read: 5}, // created
		{Value: gone, Read: 5},          // a lagging replica
		{Value: gone, Read: 9},          // away: deleted at 7, say, and forgotten
		{Value: gone, Read: 11},
		{Value: there, Seq: 8, Read: 11}, // never an older value again
		{Value: there, Seq: 12, Read: 12},
	} {
		w.deliverNewer(&d, 0, nil, model.Trace{}, func(c Change) { seen = append(seen, fmt.Sprint(c.Value, " at ", c.Revision)) })
	}
	want := []string{"absent at 0", "1 at 5", "absent at 9", "1 at 12"}
	if !slices.Equal(seen, want) {
		t.Errorf("received %q, want %q", seen, want)
	}
}

// The same holds for a client that resumes with a revision.
func TestFollow_AResumedClientReceivesAForgottenDeletion(t *testing.T) {
	for _, c := range []struct {
		change   Change
		known    uint64
		revision uint64
		news     bool
	}{
		{Change{Read: 9}, 5, 9, true},
		{Change{Read: 5}, 5, 5, false},
		{Change{Read: 9}, 0, 0, false}, // a client without a revision receives nothing
		{Change{Value: model.Int(1), Revision: 7, Read: 9}, 5, 7, true},
		{Change{Revision: 4, Read: 9}, 5, 4, false},
	} {
		if revision, news := c.change.since(c.known); revision != c.revision || news != c.news {
			t.Errorf("%+v since %d is %d, %v", c.change, c.known, revision, news)
		}
	}
}
