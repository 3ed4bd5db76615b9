package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
)

// eventActions are what a visitor can do about an event, and about what it has caused.
func eventActions() []action {
	return []action{
		{name: "redrive", may: mayOperate, preview: previewRedrive, do: doRedrive},
		{name: "dismiss", may: mayOperate, preview: previewDismiss, do: doDismiss},
		{name: "redrive-tree", may: mayOperate, preview: previewRedriveTree, do: startJob},
		{name: "cancel", may: mayOperate, preview: previewCancel, do: doCancel},
		{name: "skip", may: mayOperate, preview: previewSkip, do: doSkip},
		{name: "cancel-tree", may: mayOperate, preview: previewCancelTree, do: doCancelTree},
	}
}

// mayOperate asks the rules about operating the space of the form.
func mayOperate(a *act) error {
	if err := model.CheckName("space", a.Get("space")); err != nil {
		return err
	}
	return a.Visitor.MayOperate(a.Get("space"))
}

// ref is the event of the form.
func (a *act) ref() history.EventRef {
	return history.EventRef{Space: a.Get("space"), Stream: a.Get("stream"), Event: a.Get("event")}
}

func (a *act) eventBack() string {
	r := a.ref()
	return eventURL(r.Space, r.Stream, r.Event)
}

// tree reads the tree of the event of the form.
func (a *act) tree(ctx context.Context, most int) (*settle.Client, *history.Tree, error) {
	client, err := a.client("")
	if err != nil {
		return nil, nil, err
	}
	r := a.ref()
	t, err := client.Tree(ctx, history.TreeQuery{Event: r.Event, Space: r.Space, Stream: r.Stream, MaxEvents: most})
	if err != nil {
		return nil, nil, noEvent(r, err)
	}
	return client, t, nil
}

func previewRedrive(ctx context.Context, a *act) (*preview, error) {
	_, t, err := a.tree(ctx, 1)
	if err != nil {
		return nil, err
	}
	n := t.Root
	if n.State != lineage.Failed && n.State != lineage.Refused {
		return nil, invalidForm("%s is %s; only an event that failed or was refused can be sent again", n.Event, n.State)
	}
	return &preview{
		Title: fmt.Sprintf("Send %s again", n.Event), Button: "Redrive", Back: a.eventBack(), CLI: fmt.Sprintf("settle redrive %s %s --stream %s", n.Space, shellWord(n.Event), n.Stream),
		Text: fmt.Sprintf("Sends 1 event to space %s, under the id %s. It failed with: %s. Its failed handling has changed nothing, so nothing is done twice. If it is sent again twice, that is one event.", n.Space, model.RedriveID(n.Event), cut(display.FirstLine(n.Error), 200)),
	}, nil
}

func doRedrive(ctx context.Context, a *act) (*done, error) {
	r := a.ref()
	to, sent, err := history.Redrive(ctx, a.cfg.Bus, r.Space, r.Stream, r.Event)
	if err != nil {
		return nil, noLetter(err)
	}
	d := &done{Text: fmt.Sprintf("%s is sent again, as %s", r.Event, to.Event), URL: eventURL(to.Space, to.Stream, to.Event), Link: "open it", To: a.eventBack()}
	if sent.Duplicate {
		d.Text = fmt.Sprintf("%s had been sent again already, as %s; if that has failed, redrive that", r.Event, to.Event)
	}
	d.Command = fmt.Sprintf("settle redrive %s %s --stream %s", r.Space, shellWord(r.Event), r.Stream)
	return d, nil
}

// noLetter makes the error about a dead letter that does not exist one for a person.
func noLetter(err error) error {
	if e, is := errors.AsType[*history.NoLetterError](err); is {
		return &missing{fmt.Sprintf("%s of space %s has no dead letter. A coordinator writes it, moments after the event failed", e.Event, e.Space)}
	}
	return err
}

func previewDismiss(_ context.Context, a *act) (*preview, error) {
	r := a.ref()
	return &preview{
		Title: fmt.Sprintf("Dismiss %s", r.Event), Button: "Dismiss", Back: a.eventBack(), CLI: fmt.Sprintf("settle dismiss %s %s --stream %s --reason TEXT", r.Space, shellWord(r.Event), r.Stream),
		Text: "The dead letter is taken off the list. The event stays as it is, and can still be redriven.",
		Ask:  []field{{Name: "reason", Label: "Reason"}},
	}, nil
}

func doDismiss(ctx context.Context, a *act) (*done, error) {
	r := a.ref()
	_, again, err := history.Dismiss(ctx, a.cfg.Bus, r.Space, r.Stream, r.Event, a.Get("reason"))
	if err != nil {
		return nil, noLetter(err)
	}
	d := &done{Text: r.Event + " is dismissed; it can still be redriven", To: a.eventBack()}
	if again {
		d.Text = r.Event + " had been dismissed already; the first reason stays"
	}
	d.Command = fmt.Sprintf("settle dismiss %s %s --stream %s --reason %s", r.Space, shellWord(r.Event), r.Stream, shellWord(a.Get("reason")))
	return d, nil
}

// mostCancelled is the largest number of events of a tree that one action cancels, as the command does.
const mostCancelled = 10_000

func previewRedriveTree(ctx context.Context, a *act) (*preview, error) {
	_, t, err := a.tree(ctx, mostCancelled)
	if err != nil {
		return nil, err
	}
	set := frozen{verb: "redrive", back: a.eventBack(), command: "settle redrive SPACE EVENT, for each that failed of settle tree " + shellWord(t.Root.Event)}
	for _, n := range deadOf(t.Root) {
		if a.Visitor.MayOperate(n.Space) == nil {
			set.letters = append(set.letters, model.DeadName{Space: n.Space, Stream: n.Stream, Event: n.Event})
		}
	}
	return a.freeze(set, fmt.Sprintf("what failed of the tree of %s", t.Root.Event))
}

func previewCancel(ctx context.Context, a *act) (*preview, error) {
	_, t, err := a.tree(ctx, 1)
	if err != nil {
		return nil, err
	}
	if t.Root.State.Ended() {
		return nil, invalidForm("%s has ended before: %s", t.Root.Event, t.Root.State)
	}
	return &preview{
		Title: "Cancel " + t.Root.Event, Button: "Cancel the event", Grave: true, Back: a.eventBack(), CLI: "settle cancel " + shellWord(t.Root.Event) + " --space " + t.Root.Space,
		Text: "It is not handled, and its receipt is cancelled. The log of its space decides whether the cancellation or the handling came first. This cannot be undone.",
		Ask:  []field{{Name: "reason", Label: "Reason", Value: "by an operator", Hint: "is stored in the receipt"}},
	}, nil
}

func doCancel(ctx context.Context, a *act) (*done, error) {
	client, err := a.client("")
	if err != nil {
		return nil, err
	}
	r := a.ref()
	rc, err := client.Cancel(ctx, r, cmp.Or(a.Get("reason"), "by an operator"))
	d := &done{To: a.eventBack(), Text: r.Event + " is cancelled", Command: fmt.Sprintf("settle cancel %s --space %s --stream %s", shellWord(r.Event), r.Space, r.Stream)}
	switch {
	case errors.Is(err, settle.ErrCancelPending):
		d.Text = r.Event + " is marked, and ends as cancelled when its turn comes"
	case err != nil:
		return nil, err
	case rc.Outcome != model.Cancelled:
		d.Text = fmt.Sprintf("%s was not cancelled: it had ended before, %s", r.Event, rc.Outcome)
	}
	return d, nil
}

// first returns an error unless the event of the form is the one that its space is to handle next.
func (a *act) first(ctx context.Context) error {
	r := a.ref()
	switch first, err := history.FirstOpen(ctx, a.cfg.Bus, r.Space); {
	case err != nil:
		return err
	case first == nil:
		return invalidForm("No event waits to be handled in space %s; nothing was skipped", r.Space)
	case first.ID != r.Event || first.Stream != r.Stream:
		return invalidForm("The first event of space %s is %s of stream %s, not %s; nothing was skipped", r.Space, first.ID, first.Stream, r.Event)
	}
	return nil
}

func previewSkip(ctx context.Context, a *act) (*preview, error) {
	if err := a.first(ctx); err != nil {
		return nil, err
	}
	r := a.ref()
	return &preview{
		Title: fmt.Sprintf("Skip %s, the first event of %s", r.Event, r.Space), Button: "Skip the event", Grave: true, Back: a.eventBack(), CLI: fmt.Sprintf("settle skip %s %s", r.Space, shellWord(r.Event)),
		Text: "It ends as cancelled, and the events behind it are handled. If its handler is running, that ends first. This cannot be undone.",
		Ask:  []field{{Name: "reason", Label: "Reason", Value: "by an operator", Hint: "is stored in the receipt"}},
	}, nil
}

func doSkip(ctx context.Context, a *act) (*done, error) {
	if err := a.first(ctx); err != nil {
		return nil, err
	}
	d, err := doCancel(ctx, a)
	if err != nil {
		return nil, err
	}
	d.Command = fmt.Sprintf("settle skip %s %s", a.Get("space"), shellWord(a.Get("event")))
	return d, nil
}

// openRefs are the events of a tree that can be cancelled, and the number of their spaces. A notice about a refusal ends by itself.
func (a *act) openRefs(t *history.Tree) (refs []history.EventRef, spaces int) {
	names := map[string]bool{}
	for _, n := range openOf(t.Root) {
		if n.Stream != "" && n.Stream != model.Undelivered && a.Visitor.MayOperate(n.Space) == nil {
			refs = append(refs, n.EventRef)
			names[n.Space] = true
		}
	}
	return refs, len(names)
}

func previewCancelTree(ctx context.Context, a *act) (*preview, error) {
	_, t, err := a.tree(ctx, mostCancelled)
	if err != nil {
		return nil, err
	}
	refs, spaces := a.openRefs(t)
	if len(refs) == 0 {
		return nil, invalidForm("There is nothing to cancel: every event of this tree has ended, or is of a space that you may not operate")
	}
	a.Form.Set("count", strconv.Itoa(len(refs)))
	return &preview{
		Title: fmt.Sprintf("Cancel %s in %s", display.Count(len(refs), "event"), display.Count(spaces, "space")), Button: fmt.Sprintf("Cancel %s", display.Count(len(refs), "event")), Grave: true,
		Back: a.eventBack(), CLI: "settle cancel " + shellWord(t.Root.Event) + " --space " + t.Root.Space + " --tree",
		Text: "Those that are open now are not handled. One that is being handled ends first; what it causes is then open again. This cannot be undone.",
		Ask:  []field{{Name: "reason", Label: "Reason", Value: "by an operator", Hint: "is stored in the receipts"}},
	}, nil
}

func doCancelTree(ctx context.Context, a *act) (*done, error) {
	client, t, err := a.tree(ctx, mostCancelled)
	if err != nil {
		return nil, err
	}
	refs, _ := a.openRefs(t)
	if want, err := strconv.Atoi(a.Get("count")); err != nil || len(refs) > want {
		return nil, invalidForm("There are %d open events now, more than the %s of the preview; nothing was cancelled. Look again", len(refs), cmp.Or(a.Get("count"), "0"))
	}
	all, err := client.CancelAll(ctx, refs, cmp.Or(a.Get("reason"), "by an operator"))
	if err != nil {
		return nil, err
	}
	var cancelled, before, pending int
	for i := range all {
		switch c := &all[i]; {
		case errors.Is(c.Err, settle.ErrCancelPending):
			pending++
		case c.Err == nil && c.Receipt.Outcome == model.Cancelled:
			cancelled++
		case c.Err == nil:
			before++
		}
	}
	parts := []string{display.Count(cancelled, "event") + " cancelled"}
	if before > 0 {
		parts = append(parts, fmt.Sprintf("%d had ended before", before))
	}
	if pending > 0 {
		parts = append(parts, fmt.Sprintf("%d marked, which end as cancelled when their turn comes", pending))
	}
	if failed := len(all) - cancelled - before - pending; failed > 0 {
		parts = append(parts, fmt.Sprintf("%d could not be cancelled", failed))
	}
	r := a.ref()
	return &done{Text: strings.Join(parts, ", "), To: a.eventBack(), Command: fmt.Sprintf("settle cancel %s --space %s --tree", shellWord(r.Event), r.Space)}, nil
}
