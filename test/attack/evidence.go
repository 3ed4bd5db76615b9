package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
)

// createDecoy creates a stream with messages, and a consumer, which requests of the attackers would purge, change or delete.
func (r *run) createDecoy(ctx context.Context) error {
	js := r.plan.Admin.JetStream()
	_, err := js.CreateOrUpdateStream(bounded(ctx), jetstream.StreamConfig{Name: r.names.decoy, Subjects: []string{r.decoySubject("*")}, AllowDirect: true, Storage: jetstream.MemoryStorage})
	if err != nil {
		return fmt.Errorf("create a stream for the attackers, which needs the role administrator: %w", err)
	}
	for i := range 3 {
		if _, err := js.Publish(bounded(ctx), r.decoySubject(strconv.Itoa(i)), nil); err != nil {
			return fmt.Errorf("store a message for the attackers: %w", err)
		}
	}
	return nil
}

// removeDecoy deletes the stream. It remains if the connection is lost.
func (r *run) removeDecoy(ctx context.Context) {
	_ = r.plan.Admin.JetStream().DeleteStream(bounded(context.WithoutCancel(ctx)), r.names.decoy)
}

func (r *run) decoySubject(name string) string {
	return r.names.prefix + ".attack." + r.names.mark + "." + name
}

// streamState is what is compared of a stream.
type streamState struct {
	created          time.Time
	config           string
	first, last, msg uint64
	consumers        int
}

// evidence is what is compared before and after, by stream.
type evidence map[string]streamState

// look reads the state of all streams.
func (r *run) look(ctx context.Context) (evidence, error) {
	e := evidence{}
	for _, name := range append(r.names.streams(), r.names.decoy) {
		s, err := r.plan.Admin.JetStream().Stream(bounded(ctx), name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // compare reports it: its state is the zero one
		}
		if err != nil {
			return nil, fmt.Errorf("look at stream %s: %w", name, err)
		}
		info := s.CachedInfo()
		config, err := json.Marshal(info.Config)
		if err != nil {
			return nil, err
		}
		e[name] = streamState{created: info.Created, config: string(config), first: info.State.FirstSeq, last: info.State.LastSeq, msg: info.State.Msgs, consumers: info.State.Consumers}
	}
	return e, nil
}

// compare returns what an attempt has changed.
func (r *run) compare(ctx context.Context, a Attacker, before, after evidence) (found []string, err error) {
	for _, name := range append(r.names.streams(), r.names.decoy) {
		was, is := before[name], after[name]
		switch {
		case is.created.IsZero() || !is.created.Equal(was.created):
			found = append(found, "stream "+name+" was deleted, or made anew")
			continue
		case is.config != was.config:
			found = append(found, "the settings of stream "+name+" have changed")
		case wasPurged(name, was, is):
			found = append(found, "stream "+name+" was purged")
		case name == r.names.decoy && is.consumers != was.consumers:
			found = append(found, "stream "+name+" has another consumer")
		case name == r.names.decoy && is.msg != was.msg+1: // the barrier
			found = append(found, "stream "+name+" has other messages")
		}
		more, err := r.marked(ctx, name, was.last)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// wasPurged reports whether messages of a stream are gone. A bucket keeps one message of each key, so that others begin it soon.
func wasPurged(name string, was, is streamState) bool {
	bucket := strings.HasPrefix(name, "KV_")
	return is.last < was.last || was.msg > 0 && (bucket && is.msg == 0 || !bucket && is.first > was.last)
}

// marked returns the messages of a stream after a sequence whose subjects have the mark, except for what an attacker may send.
func (r *run) marked(ctx context.Context, name string, after uint64) (found []string, err error) {
	if name == r.names.decoy {
		return nil, nil
	}
	s, err := r.plan.Admin.JetStream().Stream(bounded(ctx), name)
	if err != nil {
		return nil, err
	}
	for seq := after + 1; seq <= s.CachedInfo().State.LastSeq; seq++ {
		m, err := s.GetMsg(bounded(ctx), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read stream %s: %w", name, err)
		}
		if strings.Contains(m.Subject, r.names.mark) {
			found = append(found, fmt.Sprintf("stream %s has stored a message to %s: %.80q", name, m.Subject, m.Data))
		}
	}
	return found, nil
}

// ownSpace is a space to which the attackers may send. It has no mark.
func (r *run) ownSpace() string { return "guest" + strings.TrimPrefix(r.names.mark, "attack") }

// own is the subject of an event that the attackers may send, if they may send any.
func (r *run) own(a Attacker, id string) string {
	space := r.ownSpace()
	subject := fmt.Sprintf("%s.send.%d.%s.add.%s", r.names.prefix, model.PartitionOf(space, r.names.parts), space, id)
	if a.Principal != "" {
		subject += "." + a.Principal
	}
	return subject
}

// believed reports events whose headers say something that only the system says, and that is believed.
func (r *run) believed(ctx context.Context, a Attacker) error {
	for i, h := range r.names.headers() {
		m, there, err := r.plan.Admin.FindEvent(bounded(ctx), r.ownSpace(), "add", model.EventIDOf(a.Principal, fmt.Sprintf("h%d", i)))
		if err != nil {
			return err
		}
		if there && (m.Position != 0 || m.Term != 0 || m.PrevTerm != 0 || m.Depth != 0 || m.Invalid != "" || m.ReplayKey != 0) {
			r.breach(a, Headers, fmt.Sprintf("%s: %.40s is believed of an event of a client", h[0], h[1]))
		}
	}
	return nil
}
