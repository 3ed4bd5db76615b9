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

// care says what is to be done about ev before its handler is called: it has failed, and this
// is its receipt; or the log is to answer first.
func (l *ledger) care(ev *model.Event) (lost *model.Receipt, wait bool) {
	if !l.careful {
		return nil, false
	}
	if !l.settled() {
		return nil, true
	}
	t := l.tried(ev)
	switch {
	case t != nil && !t.Back && l.rep.TriedBy == l.epoch:
		return nil, false // this attempt is noted
	case t != nil && t.Tries >= lostAttempts:
		rc := receipts.Failed(ev, fmt.Errorf("the handler never came back: the process ended in each of %d attempts", t.Tries))
		rc.Attempts = t.Tries
		return rc, false
	}
	l.mark = &model.Trying{By: receipts.By(ev.Stream), Event: ev.ID, Tries: 1}
	if t != nil {
		l.mark.Tries = t.Tries + 1
	}
	return nil, true
}

// tried is what the log says of attempts at ev that may have ended with their process.
func (l *ledger) tried(ev *model.Event) *model.Trying {
	if t := l.rep.Trying; t != nil && t.Event == ev.ID && t.By == receipts.By(ev.Stream) {
		return t
	}
	return nil
}

// comeBack takes the note of an attempt back that has come back without a result.
func (l *ledger) comeBack() {
	if t := l.rep.Trying; l.careful && t != nil && !t.Back && l.rep.TriedBy == l.epoch {
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
