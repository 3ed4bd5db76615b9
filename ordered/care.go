package ordered

import (
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

// A handler may kill its process, and nothing that a process remembers outlives it. So one
// that follows on a life without a receipt is careful until it has the first of its own: it
// notes each attempt in the log before it makes it, and one event goes into a commit. After
// lostAttempts of them the event fails (docs/adr/0016). One whose predecessor is alive has taken
// the key from it, and nobody has died: it is not careful.

// A handler that does not return ends its host, and not its process. The next host, which is told of
// it, is careful with that event, and the attempt counts.

// care says what is to be done about ev before its handler is called: it has failed, and this
// is its receipt; or the log is to answer first.
func (l *ledger) care(ev *model.Event) (lost *model.Receipt, wait bool) {
	overran := l.overran.is(ev)
	if !l.careful && !overran {
		return nil, false
	}
	if !l.settled() {
		return nil, true
	}
	if l.noted(ev) {
		return nil, false
	}
	tries := 0
	if t := l.tried(ev); t != nil {
		tries = t.Tries
	}
	if overran && !l.overran.noted {
		tries++
	}
	if tries >= lostAttempts {
		return l.giveUp(ev, tries), false
	}
	l.mark = &model.Trying{By: receipts.By(ev.Stream), Event: ev.ID, Tries: tries + 1}
	return nil, true
}

// giveUp is the receipt of an event whose handler is not called any more.
func (l *ledger) giveUp(ev *model.Event, tries int) *model.Receipt {
	err := fmt.Errorf("the handler never came back: the process ended, or it was given up, in each of %d attempts", tries)
	if l.overran.is(ev) {
		err = l.overran.error(tries)
	}
	rc := receipts.Failed(ev, err)
	rc.Attempts = tries
	return rc
}

// noted reports whether the log has a mark of the attempt at ev that is made now.
func (l *ledger) noted(ev *model.Event) bool {
	t := l.tried(ev)
	return t != nil && !t.Back && l.rep.TriedBy == l.epoch
}

// tried is what the log says of attempts at ev that may have ended with their process.
func (l *ledger) tried(ev *model.Event) *model.Trying {
	if t := l.rep.Trying; t != nil && t.Event == ev.ID && t.By == receipts.By(ev.Stream) {
		return t
	}
	return nil
}

// comeBack takes the note of an attempt at ev back that has come back without a result.
func (l *ledger) comeBack(ev *model.Event) {
	if l.noted(ev) {
		t := l.rep.Trying
		l.mark = &model.Trying{By: t.By, Event: t.Event, Tries: t.Tries - 1, Back: true}
	}
}

// attempts is how often the handler of ev was tried, 0 if once.
func (l *ledger) attempts(ev *model.Event) int {
	n := 1 + l.head.tries
	if t := l.tried(ev); t != nil && t.Tries > 0 {
		n += t.Tries - 1
	}
	if n == 1 {
		return 0
	}
	return n
}
