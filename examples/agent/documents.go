package agent

import (
	"context"
	"fmt"
	"time"
)

// Deadline is the time limit for an approval.
const Deadline = 24 * time.Hour

// The states of a workspace.
const (
	Idle      = "idle"      // it waits for a message
	Thinking  = "thinking"  // the model is asked what to do next
	Acting    = "acting"    // a tool is called
	Waiting   = "waiting"   // a person is to approve a call
	Cancelled = "cancelled" // stopped by a person; the next message starts again
)

// The authors of messages.
const (
	Person = "person"
	Agent  = "agent"
	Tool   = "tool"
)

// Message is a message of the conversation.
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

// Step is the next step of a model: a message, a tool call, or both. One without a
// call is an answer, and ends the turn.
type Step struct {
	Say  string `json:"say,omitzero"`
	Call Call   `json:"call,omitzero"`
}

// Work is the state of a workspace.
type Work struct {
	State string `json:"state"`
	// Turn counts the requests to the model.
	Turn int64 `json:"turn"`
	// Call is the call that runs or waits for approval.
	Call Call `json:"call,omitzero"`
}

// Verdict is a person's decision about the call of a turn.
type Verdict struct {
	Turn int64 `json:"turn"`
	OK   bool  `json:"ok"`
}

// Status is the display of a workspace.
type Status struct {
	State string `json:"state"`
	// Ask is the question to a person, "" for none.
	Ask      string `json:"ask,omitzero"`
	Messages int    `json:"messages"`
	Last     string `json:"last"`
}

// Model returns the next step. Here it is a script; it may be slow, and fail.
type Model func(ctx context.Context, said []Message) (Step, error)

// Tools are the tools by name. The key of a call is the same in every attempt, for tools
// whose effect must happen once.
type Tools map[string]func(ctx context.Context, key, argument string) (string, error)
