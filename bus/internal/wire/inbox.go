package wire

import (
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
)

// batchInbox receives the answers to all batches of a connection by one subscription. One for each batch would be
// two changes of the servers' interest for each read, in every server of the cluster.
type batchInbox struct {
	mu      sync.Mutex
	sub     *nats.Subscription
	prefix  string
	last    uint64
	waiting map[string]chan *nats.Msg // by the last token of the subject
}

// open returns a subject for the answers to one request, and the channel in which they arrive: up to room of them,
// so that none is dropped. end closes it; later answers are dropped.
func (b *batchInbox) open(nc *nats.Conn, room int) (subject string, replies <-chan *nats.Msg, end func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.sub == nil || !b.sub.IsValid() {
		if err := b.subscribe(nc); err != nil {
			return "", nil, nil, err
		}
	}
	b.last++
	token, ch := strconv.FormatUint(b.last, 36), make(chan *nats.Msg, room)
	b.waiting[token] = ch
	return b.prefix + token, ch, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting, token)
	}, nil
}

func (b *batchInbox) subscribe(nc *nats.Conn) error {
	prefix := nc.NewInbox() + "."
	sub, err := nc.Subscribe(prefix+"*", b.receive)
	if err != nil {
		return err
	}
	_ = sub.SetPendingLimits(-1, -1) // the requests bound what is under way, and receive does not block
	b.sub, b.prefix = sub, prefix
	if b.waiting == nil {
		b.waiting = map[string]chan *nats.Msg{}
	}
	return nil
}

func (b *batchInbox) receive(m *nats.Msg) {
	token := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.waiting[token] <- m:
	default: // nil: the request has ended; full: more than was requested, and the batch shows that one is missing
	}
}
