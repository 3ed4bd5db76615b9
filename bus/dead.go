package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// deadLetters are the events that failed or were refused. Their totals are a record.
type deadLetters struct{ *records }

// Bury stores a dead letter unless there is one about the event. See
// port.DeadLetters.
func (dl *deadLetters) Bury(ctx context.Context, d *model.DeadLetter) error {
	if err := d.Check(); err != nil {
		return err
	}
	body, err := d.Encode()
	if err != nil {
		return err
	}
	subject := dl.names.dead(d.Space, d.Stream, d.Event)
	stored := make(chan error, 1)
	r := dl.pub.start(task{
		op: OpBury, msg: &nats.Msg{Subject: subject, Header: nats.Header{headerExpect: expectNothing}, Data: body},
		judge: dl.judgeLetter(subject), holder: dl.names.deadStream(), bound: true, epoch: dl.past.now(),
		done: func(_ uint64, err error) { stored <- err },
	})
	select {
	case err = <-stored:
	case <-ctx.Done():
		dl.pub.withdraw(r)
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("bury event %s to stream %s of space %s: %w", d.Event, d.Stream, d.Space, err)
	}
	return nil
}

// judgeLetter is like sending.judge, except that it waits for room: no caller
// could be asked to retry.
func (dl *deadLetters) judgeLetter(subject string) func(answer, bool) ruling {
	lookFor := func(ctx context.Context) ruling {
		_, err := dl.leaderGet(ctx, dl.names.deadStream(), getRequest{LastFor: subject})
		return ruling{again: err != nil}
	}
	return func(a answer, _ bool) ruling {
		switch a.outcome {
		case stored:
			return ruling{seq: a.seq}
		case moved:
			return isThere
		case taken:
			return ruling{lookup: lookFor}
		case tooLarge:
			return ruling{err: fmt.Errorf("%s: %w", a.why, model.ErrTooLarge)}
		}
		return ruling{again: true}
	}
}

// ReadDead returns up to limit dead letters. See port.DeadLetters.
func (dl *deadLetters) ReadDead(ctx context.Context, space string, after uint64, limit int) ([]model.DeadLetter, error) {
	if err := checkIfAny("space", space); err != nil {
		return nil, err
	}
	pattern := ""
	if space != "" { // for a pattern, the server goes through all subjects for each page
		pattern = dl.names.dead(space, "", "")
	}
	var all []model.DeadLetter
	for len(all) < limit {
		want := limit - len(all)
		found, err := dl.readPages(ctx, dl.names.deadStream(), pattern, after, want)
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
	return dl.letters(dl.readAll(ctx, dl.names.deadStream(), dl.names.dead(space, "", id)))
}

func checkIfAny(what, name string) error {
	if name == "" {
		return nil
	}
	return model.CheckName(what, name)
}

// letters decodes the results of a read. Clients with the right to publish there may write anything:
// messages that are no letter about the event in their subject are skipped.
func (dl *deadLetters) letters(found []storedMsg, err error) ([]model.DeadLetter, error) {
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	letters := make([]model.DeadLetter, 0, len(found))
	for _, m := range found {
		d, err := model.DecodeDead(m.Data)
		if err != nil || m.Subject != dl.names.dead(d.Space, d.Stream, d.Event) {
			dl.log.Warn("dead letter passed over: it is not the JSON of a letter about the event of its subject", "subject", m.Subject, "sequence", m.Seq, "error", err)
			continue
		}
		d.Seq = m.Seq
		letters = append(letters, *d)
	}
	return letters, nil
}
