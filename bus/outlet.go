package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// listenRoom is how many parts of an answer may wait to be delivered. More are dropped, as
// if they were lost on the way.
const listenRoom = 1024

// Listen sends a request to one of the processes that serve the endpoint, and delivers the parts of its answer.
// See port.Services. The connection renews the subscription by itself.
func (sv *services) Listen(ctx context.Context, endpoint string, request []byte, deliver func(model.Part)) error {
	if _, _, err := model.CutEndpoint(endpoint); err != nil {
		return err
	}
	if size, limit := len(request), sv.MaxPayload(); size > limit {
		return wire.TooLargeError("question to "+endpoint, size, limit)
	}
	if err := sv.Over(ctx); err != nil {
		return err
	}
	subject := sv.Names.Endpoint(endpoint)
	err := sv.receiveParts(ctx, subject, request, deliver)
	if over := sv.Over(ctx); over != nil {
		return over
	}
	return fmt.Errorf("ask %s: %w", subject, err)
}

func (sv *services) receiveParts(ctx context.Context, subject string, request []byte, deliver func(model.Part)) error {
	parts := make(chan *nats.Msg, listenRoom)
	inbox := sv.NC.NewInbox() // a separate inbox: that of requests keeps its subscription until the connection ends
	sub, err := sv.NC.ChanSubscribe(inbox, parts)
	if err != nil {
		return err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	if err := sv.NC.PublishRequest(subject, inbox, request); err != nil {
		return err
	}
	for {
		select {
		case m := <-parts:
			p := partOf(m)
			switch {
			case nobodyListened(m):
				return model.ErrNoResponder
			case p.Err != nil:
				return p.Err
			}
			deliver(p)
		case <-ctx.Done():
			return ctx.Err()
		case <-sv.Stopped:
			return model.ErrStopped
		}
	}
}

// partOf returns the part in a message.
func partOf(m *nats.Msg) model.Part {
	if code := wire.Header(m.Header, micro.ErrorCodeHeader); code != "" {
		n, _ := strconv.Atoi(code)
		return model.Part{Err: &model.ServiceError{Code: n, Text: wire.Header(m.Header, micro.ErrorHeader)}}
	}
	p := model.Part{Data: m.Data}
	for k := range m.Header { // any order: into a map
		if p.Header == nil {
			p.Header = map[string]string{}
		}
		p.Header[k] = wire.Header(m.Header, k)
	}
	return p
}

// nobodyListened reports whether m is the server's notice that a message had no responders.
func nobodyListened(m *nats.Msg) bool {
	return len(m.Data) == 0 && wire.Header(m.Header, "Status") == "503"
}

// outlet sends the parts of one answer. Each part is sent as a request, so that
// "no responders" reveals a departed client; no answer is expected.
type outlet struct {
	services *services
	to       string
	token    string
	gone     chan struct{}
}

func (sv *services) newOutlet(to string) *outlet {
	o := &outlet{services: sv, to: to, gone: make(chan struct{})}
	if to == "" || sv.outlets.add(sv.NC, o) != nil { // with the connection closed
		close(o.gone)
	}
	return o
}

// Send sends a part. See model.Outlet.
func (o *outlet) Send(p model.Part) error {
	if err := o.services.Over(context.Background()); err != nil {
		return err
	}
	if isClosedChan(o.gone) {
		return errors.New("the listener has left")
	}
	m := nats.NewMsg(o.to)
	m.Reply, m.Data = o.token, p.Data
	for k, v := range p.Header { // any order: into a map
		m.Header.Set(k, v)
	}
	if p.Err != nil {
		m.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(p.Err.Code))
		m.Header.Set(micro.ErrorHeader, oneLine(p.Err.Text))
	}
	if size := m.Size(); size > o.services.MaxPayload() {
		return wire.TooLargeError("part of an answer", size, o.services.MaxPayload())
	}
	return o.services.NC.PublishMsg(m)
}

// oneLine returns text in a form that fits a header.
func oneLine(text string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
}

// Gone is closed when the client has stopped listening. See model.Outlet.
func (o *outlet) Gone() <-chan struct{} { return o.gone }

// SensesGone reports whether Gone can be closed. See model.Outlet.
func (o *outlet) SensesGone() bool { return !wire.IsImported(o.to) }

// Close ends the answer.
func (o *outlet) Close() { o.services.outlets.remove(o) }

// outlets are those of one connection, by the subject on which each receives the
// "no responders" notice. They share a subscription.
type outlets struct {
	mu    sync.Mutex
	inbox string
	next  uint64
	open  map[string]*outlet
}

func (s *outlets) add(nc *nats.Conn, o *outlet) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inbox == "" {
		inbox := nc.NewInbox()
		if _, err := nc.Subscribe(inbox+".*", s.serve); err != nil {
			return err
		}
		s.inbox, s.open = inbox, map[string]*outlet{}
	}
	s.next++
	o.token = s.inbox + "." + strconv.FormatUint(s.next, 36)
	s.open[o.token] = o
	return nil
}

func (s *outlets) serve(m *nats.Msg) {
	if !nobodyListened(m) {
		return // a reply, which was not requested
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.open[m.Subject]; o != nil {
		delete(s.open, m.Subject)
		close(o.gone)
	}
}

func (s *outlets) remove(o *outlet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, o.token)
}

func isClosedChan(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
