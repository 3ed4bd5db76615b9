package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// members announces the processes of a deployment to each other.
type members struct{ *wire.Streams }

// Announce stores a member's announcement, replacing its previous one. See
// port.Members.
func (ms *members) Announce(ctx context.Context, m model.Member) error {
	if err := model.CheckName("worker", m.ID); err != nil {
		return err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("announce %s: %w", m.ID, err)
	}
	subject := ms.KV + wire.BucketSubject(ms.Names.WorkersBucket(), m.Key())
	err = ms.store(ctx, subject, body)
	if errors.Is(err, model.ErrForbidden) {
		role := roles.Worker
		if m.Role == model.RoleCoordinator {
			role = roles.Coordinator
		}
		return fmt.Errorf("announce %s: %w: it may not publish to %s, which needs the role %s (`settle permissions` prints which role may do what)",
			m.ID, err, subject, role)
	}
	if err != nil {
		return fmt.Errorf("announce %s: %w", m.ID, err)
	}
	return nil
}

// judgeStore is judgePut for a message that is not stored again if this user may not store it.
func judgeStore(a wire.Answer, doubt bool) wire.Ruling {
	if a.Outcome == wire.Forbidden {
		return wire.Ruling{Err: model.ErrForbidden}
	}
	return judgePut(a, doubt)
}

// store puts a message into the bucket of the workers, replacing the present one.
func (ms *members) store(ctx context.Context, subject string, body []byte) error {
	stored := make(chan error, 1)
	r := ms.Pub.Start(wire.Task{
		Op: faults.OpAnnounce, Msg: &nats.Msg{Subject: subject, Data: body}, Judge: judgeStore,
		Done: func(_ uint64, err error) { stored <- err }, Holder: wire.BucketStream(ms.Names.WorkersBucket()),
	})
	select {
	case err := <-stored:
		return err
	case <-ctx.Done():
		ms.Pub.Withdraw(r)
		return ctx.Err()
	}
}

// FollowMembers delivers the last announcement of every member, calls ready, and
// then delivers each new one. See port.Members.
func (ms *members) FollowMembers(ctx context.Context, deliver func(model.Member), ready func()) error {
	t := wire.Tail{Stream: wire.BucketStream(ms.Names.WorkersBucket()), Latest: true, Reached: ready}
	return ms.Follow(ctx, t, func(d wire.Delivery) {
		if isDeleted(d.Header) {
			return
		}
		var m model.Member
		err := json.Unmarshal(d.Data, &m)
		if err == nil {
			err = m.Check()
		}
		if err != nil || m.Key() != wire.LastToken(d.Subject) {
			ms.PassOver(t.Stream, d.Seq, d.Subject, "it is not the JSON of the member that it is stored under: "+errorText(err))
			return
		}
		deliver(m)
	})
}

func errorText(err error) string {
	if err == nil {
		return "the names differ"
	}
	return err.Error()
}

// AnswerPings makes Ping(id) true until ctx ends or the bus is stopped. It returns
// when the server has the subscription. See port.Members.
func (ms *members) AnswerPings(ctx context.Context, id string) error {
	if err := model.CheckName("worker", id); err != nil {
		return err
	}
	sub, err := ms.NC.Subscribe(ms.Names.Ping(id), func(m *nats.Msg) {
		if ms.Answers(m.Reply, "ping", m.Subject) {
			_ = m.Respond(nil) // the requester has a timeout
		}
	})
	if err == nil {
		err = ms.Flush(ctx)
	}
	if err != nil {
		if over := ms.Over(ctx); over != nil {
			return over
		}
		return fmt.Errorf("answer pings of %s: %w", id, err)
	}
	context.AfterFunc(ctx, func() { _ = sub.Unsubscribe() }) // fails only if the connection is closed
	return nil
}

// Ping reports whether a member's process exists. See port.Members. The request is repeated until it is
// answered: it can get lost with the process that received it. An error, when ctx ends (or after twice the
// acknowledgement timeout, if it has no deadline), means that the process listens but does not answer, or
// that this one is disconnected.
func (ms *members) Ping(ctx context.Context, id string) (bool, error) {
	if err := model.CheckName("worker", id); err != nil {
		return false, err
	}
	bounded, cancel := ms.Bounded(ctx)
	defer cancel()
	var there bool
	err := ms.Persist(bounded, func(ctx context.Context) (err error) {
		there, err = ms.pingOnce(ctx, id)
		return err
	})
	if over := ms.Over(ctx); over != nil {
		return false, over
	}
	if err != nil {
		return false, fmt.Errorf("ping %s: %w", id, err)
	}
	return there, nil
}

func (ms *members) pingOnce(ctx context.Context, id string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, ms.AckTimeout/4)
	defer cancel()
	_, err := ms.NC.RequestWithContext(ctx, ms.Names.Ping(id), nil)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, nats.ErrNoResponders):
		return false, nil
	}
	return false, wire.Transient(err)
}
