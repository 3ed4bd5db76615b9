package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/examples/agent"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

// mails is what the tool "mail" has sent, by key: one mail per key.
type mails map[string]string

func (m mails) tools() agent.Tools {
	return agent.Tools{
		"look up": func(_ context.Context, _, what string) (string, error) { return what + ": 42 EUR", nil },
		"mail": func(_ context.Context, key, text string) (string, error) {
			m[key] = text
			return "sent", nil
		},
		"broken": func(context.Context, string, string) (string, error) { return "", errors.New("out of order") },
	}
}

// open returns a workspace whose model follows the last message literally.
func open(t *testing.T) (*settletest.Space, mails) {
	t.Helper()
	sent := mails{}
	return settletest.New(t, agent.Program(agent.Script, sent.tools())).Space("desk"), sent
}

func tell(s *settletest.Space, text string) { settletest.Call(s, agent.Tell, text) }

func expectState(t *testing.T, s *settletest.Space, want string) {
	t.Helper()
	if got := agent.Now.Get(s).State; got != want {
		t.Fatalf("the workspace is %s, want %s; said %v", got, want, agent.Said.Get(s))
	}
}

func TestAMessageLeadsToACallAndToAnAnswer(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	seen := settletest.Watch(s, agent.View)
	tell(s, "look up: price")
	s.Perform()
	settletest.Expect(s, agent.Said, []agent.Message{
		{From: agent.Person, Text: "look up: price"},
		{From: agent.Agent, Text: "I call look up"},
		{From: agent.Tool, Text: "price: 42 EUR"},
		{From: agent.Agent, Text: "done: price: 42 EUR"},
	})
	var states []string
	for _, v := range seen.Values() {
		states = append(states, v.State)
	}
	if want := []string{agent.Idle, agent.Thinking, agent.Acting, agent.Thinking, agent.Idle}; !slices.Equal(states, want) {
		t.Errorf("the screen saw %v, want %v", states, want)
	}
}

// TestAnApprovalMayTakeADayAndSeveralLives: nothing waits in a process.
func TestAnApprovalMayTakeADayAndSeveralLives(t *testing.T) {
	t.Parallel()
	s, sent := open(t)
	tell(s, "mail: hello")
	s.Perform()
	expectState(t, s, agent.Waiting)
	if ask := agent.View.Get(s).Ask; ask != `may I call mail("hello")?` {
		t.Errorf("the screen asks %q", ask)
	}
	for range 3 {
		s.Advance(5 * time.Hour)
		s.World().Crash()
		s.Perform()
	}
	expectState(t, s, agent.Waiting)
	settletest.Call(s, agent.Approve, agent.Verdict{Turn: 1, OK: true})
	s.World().Crash() // any worker must be able to do the approved work
	s.Perform()
	if len(sent) != 1 || sent["turn-1"] != "hello" {
		t.Errorf("sent %v", sent)
	}
	s.Advance(48 * time.Hour) // the deadline was cancelled
	expectState(t, s, agent.Idle)
}

func TestAnApprovalThatDoesNotComeIsARefusal(t *testing.T) {
	t.Parallel()
	s, sent := open(t)
	tell(s, "mail: hello")
	s.Perform()
	s.Advance(agent.Deadline)
	s.Perform()
	settletest.Expect(s, agent.View, agent.Status{State: agent.Idle, Messages: 4, Last: "done: it was not approved in time"})
	if len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
	r := settletest.Send(s, agent.Approve, agent.Verdict{Turn: 1, OK: true})
	if want := "turn 1 does not wait for an approval; the workspace is at turn 2 and idle"; r.Outcome != model.Failed || r.Error != want {
		t.Errorf("approved too late: %s, %q", r.Outcome, r.Error)
	}
}

// TestCancelCancelsWhateverIsPending: the model, a tool, an approval and its deadline.
func TestCancelCancelsWhateverIsPending(t *testing.T) {
	t.Parallel()
	for name, until := range map[string]func(s *settletest.Space){
		agent.Thinking: func(*settletest.Space) {},
		agent.Waiting:  func(s *settletest.Space) { s.Perform() },
		agent.Acting: func(s *settletest.Space) {
			s.Perform()
			settletest.Call(s, agent.Approve, agent.Verdict{Turn: 1, OK: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, sent := open(t)
			tell(s, "mail: hello")
			until(s)
			expectState(t, s, name)
			settletest.Call(s, agent.Cancel)
			if n := s.Perform(); n != 0 {
				t.Errorf("%d things were pending after all", n)
			}
			if at, some := s.World().Next(); some {
				t.Errorf("something waits until %s", at)
			}
			if r := settletest.Send(s, agent.Approve, agent.Verdict{Turn: 1, OK: true}); r.Outcome != model.Failed {
				t.Errorf("what was cancelled was approved: %s", r.Outcome)
			}
			s.Perform()
			expectState(t, s, agent.Cancelled)
			if len(sent) != 0 {
				t.Errorf("sent %v", sent)
			}
			tell(s, "look up: price") // and on it goes
			s.Perform()
			expectState(t, s, agent.Idle)
		})
	}
}

// TestAResultThatComesAfterTheCancellationChangesNothing: the tool had been called already.
func TestAResultThatComesAfterTheCancellationChangesNothing(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	tell(s, "look up: price")
	settletest.Complete(s, agent.Think, "turn-1", agent.Step{Call: agent.Call{Tool: "look up", Argument: "price"}})
	o, err := agent.Use.Completed(settle.To(s.Space()), "turn-1", "price: 42 EUR")
	if err != nil {
		t.Fatal(err)
	}
	settletest.Call(s, agent.Cancel)
	s.Call(o.Stream, o.Payload)
	expectState(t, s, agent.Cancelled)
	if said := agent.Said.Get(s); len(said) != 1 {
		t.Errorf("said %v", said)
	}
}

// TestWhatIsSaidWhileTheModelThinksIsHeard, because all of it is in one order.
func TestWhatIsSaidWhileTheModelThinksIsHeard(t *testing.T) {
	t.Parallel()
	s, sent := open(t)
	tell(s, "mail: hello")
	tell(s, "no, look up: price")
	s.Perform()
	if len(sent) != 0 {
		t.Errorf("sent %v", sent)
	}
	settletest.Expect(s, agent.View, agent.Status{State: agent.Idle, Messages: 5, Last: "done: price: 42 EUR"})
}

func TestAToolThatDoesNotWorkIsGivenUpAndTheModelIsTold(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	tell(s, "broken: now")
	for range 10 {
		s.Perform()
	}
	expectState(t, s, agent.Idle)
	if last := agent.View.Get(s).Last; !strings.HasPrefix(last, "done: it failed: ") || !strings.Contains(last, "out of order") {
		t.Errorf("the last message is %q", last)
	}
}
