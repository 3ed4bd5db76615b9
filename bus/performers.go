package bus

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// performers hands work to processes that perform actions. All answers to a connection share a subscription; the last token of
// their subject says to which offer they belong.
type performers struct {
	*wire.Streams

	mu     sync.Mutex
	name   string // of the connection, in the subjects of answers; "" before the first offer
	offers map[string]func(model.Answer)
	lasts  lasts
}

// lasts are the last answers to offers which are over, with the replies to them. A performer that has waited too long for the reply, because
// the end took long to store, sends its answer again, and is to learn that it counts.
type lasts struct {
	replies map[string]lastReply // by token
	order   []string             // the oldest first
}

type lastReply struct {
	answer [sha256.Size]byte
	reply  []byte
}

// maxLasts bounds the last answers that are remembered.
const maxLasts = 10_000

// remember records the reply to the last answer of an offer.
func (l *lasts) remember(token string, answer, reply []byte) {
	if l.replies == nil {
		l.replies = map[string]lastReply{}
	}
	if _, is := l.replies[token]; !is {
		l.order = append(l.order, token)
	}
	l.replies[token] = lastReply{sha256.Sum256(answer), reply}
	if len(l.order) > maxLasts {
		delete(l.replies, l.order[0])
		l.order = l.order[1:]
	}
}

// of returns the reply to an answer to an offer which is over: the former one, if it is the last answer once more.
func (l *lasts) of(token string, answer []byte) []byte {
	if r, is := l.replies[token]; is && r.answer == sha256.Sum256(answer) {
		return r.reply
	}
	return over
}

// over is the reply to the answer to an offer which is over.
var over = []byte(`{"over":true}`)

// Offer hands work to a performer. See port.Performers.
func (p *performers) Offer(action, queue string, request func(answer, cancel string) []byte, deliver func(model.Answer)) (end func(stop bool), err error) {
	if err := checkWork(action, queue); err != nil {
		return nil, err
	}
	answers, cancel := rand.Text(), p.Names.WorkCancel(rand.Text())
	name, err := p.open(answers, deliver)
	if err != nil {
		return nil, p.orStopped(err)
	}
	m := nats.NewMsg(p.Names.Work(action, queue))
	m.Reply = p.Names.WorkAnswer(name, answers)
	m.Data = request(m.Reply, cancel)
	if size, limit := m.Size(), p.MaxPayload(); size > limit {
		p.forget(answers)
		return nil, wire.TooLargeError("work of action "+action, size, limit)
	}
	if err := p.NC.PublishMsg(m); err != nil {
		p.forget(answers)
		return nil, p.orStopped(err)
	}
	return func(stop bool) {
		if p.forget(answers) && stop {
			_ = p.Publish(cancel, nil) // the performer learns it from its next answer, too
		}
	}, nil
}

func checkWork(action, queue string) error {
	if err := model.CheckName("action", action); err != nil {
		return err
	}
	if queue == "" {
		return nil
	}
	return model.CheckName("queue", queue)
}

// orStopped returns model.ErrStopped if the bus is stopped, and otherwise the error.
func (p *performers) orStopped(err error) error {
	if p.NC.IsClosed() {
		return model.ErrStopped
	}
	return err
}

// open has the answers to an offer delivered, and returns the name of the connection.
func (p *performers) open(token string, deliver func(model.Answer)) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.name == "" {
		name := rand.Text()
		if _, err := p.NC.Subscribe(p.Names.WorkAnswers(name), p.answered); err != nil {
			return "", err
		}
		p.name, p.offers = name, map[string]func(model.Answer){}
	}
	p.offers[token] = deliver
	return p.name, nil
}

// forget ends an offer, and reports whether it had not ended before.
func (p *performers) forget(token string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, is := p.offers[token]
	delete(p.offers, token)
	return is
}

// answered delivers an answer, or refuses it if its offer is over.
func (p *performers) answered(m *nats.Msg) {
	token, late := wire.LastToken(m.Subject), over
	p.mu.Lock()
	deliver := p.offers[token]
	if deliver == nil {
		late = p.lasts.of(token, m.Data)
	}
	p.mu.Unlock()
	a := model.Answer{Data: m.Data, NoPerformer: nobodyListened(m)}
	if m.Reply != "" && p.Answers(m.Reply, "answer of a performer", m.Subject) {
		a.Reply = func(text []byte) { _ = p.NC.Publish(m.Reply, text) } // the performer asks again
		a.Last = func(text []byte) {
			p.mu.Lock()
			p.lasts.remember(token, m.Data, text)
			p.mu.Unlock()
			a.Reply(text)
		}
	}
	switch {
	case deliver != nil:
		deliver(a)
	case a.Reply != nil:
		a.Reply(late)
	}
}
