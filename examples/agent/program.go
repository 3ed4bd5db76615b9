package agent

import (
	"context"
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/space"
)

// The names of a workspace.
var (
	Said = settle.NewCell[[]Message]("said")
	Now  = settle.NewCell[Work]("work").Or(Work{State: Idle})

	Think = settle.NewAction[[]Message, Step]("think") // by the model
	Use   = settle.NewAction[Call, string]("use")      // a tool

	Tell    = settle.NewStream[string]("tell")
	Approve = settle.NewStream[Verdict]("approve")
	Cancel  = settle.NewTrigger("cancel")
	expire  = settle.NewStream[Verdict]("expire")

	View = settle.NewDerived[Status]("status")
)

// Program returns the program of a workspace.
func Program(model Model, tools Tools) *settle.Program {
	p := settle.NewProgram("agent")
	converse(p)
	act(p)
	Think.Perform(p, func(ctx context.Context, _ string, said []Message) (Step, error) { return model(ctx, said) }, settle.Attempts(5))
	Use.Perform(p, func(ctx context.Context, key string, c Call) (string, error) {
		tool, ok := tools[c.Tool]
		if !ok {
			return "", settle.Permanent(fmt.Errorf("there is no tool %q", c.Tool))
		}
		return tool(ctx, key, c.Argument)
	}, settle.Attempts(5))
	View.Compute(p, func(v *settle.View) (Status, error) {
		w, said := Now.Get(v), Said.Get(v)
		s := Status{State: w.State, Messages: len(said)}
		if w.State == Waiting {
			s.Ask = "may I call " + w.Call.String() + "?"
		}
		if len(said) > 0 {
			s.Last = said[len(said)-1].Text
		}
		return s, nil
	})
	return p
}

// converse registers messages, and the answers of the model.
func converse(p *settle.Program) {
	Tell.Handle(p, func(tx *settle.Tx, text string) error {
		say(tx, Person, text)
		if s := Now.Get(tx).State; s == Idle || s == Cancelled {
			think(tx)
		}
		return nil
	})
	Think.Done(p, func(tx *settle.Tx, t settle.Task[[]Message, Step]) error {
		w := Now.Get(tx)
		switch {
		case w.State != Thinking || t.Key != key(w.Turn): // it was cancelled meanwhile
		case t.State == space.TaskFailed:
			say(tx, Agent, "I cannot think: "+t.Err.Error())
			to(tx, Idle, Call{})
		case len(Said.Get(tx)) > len(t.In): // a further message has arrived meanwhile
			think(tx)
		default:
			follow(tx, t.Out)
		}
		return nil
	})
}

// follow carries out a step of the model.
func follow(tx *settle.Tx, s Step) {
	if s.Say != "" {
		say(tx, Agent, s.Say)
	}
	switch {
	case s.Call.Tool == "":
		to(tx, Idle, Call{})
	case s.Call.Unsafe:
		to(tx, Waiting, s.Call)
		expire.SetTimer(tx, "approval", tx.Now().Add(Deadline), Verdict{Turn: Now.Get(tx).Turn})
	default:
		use(tx, s.Call)
	}
}

// act registers approvals, tools, and their ends.
func act(p *settle.Program) {
	Approve.Handle(p, func(tx *settle.Tx, v Verdict) error {
		w := Now.Get(tx)
		if w.State != Waiting || w.Turn != v.Turn {
			return fmt.Errorf("turn %d does not wait for an approval; the workspace is at turn %d and %s", v.Turn, w.Turn, w.State)
		}
		tx.CancelTimer("approval")
		if v.OK {
			use(tx, w.Call)
		} else {
			answer(tx, "not approved")
		}
		return nil
	})
	expire.Handle(p, func(tx *settle.Tx, _ Verdict) error {
		answer(tx, "it was not approved in time")
		return nil
	})
	Use.Done(p, func(tx *settle.Tx, t settle.Task[Call, string]) error {
		w := Now.Get(tx)
		switch {
		case w.State != Acting || t.Key != key(w.Turn): // it was cancelled meanwhile
		case t.State == space.TaskFailed:
			answer(tx, "it failed: "+t.Err.Error())
		default:
			answer(tx, t.Out)
		}
		return nil
	})
	Cancel.Handle(p, func(tx *settle.Tx) error {
		turn := key(Now.Get(tx).Turn)
		Think.Cancel(tx, turn)
		Use.Cancel(tx, turn)
		tx.CancelTimer("approval")
		to(tx, Cancelled, Call{})
		return nil
	})
}

// answer records the result of a call, and asks the model for the next step.
func answer(tx *settle.Tx, text string) {
	say(tx, Tool, text)
	think(tx)
}

func think(tx *settle.Tx) {
	turn := Now.Get(tx).Turn + 1
	Now.Set(tx, Work{State: Thinking, Turn: turn})
	Think.Start(tx, key(turn), Said.Get(tx))
}

func use(tx *settle.Tx, c Call) {
	to(tx, Acting, c)
	Use.Start(tx, key(Now.Get(tx).Turn), c)
}

func say(tx *settle.Tx, from, text string) {
	Said.Update(tx, func(said *[]Message) { *said = append(*said, Message{from, text}) })
}

func to(tx *settle.Tx, state string, c Call) {
	Now.Update(tx, func(w *Work) { w.State, w.Call = state, c })
}

// key returns the task key of a turn.
func key(turn int64) string { return fmt.Sprintf("turn-%d", turn) }
