package host

import (
	"testing"

	"github.com/settlehq/settle/model"
)

// withUnborn returns a partition that is handed over, with the host of a space without a log.
func withUnborn(t *testing.T) (*servedPartition, *host) {
	t.Helper()
	p, h := testPartition(t.Context(), &listBus{}), newTestHost(t, 0)
	h.publish() // it has nothing to do
	h.unborn.Store(true)
	p.hosts["s"], p.closed = h, true
	return p, h
}

// wantAsleep checks that the events of the space are for the next owner: no host has them, and they hold the position back.
func wantAsleep(t *testing.T, p *servedPartition, h *host, want laneBacklog) {
	t.Helper()
	if got, is := p.asleep["s"]; !is || got != want {
		t.Errorf("of the space, %+v is left to the next owner (%v), not %+v", got, is, want)
	}
	if p.hosts["s"] != nil || h.inbox.waiting() > 0 || h.ctx.Err() == nil {
		t.Error("the host of the space without a log goes on, or has the event")
	}
}

// What the host of a space without a log handles is stored nowhere: an event that arrives while the partition is handed
// over is left to the next owner.
func TestUnborn_AnEventDuringAHandoverIsForTheNextOwner(t *testing.T) {
	t.Parallel()
	p, h := withUnborn(t)
	if p.take(&model.Message{Space: "s", Stream: "add", ID: "e1", Seq: 7}, true) != nil {
		t.Error("a host has no room")
	}
	wantAsleep(t, p, h, laneBacklog{done: 6, last: 7})
}

// Another owner has set a space aside, whose events are not in the log yet; this worker had loaded it for a watch before
// it knew that.
func TestUnborn_ASpaceThatIsSetAsideKeepsItsEvents(t *testing.T) {
	t.Parallel()
	p, h := withUnborn(t)
	p.takeAhead(&model.Ahead{UpTo: 9, Aside: []model.Aside{{Space: "s", Done: 2, Last: 5}}}, 2)
	wantAsleep(t, p, h, laneBacklog{done: 2, last: 5})
}
