package ledger

import "github.com/settlehq/settle/model"

// Phase is the relation of a runtime to the log of a space: whether it makes transactions, and what has
// to happen before it does.
type Phase uint8

const (
	// Outside means that it makes no transactions, and has not asked to.
	Outside Phase = iota
	// Asking means that it has asked to, and the commit by which it enters is the next one.
	Asking
	// Entering means that this commit is in flight.
	Entering
	// Insisting means that this commit is in flight, and another one follows if it is refused.
	Insisting
	// Serving means that it makes transactions, as the owner or attached (see Role).
	Serving
	// Refused means that a commit was refused. The ledger stands still until the log is integrated and Resume called.
	Refused
	// Deposed means that another runtime has taken the space over.
	Deposed
	// Closed is final.
	Closed

	phaseCount
)

func (p Phase) String() string {
	return [phaseCount]string{"outside", "asking", "entering", "insisting", "serving", "refused", "deposed", "closed"}[p]
}

// step is an event that may change the phase.
type step uint8

const (
	stepAsk      step = iota // TakeOver or Attach is called
	stepSend                 // the commit of the entry is handed out
	stepEnter                // that commit is in the log
	stepRefuse               // the commit in flight was refused
	stepResume               // the conflicting commits are integrated
	stepOvertake             // a takeover of another runtime is integrated, by a runtime that is not attached
	stepClose                // Close is called

	stepCount
)

// same marks a step that does not change the phase.
const same = phaseCount

// transitions has the phase that follows each phase by each step. No other code decides that.
var transitions = [phaseCount][stepCount]Phase{
	//          ask        send      enter    refuse   resume   overtake close
	Outside:   {Asking, same, same, same, same, Deposed, Closed},
	Asking:    {same, Entering, same, same, same, same, Closed},
	Entering:  {Insisting, same, Serving, Outside, same, same, Closed},
	Insisting: {same, same, Serving, Asking, same, same, Closed},
	Serving:   {same, same, same, Refused, same, Deposed, Closed},
	Refused:   {same, same, same, same, Serving, Deposed, Closed},
	Deposed:   {Asking, same, same, same, same, same, Closed},
	Closed:    {same, same, same, same, same, same, same},
}

// Role is the role in which a runtime takes part.
type Role uint8

const (
	// Owner is held by one runtime, and a takeover deposes the former owner.
	Owner Role = iota
	// Attached runtimes take part beside the owner, in any number. They depose no runtime, and no takeover
	// deposes them.
	Attached
)

// standing is the phase with its data.
type standing struct {
	phase Phase
	role  Role
	// finishing is set once no transaction is begun any more. It is never reset.
	finishing bool
	// epoch is the log sequence of the entry, 0 while the runtime makes no transactions.
	epoch uint64
	// entry is the commit by which the runtime enters, while that is in flight.
	entry *model.Commit
}

// take applies a step, and reports whether it changed the phase.
func (s *standing) take(by step) bool {
	next := transitions[s.phase][by]
	if next == same {
		return false
	}
	s.phase = next
	return true
}

// ask requests to take part in a role. It has no effect on a runtime that takes part already.
func (s *standing) ask(role Role) {
	if s.take(stepAsk) || s.phase == Asking || s.phase == Insisting {
		s.role = role
	}
}

// entered records that the entry is in the log at seq.
func (s *standing) entered(seq uint64) {
	s.role = Owner
	if s.entry.Join {
		s.role = Attached
	}
	s.entry = nil
	if s.take(stepEnter) {
		s.epoch = seq
	}
}

// overtaken records that another runtime has taken the space over, and reports whether that deposes
// this one.
func (s *standing) overtaken() bool {
	if s.role == Attached || !s.take(stepOvertake) {
		return false
	}
	s.epoch = 0
	return true
}

// makes reports whether transactions can be made now.
func (s *standing) makes() bool { return s.phase == Serving }

// begins reports whether new transactions may be begun.
func (s *standing) begins() bool { return s.phase == Serving && !s.finishing }

// wants reports whether an entry is still to be made.
func (s *standing) wants() bool { return s.phase == Asking || s.phase == Insisting }
