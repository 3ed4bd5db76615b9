package space

import (
	"fmt"
	"runtime/debug"

	"github.com/settlehq/settle/model"
)

func callNode(n *node, tx *Tx) (v model.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			tx.stack = debug.Stack()
			v, err = model.Value{}, fmt.Errorf("node %s panicked: %v", n.id(), p)
		}
	}()
	return n.spec.code.(nodeCode)(tx)
}

func callDirect(f func(tx *Tx) error, tx *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	return f(tx)
}

func callHandler(h Handler, tx *Tx, ev *model.Event) (v model.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			// The stack is for the host's log only: it differs from run to run, and outsiders read receipts.
			tx.stack = debug.Stack()
			err = fmt.Errorf("handler of %s panicked: %v", ev.Stream, p)
		}
	}()
	return h(tx, ev)
}
