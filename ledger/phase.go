package ledger

import (
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// Phase is the relation of a runtime to the log of a space: whether it makes transactions, and what must
// happen before it does.
type Phase uint8

const (
	// Outside means that it makes no transactions, and has not requested to.
	Outside Phase = iota
	// Asking means that it has requested to, and the commit by which it enters is the next one.
	Asking
	// Entering means that this commit is in flight.
	Entering
	// Insisting means that this commit is in flight, and another one follows if it is refused.
	Insisting
	// Serving means that it makes transactions, as the owner or attached (see Role).
	Serving
	// Refused means that a commit was refused. The ledger pauses until the log is integrated and Resume called.
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

// transitions has the phase that follows each phase after each step. No other code changes the phase.
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

// phaseState is the phase with its data.
type phaseState struct {
	phase Phase
	role  Role
	// finishing is set when no further transactions may begin. It is never reset.
	finishing bool
	// epoch is the log sequence of the entry, 0 while the runtime makes no transactions.
	epoch uint64
	// entry is the commit by which the runtime enters, while that is in flight.
	entry *model.Commit
	// termAt is the time of the term that the next entry begins (see TermAt).
	termAt uint64
}

// TakeOver requests to become the owner: the next Append is a takeover or, if an entry is in flight, the
// first one after that is refused. It has no effect on a runtime that takes part already.
func (s *phaseState) TakeOver() { s.ask(Owner) }

// Attach requests to take part beside the owner, in the same way (docs/adr/0013). The compare-and-set on the
// head is all that coordinates such runtimes: the second one to append is refused, integrates, and repeats
// the work that is left.
func (s *phaseState) Attach() { s.ask(Attached) }

// TermAt sets the time by the server's clock, in milliseconds since 1970: the next takeover or join begins a
// term of that time (docs/adr/0035). Without it the entry begins no term, and positions that are assigned
// again after the log has lost its tail cannot be distinguished from earlier ones.
func (s *phaseState) TermAt(at uint64) { s.termAt = at }

// Close ends the ledger for good: it makes no transactions and requests nothing.
func (s *phaseState) Close() { s.take(stepClose) }

// Phase returns the relation of the runtime to the log.
func (s *phaseState) Phase() Phase { return s.phase }

// Role returns the role in which the runtime takes part, or requests to.
func (s *phaseState) Role() Role { return s.role }

// Epoch returns the log sequence of the entry, 0 while the runtime makes no transactions.
func (s *phaseState) Epoch() uint64 { return s.epoch }

// Entered reports whether the runtime takes part as the owner or attached, even between a refusal and Resume.
func (s *phaseState) Entered() bool { return s.phase == Serving || s.phase == Refused }

// Closed reports whether Close was called.
func (s *phaseState) Closed() bool { return s.phase == Closed }

// Running reports whether transactions can be made now.
func (s *phaseState) Running() bool { return s.phase == Serving }

// Begins reports whether transactions may begin now: the ledger runs, and is not finishing.
func (s *phaseState) Begins() bool { return s.phase == Serving && !s.finishing }

// Finishing reports whether Hold was called.
func (s *phaseState) Finishing() bool { return s.finishing }

// take applies a step, and reports whether it changed the phase.
func (s *phaseState) take(by step) bool {
	next := transitions[s.phase][by]
	if next == same {
		return false
	}
	s.phase = next
	return true
}

// ask requests to take part in a role.
func (s *phaseState) ask(role Role) {
	if s.take(stepAsk) || s.wants() {
		s.role = role
	}
}

// wants reports whether an entry has yet to be sent.
func (s *phaseState) wants() bool { return s.phase == Asking || s.phase == Insisting }

// enter returns the commit by which the runtime enters, which is in flight from now on.
func (s *phaseState) enter(runtime, program string, confirmed *replica.Replica) *model.Commit {
	s.take(stepSend)
	s.entry = &model.Commit{
		Version: model.CommitVersion, Space: confirmed.Space, Runtime: runtime,
		Attempt: confirmed.Seq + 1, Takeover: s.role == Owner, Join: s.role == Attached,
		Term: model.NextTerm(s.termAt, confirmed.Term), Program: program, Cursor: confirmed.Cursor,
	}
	return s.entry
}

// entered records that the entry is in the log at seq. The runtime has the role that its commit names, even
// if another one was requested since.
func (s *phaseState) entered(seq uint64) {
	s.role = Owner
	if s.entry.Join {
		s.role = Attached
	}
	s.entry = nil
	if s.take(stepEnter) {
		s.epoch = seq
	}
}

// refused records that the commit in flight was refused.
func (s *phaseState) refused() {
	s.take(stepRefuse)
	s.entry = nil
}

// overtaken records that another runtime has taken the space over, and reports whether that deposes this one.
func (s *phaseState) overtaken() bool {
	if s.role == Attached || !s.take(stepOvertake) {
		return false
	}
	s.epoch = 0
	return true
}
