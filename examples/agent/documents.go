package agent

import (
	"context"
	"fmt"
	"time"
)

// Deadline is how long an approval is waited for.
const Deadline = 24 * time.Hour

// What a workspace can be doing.
const (
	Idle      = "idle"      // it waits for a message
	Thinking  = "thinking"  // the model is asked what to do next
	Acting    = "acting"    // a tool is called
	Waiting   = "waiting"   // a person is to approve a call
	Cancelled = "cancelled" // somebody has said stop; a message begins anew
)

// Who says something.
const (
	Person = "person"
	Agent  = "agent"
	Tool   = "tool"
)

// Message is what somebody has said.
type Message struct {
	From string `json:"from"`
	Text string `json:"text"`
}

// Call is a call of a tool. A person must approve one that is not safe.
type Call struct {
	Tool     string `json:"tool"`
	Argument string `json:"argument"`
	Unsafe   bool   `json:"unsafe,omitzero"`
}

func (c Call) String() string { return fmt.Sprintf("%s(%q)", c.Tool, c.Argument) }

// Step is what a model wants to do next: say something, call a tool, or both. One without a
// call is an answer, and ends the turn.
type Step struct {
	Say  string `json:"say,omitzero"`
	Call Call   `json:"call,omitzero"`
}

// Work is what a workspace is doing.
type Work struct {
	State string `json:"state"`
	// Turn counts what the model was asked.
	Turn int64 `json:"turn"`
	// Call is the one that is under way or waits.
	Call Call `json:"call,omitzero"`
}

// Verdict is what a person thinks of the call of a turn.
type Verdict struct {
	Turn int64 `json:"turn"`
	OK   bool  `json:"ok"`
}

// Status is a workspace on a screen.
type Status struct {
	State string `json:"state"`
	// Ask is what a person is asked, "" for nothing.
	Ask      string `json:"ask,omitzero"`
	Messages int    `json:"messages"`
	Last     string `json:"last"`
}

// Model says what to do next. Here it is a script; it may take as long as it likes, and fail.
type Model func(ctx context.Context, said []Message) (Step, error)

// Tools are the tools by name. The key of a call is the same however often it is made, for those
// that do something which must happen once.
type Tools map[string]func(ctx context.Context, key, argument string) (string, error)
