package attack

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// try makes one attempt, and counts whether the server refused it. The server reports a refusal before it answers the flush.
func (r *run) try(ctx context.Context, a Attacker, attempt func() error) (refused bool, err error) {
	before := a.Conn.LastError()
	if err := attempt(); err != nil {
		return false, err
	}
	if err := a.Conn.FlushWithContext(bounded(ctx)); err != nil {
		return false, fmt.Errorf("wait for the server: %w", err)
	}
	after := a.Conn.LastError()                                                // a new error each time, even with the same text
	refused = after != before && errors.Is(after, nats.ErrPermissionViolation) //nolint:errorlint // is it the very same?
	r.report.Attempts++
	if refused {
		r.report.Refused++
	}
	return refused, nil
}

// messages publishes to every subject.
func (r *run) messages(ctx context.Context, a Attacker) error {
	subjects := append(r.names.stored(), r.names.commands()...)
	for _, subject := range append(subjects, r.names.replies()...) {
		if _, err := r.try(ctx, a, func() error { return a.Conn.Publish(subject, []byte(r.body())) }); err != nil {
			return err
		}
	}
	return nil
}

// answers asks every question in such a way that the answer would go where it does harm.
func (r *run) answers(ctx context.Context, a Attacker) error {
	replies := r.names.replies()
	for _, subject := range r.names.questions() {
		may := true
		for i, reply := range replies {
			if i > 0 && !may {
				break // refused for its subject, whatever the answer
			}
			for _, body := range r.bodies(subject) {
				refused, err := r.try(ctx, a, func() error { return a.Conn.PublishRequest(subject, reply, []byte(body)) })
				if err != nil {
					return err
				}
				may = may && !refused
			}
		}
	}
	return nil
}

// headers sends events with each header, to a subject that the attacker may publish to, if there is one.
func (r *run) headers(ctx context.Context, a Attacker) error {
	for i, h := range r.names.headers() {
		m := nats.NewMsg(r.own(a, fmt.Sprintf("h%d", i)))
		m.Header[h[0]] = []string{h[1]}
		m.Data = []byte(`1`)
		if _, err := r.try(ctx, a, func() error { return a.Conn.PublishMsg(m) }); err != nil {
			return err
		}
	}
	return r.believed(ctx, a)
}

// inboxes looks whether the attacker sees where other users are answered. Only users that may send without a principal share inboxes: any other one could have an
// answer of its own choice sent there, such as the acknowledgement of an event that is not stored.
func (r *run) inboxes(ctx context.Context, a Attacker) error {
	refused, err := r.try(ctx, a, func() error {
		return a.Conn.Publish(r.own(Attacker{}, "inbox"), []byte(`1`))
	})
	if err != nil || !refused {
		return err
	}
	var sub *nats.Subscription
	refused, err = r.try(ctx, a, func() (err error) {
		sub, err = a.Conn.SubscribeSync("_INBOX.>")
		return err
	})
	if err != nil || refused {
		return err
	}
	r.breach(a, Subscriptions, "_INBOX.> shows where other users are answered; settle permissions has an inbox of its own for each principal, and for readers")
	return sub.Unsubscribe()
}

// subscriptions listens to what is none of the attacker's business, while something is there to be heard.
func (r *run) subscriptions(ctx context.Context, a Attacker) error {
	if err := r.inboxes(ctx, a); err != nil {
		return err
	}
	for _, pattern := range r.names.listens() {
		var sub *nats.Subscription
		_, err := r.try(ctx, a, func() (err error) {
			sub, err = a.Conn.SubscribeSync(pattern)
			return err
		})
		if err != nil {
			return err
		}
		inside := r.plan.Admin.Conn()
		for _, subject := range []string{"_INBOX." + r.names.mark, r.names.prefix + ".ping." + r.names.mark, r.names.prefix + ".demand." + r.names.mark} {
			if err := inside.Publish(subject, []byte(r.names.mark)); err != nil {
				return err
			}
		}
		if err := inside.FlushWithContext(bounded(ctx)); err != nil {
			return err
		}
		if err := a.Conn.FlushWithContext(bounded(ctx)); err != nil {
			return err
		}
		if n, _, err := sub.Pending(); err == nil && n > 0 {
			m, err := sub.NextMsgWithContext(bounded(ctx))
			if err != nil {
				return err
			}
			r.breach(a, Subscriptions, fmt.Sprintf("%s shows what is published to %s in the account of the streams", pattern, m.Subject))
		}
		_ = sub.Unsubscribe() // fails only if it has ended, because the server refused it
	}
	return nil
}

// body is a message that would do harm as an item of any stream.
func (r *run) body() string { return `{"attack":"` + r.names.mark + `"}` }

// bodies are payloads of a question: those that make sense, and none.
func (r *run) bodies(string) []string {
	return []string{
		"", "not JSON", `{"seq":1}`, `{"last_by_subj":"` + r.names.prefix + `.send.0.x.y.z"}`, `{"batch":10,"seq":1}`,
		`{"stream_name":"` + r.names.decoy + `","config":{"deliver_subject":"` + r.names.stored()[0] + `","ack_policy":"none"}}`,
	}
}
