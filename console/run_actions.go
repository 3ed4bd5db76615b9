package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// runActions are the operations on a run. Each is an event to its space, so the rules about sending decide.
func runActions() []action {
	return []action{
		{name: "run-signal", may: maySend(runs.StreamSignal), preview: previewSignal, do: doSignal},
		{name: "run-cancel", may: maySend(runs.StreamCancel), preview: previewRunCancel, do: doRunCancel},
		{name: "run-retry", may: maySend(runs.StreamRetry), preview: previewRunRetry, do: doRunRetry},
		{name: "run-reset", may: maySend(runs.StreamReset), preview: previewRunReset, do: doRunReset},
	}
}

// maySend asks the rules about events of a stream to the space of the form.
func maySend(stream string) func(*act) error {
	return func(a *act) error {
		space := a.Get("space")
		if err := model.CheckName("space", space); err != nil {
			return err
		}
		return a.Visitor.MaySend(space, stream)
	}
}

// runOf returns the runs of the space of the form, in the visitor's name, and the ID of the run.
func (a *act) runOf() (flow.Runs, string, error) {
	if err := runs.CheckID(a.Get("run")); err != nil {
		return flow.Runs{}, "", &missing{err.Error()}
	}
	client, err := a.client(cmp.Or(a.Visitor.Name(), a.cfg.SendAs, a.Visitor.SendsAs()))
	if err != nil {
		return flow.Runs{}, "", err
	}
	return flow.In(client.Space(a.Get("space"))), a.Get("run"), nil
}

// status returns the run of the form as it is now.
func (a *act) status(ctx context.Context) (*runs.Status, error) {
	in, id, err := a.runOf()
	if err != nil {
		return nil, err
	}
	s, err := in.Status(ctx, id)
	if errors.Is(err, flow.ErrNoRun) {
		return nil, &missing{fmt.Sprintf("Space %s has no run %s", a.Get("space"), id)}
	}
	return s, err
}

func (a *act) runBack() string { return runURL(a.Get("space"), a.Get("run")) }

// runCommand is a command about the run of the form.
func (a *act) runCommand(verb string, more ...string) string {
	words := []string{"settle workflow", verb, a.Get("space"), a.Get("run")}
	for _, m := range more {
		if m != "" {
			words = append(words, shellWord(m))
		}
	}
	return strings.Join(words, " ")
}

func previewSignal(ctx context.Context, a *act) (*preview, error) {
	s, err := a.status(ctx)
	if err != nil {
		return nil, err
	}
	signal := a.Get("signal")
	p := &preview{
		Title: fmt.Sprintf("Send a signal to %s", s.ID), Button: "Send the signal", Back: a.runBack(), CLI: a.runCommand("signal", cmp.Or(signal, "SIGNAL"), "VALUE"),
		Text: "The run receives it when it waits for a signal of that name. Until then it is kept. It cannot be undone.",
		Ask:  []field{{Name: "value", Label: "Value", Hint: "JSON, such as \"ann\" or {\"by\": \"ann\"}; empty for none"}},
	}
	if signal != "" {
		p.Title = fmt.Sprintf("Send signal %s to %s", signal, s.ID)
		return p, nil
	}
	p.Ask = append([]field{{Name: "signal", Label: "Signal", Required: true, Hint: "the name that the workflow waits for"}}, p.Ask...)
	return p, nil
}

func doSignal(ctx context.Context, a *act) (*done, error) {
	in, id, err := a.runOf()
	if err != nil {
		return nil, err
	}
	var value any
	if text := strings.TrimSpace(a.Get("value")); text != "" {
		v, err := model.ParseValue([]byte(text))
		if err != nil {
			return nil, invalidForm("The value is not JSON: %v. A text needs quotes", err)
		}
		value = v
	}
	signal := a.Get("signal")
	if signal == "" {
		return nil, invalidForm("Name the signal")
	}
	if err := in.Signal(ctx, id, signal, value); err != nil {
		return nil, runRefused(err)
	}
	return &done{Text: fmt.Sprintf("%s has received signal %s", id, signal), To: a.runBack(), Command: a.runCommand("signal", signal, a.Get("value"))}, nil
}

// invalidForm is the error about what a visitor has entered.
func invalidForm(format string, args ...any) error {
	return &model.ServiceError{Code: model.CodeBadRequest, Text: fmt.Sprintf(format, args...)}
}

// runRefused makes the refusal of an operation an error with a code.
func runRefused(err error) error {
	if r, is := errors.AsType[*flow.Refusal](err); is {
		return invalidForm("%s", r.Message)
	}
	return err
}

func previewRunCancel(ctx context.Context, a *act) (*preview, error) {
	s, err := a.status(ctx)
	if err != nil {
		return nil, err
	}
	if s.State != runs.Running {
		return nil, invalidForm("%s has ended: it is %s", s.ID, s.State)
	}
	p := &preview{
		Title: "Cancel " + s.ID, Button: "Cancel the run", Grave: true, Back: a.runBack(), CLI: a.runCommand("cancel"),
		Text: fmt.Sprintf("%s pending: they are cancelled, then its undo steps are executed, and it ends with a CancelledError. It can be retried later, unless something was undone.", countIs(len(s.Waiting), "thing is", "things are")),
		Ask:  []field{{Name: "reason", Label: "Reason", Hint: "the message of its error"}},
	}
	if a.Get("at_once") != "" {
		p.Title, p.Text, p.CLI = "End "+s.ID+" without its undo steps", "What is pending is cancelled, and the run ends. What it has registered to be undone is not.", a.runCommand("cancel", "--at-once")
	}
	return p, nil
}

func countIs(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func doRunCancel(ctx context.Context, a *act) (*done, error) {
	in, id, err := a.runOf()
	if err != nil {
		return nil, err
	}
	cancel, once := in.Cancel, ""
	if a.Get("at_once") != "" {
		cancel, once = in.CancelAtOnce, "--at-once"
	}
	if err := cancel(ctx, id, a.Get("reason")); err != nil {
		return nil, runRefused(err)
	}
	return &done{Text: id + " is cancelled", To: a.runBack(), Command: a.runCommand("cancel", once)}, nil
}

func previewRunRetry(ctx context.Context, a *act) (*preview, error) {
	s, err := a.status(ctx)
	if err != nil {
		return nil, err
	}
	if s.State != runs.Failed && s.State != runs.Cancelled {
		return nil, invalidForm("%s is %s; only a run that has failed or was cancelled goes on", s.ID, s.State)
	}
	p := &preview{
		Title: "Try again what " + s.ID + " has failed with", Button: "Retry", Back: a.runBack(), CLI: a.runCommand("retry"),
		Text: "Results so far are kept. An action is performed again under the same key, with as many attempts as its policy has.",
	}
	if a.Get("latest") != "" {
		p.Title += ", in the version that its program has now"
		p.CLI = a.runCommand("retry", "--latest")
	}
	return p, nil
}

func (a *act) latest() (options []flow.AgainOption, word string) {
	if a.Get("latest") == "" {
		return nil, ""
	}
	return []flow.AgainOption{flow.Latest()}, "--latest"
}

func doRunRetry(ctx context.Context, a *act) (*done, error) {
	in, id, err := a.runOf()
	if err != nil {
		return nil, err
	}
	options, word := a.latest()
	if err := in.Retry(ctx, id, options...); err != nil {
		return nil, runRefused(err)
	}
	return &done{Text: id + " goes on", To: a.runBack(), Command: a.runCommand("retry", word)}, nil
}

func previewRunReset(ctx context.Context, a *act) (*preview, error) {
	s, err := a.status(ctx)
	if err != nil {
		return nil, err
	}
	step, err := a.step()
	if err != nil {
		return nil, err
	}
	if last := lastReset(s); step > last {
		return nil, invalidForm("%s can go on from the steps 1 to %d, and not from step %d: nothing comes after it", s.ID, last, step)
	}
	return &preview{
		Title: fmt.Sprintf("Let %s go on from step %d", s.ID, step), Button: "Reset", Grave: true, Back: a.runBack() + "#steps", CLI: a.runCommand("reset", strconv.Itoa(step)),
		Text: fmt.Sprintf("%s after it dropped, with their results. What is pending is cancelled. Actions that are performed again have other keys than before: what they have done outside is done twice.", countIs(max(0, s.Steps-step), "step is", "steps are")),
	}, nil
}

func (a *act) step() (int, error) {
	step, err := strconv.Atoi(a.Get("step"))
	if err != nil || step < 1 {
		return 0, invalidForm("%q is no step of a run", cut(a.Get("step"), 20))
	}
	return step, nil
}

func doRunReset(ctx context.Context, a *act) (*done, error) {
	in, id, err := a.runOf()
	if err != nil {
		return nil, err
	}
	step, err := a.step()
	if err != nil {
		return nil, err
	}
	options, word := a.latest()
	if err := in.Reset(ctx, id, step, options...); err != nil {
		return nil, runRefused(err)
	}
	return &done{Text: fmt.Sprintf("%s goes on from step %d", id, step), To: a.runBack(), Command: a.runCommand("reset", strconv.Itoa(step), word)}, nil
}
