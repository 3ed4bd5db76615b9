package agent

import (
	"context"
	"strings"
)

// Script is a model that does what it is told: "look up: price" is a call of the tool "look up",
// and what a tool has said is the answer. Mails are not safe.
func Script(_ context.Context, said []Message) (Step, error) {
	last := said[len(said)-1]
	if last.From == Tool {
		return Step{Say: "done: " + last.Text}, nil
	}
	text := strings.TrimPrefix(last.Text, "no, ")
	tool, argument, ok := strings.Cut(text, ": ")
	if !ok {
		return Step{Say: "I do not know what to do"}, nil
	}
	return Step{Say: "I call " + tool, Call: Call{Tool: tool, Argument: argument, Unsafe: tool == "mail"}}, nil
}
