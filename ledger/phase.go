package ledger

import "github.com/settlehq/settle/model"

// Phase is how a runtime stands towards the log of a space: whether it makes transactions, and what has
// to happen before it does.
type Phase uint8

const (
	// Outside: it makes no transactions, and has not asked to.
	Outside Phase = iota
	// Asking: it has asked to, and the commit by which it enters is the next one.
	Asking
	// Entering: that commit is under way.
	Entering
	// Insisting: that commit is under way, and should it be refused, another one follows.
	Insisting
	// Serving: it makes transactions, as the owner or attached (see Role).
	Serving
	// Refused: a commit was refused. Nothing happens until the log is integrated and Resume called.
	Refused
	// Deposed: another runtime has taken the space over.
	Deposed
	// Closed: it is over, for good.
	Closed

	phaseCount
)

func (p Phase) String() string {
	return [phaseCount]string{"outside", "asking", "entering", "insisting", "serving", "refused", "deposed", "closed"}[p]
}

// step is what may change the phase.
type step uint8

const (
	stepAsk      step = iota // TakeOver or Attach is called
	stepSend                 // the commit of the entry is handed out
	stepEnter                // that commit is in the log
	stepRefuse               // the commit under way was refused
	stepResume               // what stood in the way is integrated
	stepOvertake             // a takeover of another runtime is integrated, by a runtime that is not attached
	stepClose                // Close is called

	stepCount
)

// same stands for a step that leaves the phase as it is.
const same = phaseCount

// transitions is the phase that follows on a phase by a step. It is the only place that says so.
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

// Role is as what a runtime takes part.
type Role uint8

const (
	// Owner: there is one, and a takeover deposes the one before.
	Owner Role = iota
	// Attached: any number may take part beside the owner. They depose nobody, and no takeover
	// deposes them.
	Attached
)

// standing is the phase with what belongs to it.
type standing struct {
	phase Phase
	role  Role
	// epoch is the log sequence of the entry, 0 while the runtime makes no transactions.
	epoch uint64
	// entry is the commit by which the runtime enters, while that is under way.
	entry *model.Commit
	// finishing says that no transaction is begun any more. There is no way back, whatever the phase.
	finishing bool
}

// take changes the phase by a step, and reports whether it did.
func (s *standing) take(by step) bool {
	next := transitions[s.phase][by]
	if next == same {
		return false
	}
	s.phase = next
	return true
}

// ask wants to take part in a role. A runtime that does already has nothing to ask for.
func (s *standing) ask(role Role) {
	if s.take(stepAsk) || s.phase == Asking || s.phase == Insisting {
		s.role = role
	}
}

// entered takes in that the entry is in the log at seq.
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

// overtaken takes in that another runtime has taken the space over, and reports whether that deposes
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
