package ledger

import (
	"slices"
	"testing"

	"github.com/settlehq/settle/model"
)

// Sequences of steps, described in words, and the phase after them.
func TestPhases_StepsLeadToTheExpectedPhase(t *testing.T) {
	for name, story := range map[string]struct { // any order: each is independent
		steps []step
		end   Phase
	}{
		"nothing has happened": {nil, Outside},
		"it asks":              {[]step{stepAsk}, Asking},
		"it asks twice":        {[]step{stepAsk, stepAsk}, Asking},
		"it enters":            {[]step{stepAsk, stepSend, stepEnter}, Serving},
		"its entry is refused": {[]step{stepAsk, stepSend, stepRefuse}, Outside},
		"its entry is refused, and it had asked once more":    {[]step{stepAsk, stepSend, stepAsk, stepRefuse}, Asking},
		"its entry is confirmed, and it had asked once more":  {[]step{stepAsk, stepSend, stepAsk, stepEnter}, Serving},
		"it serves, and asks":                                 {[]step{stepAsk, stepSend, stepEnter, stepAsk}, Serving},
		"a commit is refused":                                 {[]step{stepAsk, stepSend, stepEnter, stepRefuse}, Refused},
		"a commit is refused, and it resumes":                 {[]step{stepAsk, stepSend, stepEnter, stepRefuse, stepResume}, Serving},
		"it is refused by a takeover":                         {[]step{stepAsk, stepSend, stepEnter, stepRefuse, stepOvertake, stepResume}, Deposed},
		"it learns of a takeover while nothing is in flight":  {[]step{stepAsk, stepSend, stepEnter, stepOvertake}, Deposed},
		"it takes over again":                                 {[]step{stepAsk, stepSend, stepEnter, stepOvertake, stepAsk, stepSend, stepEnter}, Serving},
		"it never took part, and learns of a takeover":        {[]step{stepOvertake}, Deposed},
		"its entry is refused by a takeover":                  {[]step{stepAsk, stepSend, stepRefuse, stepOvertake, stepResume}, Deposed},
		"it is closed":                                        {[]step{stepAsk, stepSend, stepEnter, stepClose}, Closed},
		"it is closed, and asks":                              {[]step{stepClose, stepAsk}, Closed},
		"it is closed while its entry is in flight":           {[]step{stepAsk, stepSend, stepClose, stepEnter}, Closed},
		"it is closed while a commit is, and that is refused": {[]step{stepAsk, stepSend, stepEnter, stepClose, stepRefuse, stepResume}, Closed},
	} {
		var s phaseState
		for _, by := range story.steps {
			s.take(by)
		}
		if s.phase != story.end {
			t.Errorf("%s: it is %s, want %s", name, s.phase, story.end)
		}
	}
}

// From every phase but the last a runtime can get to Serving, and from every phase it can be closed.
func TestPhases_OnlyTheLastIsFinal(t *testing.T) {
	for from := range Closed {
		reached := []Phase{from}
		for i := 0; i < len(reached); i++ {
			for by := range stepCount {
				if next := transitions[reached[i]][by]; next != same && !slices.Contains(reached, next) {
					reached = append(reached, next)
				}
			}
		}
		if !slices.Contains(reached, Serving) || !slices.Contains(reached, Closed) {
			t.Errorf("from %s only %v can be reached", from, reached)
		}
	}
	for by := range stepCount {
		if transitions[Closed][by] != same {
			t.Errorf("step %d leads on from closed", by)
		}
	}
}

// No takeover deposes an attached runtime, and every takeover deposes an owner.
func TestPhases_ATakeoverDeposesTheOwnerAlone(t *testing.T) {
	for _, role := range []Role{Owner, Attached} {
		s := phaseState{}
		s.ask(role)
		s.take(stepSend)
		s.entry = &model.Commit{Join: role == Attached, Takeover: role == Owner}
		s.entered(7)
		if s.role != role || s.epoch != 7 || !s.Begins() {
			t.Fatalf("role %d: %+v", role, s)
		}
		if got := s.overtaken(); got != (role == Owner) || s.Running() != (role == Attached) || (s.epoch == 0) != (role == Owner) {
			t.Errorf("role %d: deposed %v, %+v", role, got, s)
		}
	}
}

// A runtime that has requested first to attach and then to own enters in the role requested last; the role
// with which it has entered is that of its commit.
func TestPhases_TheEntryDecidesTheRole(t *testing.T) {
	s := phaseState{}
	s.ask(Attached)
	s.ask(Owner)
	if s.role != Owner || s.phase != Asking {
		t.Errorf("%+v", s)
	}
	s.take(stepSend)
	s.entry = &model.Commit{Takeover: true}
	s.ask(Attached)
	s.entered(3)
	if s.role != Owner || s.phase != Serving {
		t.Errorf("the runtime entered with a takeover: %+v", s)
	}
	if s.ask(Attached); s.role != Owner {
		t.Error("an owner that requests to attach does not stay the owner")
	}
}

// Holding does not depend on the phase: the runtime begins nothing once it serves.
func TestPhases_AFinishingLedgerBeginsNothing(t *testing.T) {
	s := phaseState{finishing: true}
	s.ask(Owner)
	s.take(stepSend)
	s.entry = &model.Commit{Takeover: true}
	if s.entered(1); !s.Running() || s.Begins() {
		t.Errorf("makes %v, begins %v", s.Running(), s.Begins())
	}
}
