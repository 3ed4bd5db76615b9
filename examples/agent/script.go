package agent

import (
	"context"
	"strings"
)

// Script returns a model that follows the message literally: "look up: price" is a call of the tool "look up",
// and the result of a tool is the answer. Mails are not safe.
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
