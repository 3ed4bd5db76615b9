package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/receipts"
)

// sendCmd is `settle send`.
type sendCmd struct {
	inName
	Space   string        `arg:"" help:"The space of the event. Not with --all."`
	Stream  string        `arg:"" optional:"" help:"The stream of the event, which selects the handler."`
	Payload string        `arg:"" optional:"" help:"JSON."`
	All     string        `help:"Send the event to every space whose name matches this pattern, once under its id: settle send --all 'lot-*' STREAM JSON. Repeat the command with the id that it prints to go on after an error." placeholder:"PATTERN"`
	ID      string        `name:"id" help:"The event's id: sending it again has no further effect. Default: a random one, which is printed." placeholder:"ID"`
	At      time.Time     `help:"Handle it at this time: 2026-11-21T09:00:00Z." xor:"when" placeholder:"TIME"`
	After   time.Duration `help:"Handle it after this duration: 90s, 36h." xor:"when" placeholder:"DURATION"`
	Expires time.Duration `help:"Let it expire after this duration if it is not handled by then." placeholder:"DURATION"`
	Wait    waitFor       `help:"--wait[=receipt|tree]: wait for the receipt, or with --wait=tree until all events that it causes have ended. The exit code is 1 unless all of them were handled. Default: none." default:"none"`
	Timeout time.Duration `help:"How long to wait." default:"10s"`
	JSON    bool          `name:"json" help:"Print JSON: the receipt, with the members of an answer over HTTP (event, outcome, result, or detail, code and data), with --wait=tree the tree, otherwise the stored event."`
}

// waitFor is what --wait waits for.
type waitFor string

// IsBool lets the flag stand alone.
func (waitFor) IsBool() bool { return true }

// Decode reads none, receipt or tree; a flag that stands alone means receipt.
func (w *waitFor) Decode(ctx *kong.DecodeContext) error {
	*w = "receipt"
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	switch v := fmt.Sprint(ctx.Scan.Pop().Value); v {
	case "none", "receipt", "tree":
		*w = waitFor(v)
		return nil
	default:
		return fmt.Errorf("use none, receipt or tree, not %q", v) // the caller adds the flag's name
	}
}

// Run sends one event.
func (c *sendCmd) Run(ctx context.Context, io streams) error {
	if err := c.places(); err != nil {
		return usage(err)
	}
	e := settle.Outgoing{Space: c.Space, Stream: c.Stream, ID: settle.ID(c.ID)}
	if c.ID == "" {
		e.ID = settle.NewID()
	}
	if c.After < 0 {
		return usage(fmt.Errorf("--after %v lies in the past; use a positive duration such as 90s, or send without it", c.After))
	}
	if e.NotBefore = c.At; c.After > 0 {
		e.NotBefore = time.Now().Add(c.After)
	}
	switch {
	case c.Expires < 0:
		return usage(fmt.Errorf("--expires %v lies in the past; use a positive duration such as 90s", c.Expires))
	case c.Expires > 0:
		e.Expires = time.Now().Add(c.Expires)
	}
	if c.Payload != "" {
		v, err := model.ParseValue([]byte(c.Payload))
		if err != nil {
			return usage(fmt.Errorf("the payload is not JSON: %w%s", err, c.meant()))
		}
		e.Payload = v
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	begun := false
	n := ofSpaces(c.Space).patient(c.Timeout)
	if c.All != "" {
		n = need{}
	}
	n.none = c.Wait == "none" && c.All == ""
	err := c.use(ctx, io, n, func(b *bus.Bus, client *settle.Client) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		begun = true
		if c.All != "" {
			return c.sendAll(ctx, io, client, e)
		}
		return c.send(ctx, io, b, client, e)
	})
	if err != nil && !begun && (ctx.Err() != nil || errors.Is(err, model.ErrForbidden)) {
		err = fmt.Errorf("%w; the event was not sent", err)
	}
	return err
}

// words matches payloads that are probably meant as strings.
var words = regexp.MustCompile(`^\pL[\pL\pN ._:/@+-]{0,60}$`)

// meant returns a hint for an error about a payload that looks like a value of --wait, or like a string.
func (c *sendCmd) meant() string {
	switch {
	case c.Wait == "receipt" && (c.Payload == "receipt" || c.Payload == "tree"):
		return "; did you mean --wait=" + c.Payload + "?"
	case words.MatchString(c.Payload):
		return fmt.Sprintf(`; a string is written '"%s"', with both kinds of quotes`, c.Payload)
	}
	return ""
}

func (c *sendCmd) send(ctx context.Context, io streams, b *bus.Bus, client *settle.Client, e settle.Outgoing) error {
	if c.isInternal(ctx, b) {
		return &model.InternalStreamError{Space: c.Space, Stream: c.Stream}
	}
	unserved := c.lookIdle(ctx, b)
	r, err := client.Send(ctx, e)
	if err != nil {
		return usageIfName(err)
	}
	if <-unserved {
		fmt.Fprintf(io.err, "no program serves space %s: its events wait until one does; `settle lane %s` lists them\n", e.Space, e.Space)
	}
	if r.Duplicate && c.ID != "" { // an id made here is new: an acknowledgement was lost
		if err := c.sameAsBefore(ctx, io, b, e); err != nil {
			return err
		}
	}
	switch {
	case c.Wait == "receipt":
		return c.waitReceipt(ctx, io, b, client, e)
	case c.Wait == "tree":
		return c.waitTree(ctx, io, client, e)
	case c.JSON:
		return printLine(io.out, stored{e.ID.String(), r.Seq, r.Duplicate})
	case r.Duplicate:
		fmt.Fprintf(io.out, "%s: already sent\n", e.ID)
	default:
		fmt.Fprintf(io.out, "%s: stored, lane sequence %d\n", e.ID, r.Seq)
	}
	return nil
}

// isInternal reports whether a worker knows that only spaces send on the stream. Otherwise the receipt of the event reports it.
func (c *sendCmd) isInternal(ctx context.Context, b *bus.Bus) bool {
	ctx, cancel := context.WithTimeout(ctx, idlePatience)
	defer cancel()
	is, err := (&questions.Client{Bus: b, Principal: c.Principal}).IsInternal(ctx, c.Space, c.Stream)
	return err == nil && is
}

// lookIdle reports whether the owner of the space has no program for it, unless the receipt is awaited: then its absence is explained.
func (c *sendCmd) lookIdle(ctx context.Context, b *bus.Bus) <-chan bool {
	is := make(chan bool, 1)
	if c.Wait != "none" || c.Principal != "" { // a principal may not read the space
		is <- false
		return is
	}
	go func() { is <- idle(ctx, b, c.Space) }() // ends with its patience
	return is
}

// sameAsBefore reports an event that had been sent before, and whether that had the same payload. If its receipt is awaited, another payload is an
// error.
func (c *sendCmd) sameAsBefore(ctx context.Context, io streams, b *bus.Bus, e settle.Outgoing) error {
	m := model.Message{Space: e.Space, Stream: e.Stream, ID: model.EventIDOf(c.Principal, e.ID.String())}
	if v, _ := model.Of(e.Payload); !v.IsAbsent() {
		m.Payload = v.AppendJSON(nil)
	}
	err := history.CheckReuse(ctx, b, &m)
	_, differs := errors.AsType[*model.ReusedIDError](err)
	switch {
	case c.Wait != "none" && err != nil:
		return err
	case differs:
		fmt.Fprintf(io.err, "%s had been sent before, with another payload; this payload was not used\n", e.ID)
	case err != nil: // a user that sends need not have the right to read
		fmt.Fprintf(io.err, "%s had been sent before; this payload was not used, and whether it is the same could not be read\n", e.ID)
	default:
		fmt.Fprintf(io.err, "%s had been sent before, with the same payload\n", e.ID)
	}
	return nil
}

// stored is the output of `settle send --json` without --wait.
type stored struct {
	Event     string `json:"event"`
	Lane      uint64 `json:"lane,omitzero"` // not set for a duplicate
	Duplicate bool   `json:"duplicate"`
}

// usageIfName turns an error about a name into a usage error.
func usageIfName(err error) error {
	if _, ok := errors.AsType[*model.NameError](err); ok {
		return usage(err)
	}
	return err
}

func (c *sendCmd) waitReceipt(ctx context.Context, io streams, b *bus.Bus, client *settle.Client, e settle.Outgoing) error {
	rc, err := client.Space(e.Space).Await(ctx, e.Stream, e.ID)
	switch {
	case err == nil:
		return c.printReceipt(io, rc)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		if why := c.notAllowed(ctx, b); why != nil {
			return fmt.Errorf("no receipt within %v: %w; an event that no rule allows creates no space, and gets a receipt only in one that exists", c.Timeout, why)
		}
		return fmt.Errorf("no receipt within %v: %s; the event is stored, and will be handled when a worker runs its space; `settle tree %s --space %s` shows its state", c.Timeout, describeOwner(ctx, b, e.Space), e.ID.String(), e.Space)
	case ctx.Err() != nil:
		return fmt.Errorf("%w; the event is stored, and will be handled when a worker runs its space; `settle tree %s --space %s` shows its state", err, e.ID.String(), e.Space)
	}
	return err
}

// notAllowed returns why no rule allows the event, nil if one does or that is not known.
func (c *sendCmd) notAllowed(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookPatience)
	defer cancel()
	rules, _ := access.List(ctx, b) // a principal may not read them
	return rules.MaySend(c.Principal, c.Space, c.Stream)
}

func (c *sendCmd) waitTree(ctx context.Context, io streams, client *settle.Client, e settle.Outgoing) error {
	tree, err := client.Space(e.Space).WaitTree(ctx, e.Stream, e.ID)
	switch {
	case tree == nil:
	case c.JSON:
		if err := printIndented(io.out, tree); err != nil {
			return err
		}
	default:
		printTree(io.out, tree, false)
	}
	if tree != nil && ctx.Err() != nil {
		seen := "see above"
		if tree.More {
			seen = "and not all of it is shown (--depth, --events)"
		}
		return fmt.Errorf("not settled within %v, %s; open events continue, and `settle tree %s --space %s` prints them again", c.Timeout, seen, e.ID.String(), e.Space)
	}
	if err != nil {
		return err
	}
	if n := tree.Events - tree.States["handled"]; n > 0 {
		return fmt.Errorf("%d of %s were not handled", n, display.Count(tree.Events, "event"))
	}
	return nil
}

// printReceipt prints the outcome of the event in words, and returns its error; or it prints the receipt
// as JSON, and returns an error without a text.
func (c *sendCmd) printReceipt(io streams, rc *model.Receipt) error {
	if c.JSON {
		err := printLine(io.out, struct {
			Event string `json:"event"`
			ending
		}{rc.Event, endingOf(rc)})
		if err == nil && rc.Outcome != model.Handled {
			err = exitError{code: 1}
		}
		return err
	}
	switch rc.Outcome {
	case model.Handled:
		fmt.Fprintf(io.out, "%s: handled%s\n", rc.Event, result(rc))
		return nil
	case model.Rejected:
		data := ""
		if !rc.Result.IsAbsent() {
			data = "; data " + rc.Result.String()
		}
		return fmt.Errorf("event %s was %s: %s%s", rc.Event, rc.Outcome, receipts.Reason(rc), data)
	case model.Refused, model.Cancelled:
		return fmt.Errorf("event %s was %s: %s", rc.Event, rc.Outcome, receipts.Reason(rc))
	}
	return fmt.Errorf("event %s %s: %s", rc.Event, rc.Outcome, rc.Error)
}

// result returns the result of the handler in words, "" if there is none.
func result(rc *model.Receipt) string {
	if rc.Result.IsAbsent() {
		return ""
	}
	return ", result " + rc.Result.String()
}
