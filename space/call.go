package space

import (
	"fmt"
	"runtime/debug"

	"github.com/settlehq/settle/model"
)

func callNode(n *node, tx *transaction) (v model.Value, err error) {
	h := tx.core.hand(tx)
	defer func() {
		h.close()
		if p := recover(); p != nil && !tx.tooDeep {
			tx.stack = debug.Stack()
			v, err = model.Value{}, fmt.Errorf("node %s panicked: %v", n.id(), p)
		}
	}()
	return n.spec.code.(nodeCode)(h)
}

func callDirect(f func(tx *Tx) error, tx *transaction) (err error) {
	h := tx.core.hand(tx)
	defer func() {
		h.close()
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return f(h)
}

func callHandler(f Handler, tx *transaction, ev *model.Event) (v model.Value, err error) {
	h := tx.core.hand(tx)
	defer func() {
		h.close()
		if p := recover(); p != nil {
			// The stack is for the host's log only: it differs from run to run, and outsiders read receipts.
			tx.stack = debug.Stack()
			err = fmt.Errorf("handler of %s panicked: %v", ev.Stream, p)
		}
	}()
	return f(h, ev)
}
