package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// deadLetters are the events that failed or were refused. Their totals are a record.
type deadLetters struct{ *records }

// StoreDead stores a dead letter unless the event already has one. See
// port.DeadLetters.
func (dl *deadLetters) StoreDead(ctx context.Context, d *model.DeadLetter) error {
	if err := d.Check(); err != nil {
		return err
	}
	body, err := d.Encode()
	if err != nil {
		return err
	}
	subject := dl.Names.Dead(d.Space, d.Stream, d.Event)
	stored := make(chan error, 1)
	r := dl.Pub.Start(wire.Task{
		Op: faults.OpStoreDead, Msg: &nats.Msg{Subject: subject, Header: nats.Header{wire.HeaderExpect: expectNothing}, Data: body},
		Judge: dl.judgeLetter(subject), Holder: dl.Names.DeadStream(), Bound: true, Epoch: port.EpochOf(ctx, dl.Past.Now()),
		Done: func(_ uint64, err error) { stored <- err },
	})
	select {
	case err = <-stored:
	case <-ctx.Done():
		dl.Pub.Withdraw(r)
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("bury event %s to stream %s of space %s: %w", d.Event, d.Stream, d.Space, err)
	}
	return nil
}

// judgeLetter is like sending.judge, except that it waits for room: no caller
// could be asked to retry.
func (dl *deadLetters) judgeLetter(subject string) func(wire.Answer, bool) wire.Ruling {
	lookFor := func(ctx context.Context) wire.Ruling {
		_, err := dl.LeaderGet(ctx, dl.Names.DeadStream(), wire.GetRequest{LastFor: subject})
		return wire.Ruling{Again: err != nil}
	}
	return func(a wire.Answer, _ bool) wire.Ruling {
		switch a.Outcome {
		case wire.Stored:
			return wire.Ruling{Seq: a.Seq}
		case wire.Moved:
			return isThere
		case wire.Taken:
			return wire.Ruling{Lookup: lookFor}
		case wire.TooLarge:
			return wire.Ruling{Err: fmt.Errorf("%s: %w", a.Reason, model.ErrTooLarge)}
		}
		return wire.Ruling{Again: true}
	}
}

// ReadDead returns up to limit dead letters. See port.DeadLetters.
func (dl *deadLetters) ReadDead(ctx context.Context, space string, after uint64, limit int) ([]model.DeadLetter, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	pattern := ""
	if space != "" { // for a pattern, the server goes through all subjects for each page
		pattern = dl.Names.Dead(space, "", "")
	}
	var all []model.DeadLetter
	for len(all) < limit {
		want := limit - len(all)
		found, err := dl.ReadPages(ctx, dl.Names.DeadStream(), pattern, after, want)
		letters, err := dl.letters(found, err)
		if err != nil {
			return nil, err
		}
		all = append(all, letters...)
		if len(found) < want {
			break
		}
		after = found[len(found)-1].Seq
	}
	return all, nil
}

// FindDead returns the dead letters about an event. See port.DeadLetters.
func (dl *deadLetters) FindDead(ctx context.Context, space, id string) ([]model.DeadLetter, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	if err := model.CheckAnyEventID(id); err != nil {
		return nil, err
	}
	return dl.letters(dl.ReadAll(ctx, dl.Names.DeadStream(), dl.Names.Dead(space, "", id)))
}

func checkIfAny(what, name string) error {
	if name == "" {
		return nil
	}
	return model.CheckName(what, name)
}

// letters decodes the results of a read. Clients with the right to publish there may write anything:
// messages that are no letter about the event in their subject are skipped.
func (dl *deadLetters) letters(found []wire.StoredMsg, err error) ([]model.DeadLetter, error) {
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	letters := make([]model.DeadLetter, 0, len(found))
	for _, m := range found {
		d, err := model.DecodeDead(m.Data)
		if err != nil || m.Subject != dl.Names.Dead(d.Space, d.Stream, d.Event) {
			dl.Log.Warn("dead letter passed over: it is not the JSON of a letter about the event of its subject", "subject", m.Subject, "sequence", m.Seq, "error", err)
			continue
		}
		d.Seq = m.Seq
		letters = append(letters, *d)
	}
	return letters, nil
}
