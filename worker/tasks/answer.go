package tasks

import (
	"fmt"
	"strings"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Types of errors that are not the performer's own.
const (
	// LostError: the performer has claimed a task, and was not heard of for too long.
	LostError = "LostError"
	// TimeoutError: the attempt has taken longer than its limit.
	TimeoutError = "TimeoutError"
	// LimitError: what was to be sent is larger than it may be.
	LimitError = "LimitError"
	// AnswerError: a message of the performer is none of those that are possible.
	AnswerError = "AnswerError"
	// QueueError: the input of the task names a queue that is none.
	QueueError = "QueueError"
	// DeadlineError: the task has not ended at its deadline.
	DeadlineError = space.DeadlineError
)

// Bounds of what a performer answers.
const (
	// MaxAnswer is the largest size of a message, in bytes.
	MaxAnswer = 256 << 10
	// maxErrorText bounds the message of an error, maxErrorDetail its detail, maxAncestors its ancestors; longer ones are cut
	// off or dropped.
	maxErrorText   = 2000
	maxErrorDetail = 16 << 10
	maxAncestors   = 8
)

// answer is what a performer says of a task. At most one of the fields is set; none is a heartbeat without a progress, or a claim.
type answer struct {
	busy     bool
	progress model.Value
	out      model.Value
	failed   *space.WorkError
	// permanent reports that the error is final.
	permanent bool
}

// ended reports whether the answer is the last one.
func (a *answer) ended() bool { return !a.out.IsAbsent() || a.failed != nil }

// readAnswer reads a message of a performer. It may come from a program in any state: the error says, in words for its author, what is wrong.
func readAnswer(data []byte) (a answer, failed *space.WorkError) {
	if len(data) > MaxAnswer {
		return a, &space.WorkError{Type: LimitError, Message: fmt.Sprintf("the answer of the performer has %d bytes; at most %d are possible: keep what is large elsewhere, and return a reference", len(data), MaxAnswer)}
	}
	v, err := model.ParseValue(data)
	if err != nil {
		return a, wrongAnswer(fmt.Sprintf("it is not JSON: %v", err))
	}
	is := func(name string) bool { b, _ := v.Get(name).AsBool(); return b }
	out, e, progress := v.Get("out"), v.Get("error"), v.Get("progress")
	switch {
	case !out.IsAbsent() && !e.IsAbsent():
		return a, wrongAnswer("it has a result and an error")
	case !out.IsAbsent():
		return answer{out: out}, nil
	case !e.IsAbsent():
		a.failed, a.permanent = readError(e)
		return a, nil
	case is("busy"):
		return answer{busy: true}, nil
	case !is("claim") && !is("heartbeat"):
		return a, wrongAnswer(`it is none of {"claim": true}, {"busy": true}, {"heartbeat": true}, {"out": VALUE} and {"error": {"type": TYPE, "message": TEXT}}`)
	case len(progress.String()) > space.MaxProgress:
		return a, &space.WorkError{Type: LimitError, Message: fmt.Sprintf("the progress has %d bytes; at most %d are possible", len(progress.String()), space.MaxProgress)}
	}
	return answer{progress: progress}, nil
}

func wrongAnswer(why string) *space.WorkError {
	return &space.WorkError{Type: AnswerError, Message: "the answer of the performer cannot be used: " + why}
}

// readError reads an error: an object, or a text that is its message. What is no name cannot be a type.
func readError(e model.Value) (f *space.WorkError, permanent bool) {
	if text, is := e.AsString(); is {
		return &space.WorkError{Type: "Error", Message: cut(text)}, false
	}
	f = &space.WorkError{Type: "Error", Detail: e.Get("detail")}
	message, is := e.Get("message").AsString()
	if !is && e.Kind() != model.KindObject {
		message = e.String()
	}
	f.Message = cut(message)
	if typ, _ := e.Get("type").AsString(); model.CheckName("type", typ) == nil {
		f.Type = typ
	}
	for x := range e.Get("ancestors").Elements() {
		if name, _ := x.AsString(); model.CheckName("type", name) == nil && len(f.Ancestors) < maxAncestors {
			f.Ancestors = append(f.Ancestors, name)
		}
	}
	if len(f.Detail.String()) > maxErrorDetail {
		f.Detail = model.Value{}
	}
	permanent, _ = e.Get("permanent").AsBool()
	return f, permanent
}

// cut returns a text that is not too long.
func cut(text string) string {
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	return text
}
