package events

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bench/harness"
)

// hand is what a careful team writes by hand on JetStream: a durable consumer, a KV bucket with the state of each entity
// and the sequence of the last message in it, so that a message that is delivered again has no effect, and an answer to the
// sender. Duplicates are refused by message id, within the window of the stream. States are cached in the worker, and a
// goroutine per entity keeps its messages in order. It relies on being the only worker.
type hand struct {
	// batches makes a worker apply all messages of an entity that have arrived, and write its state once.
	batches bool
}

func (h hand) Name() string {
	if h.batches {
		return "by hand, batches"
	}
	return base
}

func (h hand) About() string {
	if h.batches {
		return "the same, and all messages of an entity that have arrived are one write of its state"
	}
	return "a JetStream consumer and a KV bucket, one write per message, states cached, answers over core NATS"
}

// handEvent is the payload of a message.
type handEvent struct {
	N int64 `json:"n,omitzero"`
	// Path has the entities that the handler's successors go to, Chain the id of a chain.
	Path  []string `json:"path,omitempty"`
	Chain string   `json:"chain,omitempty"`
	Reply string   `json:"reply,omitempty"`
}

// handState is the value of a key: the state, and the last message that it contains.
type handState struct {
	State
	Seq uint64 `json:"seq"`
}

func handNames(engine string) (stream, subject string) {
	name := "HAND"
	if strings.HasSuffix(engine, "batches") {
		name = "HANDB"
	}
	return name, strings.ToLower(name)
}

// handKey is the key of an entity; the parts of its name are tokens, so that a watch can name all of a kind.
func handKey(entity string) string { return strings.ReplaceAll(entity, "-", ".") }

// handWorker is the process that handles messages.
type handWorker struct {
	js      jetstream.JetStream
	nc      *nats.Conn
	kv      jetstream.KeyValue
	subject string
	batches bool

	entities map[string]*handEntity // of the consumer's goroutine
}

type handEntity struct {
	key      string
	mu       sync.Mutex
	queue    []jetstream.Msg
	arrived  chan struct{}
	state    handState // from here on of the entity's goroutine
	revision uint64
	loaded   bool
}

func serveHand(r harness.Role) error {
	nc, err := nats.Connect(r.URL)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx := context.Background()
	stream, subject := handNames(r.Engine)
	kv, err := js.KeyValue(ctx, stream)
	if err != nil {
		return err
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 50_000})
	if err != nil {
		return err
	}
	w := &handWorker{js: js, nc: nc, kv: kv, subject: subject, batches: strings.HasSuffix(r.Engine, "batches"), entities: map[string]*handEntity{}}
	consuming, err := consumer.Consume(w.take, jetstream.PullMaxMessages(5000))
	if err != nil {
		return err
	}
	defer consuming.Stop()
	return harness.ServeRole()
}

// take queues a message at its entity.
func (w *handWorker) take(m jetstream.Msg) {
	key := strings.TrimPrefix(m.Subject(), w.subject+".")
	e := w.entities[key]
	if e == nil {
		e = &handEntity{key: key, arrived: make(chan struct{}, 1)}
		w.entities[key] = e
		go w.serve(e)
	}
	e.mu.Lock()
	e.queue = append(e.queue, m)
	e.mu.Unlock()
	select {
	case e.arrived <- struct{}{}:
	default:
	}
}

// serve is the loop of an entity.
func (w *handWorker) serve(e *handEntity) {
	for range e.arrived {
		e.mu.Lock()
		batch := e.queue
		e.queue = nil
		e.mu.Unlock()
		for len(batch) > 0 {
			n := 1
			if w.batches {
				n = len(batch)
			}
			if err := w.handle(e, batch[:n]); err != nil {
				e.loaded = false
				for _, m := range batch {
					_ = m.Nak() // if it does not arrive, the message comes again after AckWait
				}
				break
			}
			batch = batch[n:]
		}
	}
}

// handle applies messages, stores the state, and then acknowledges and answers them.
func (w *handWorker) handle(e *handEntity, batch []jetstream.Msg) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := w.load(ctx, e); err != nil {
		return err
	}
	next := e.state
	counts, events := make([]int64, len(batch)), make([]handEvent, len(batch))
	var sends []jetstream.PubAckFuture
	for i, m := range batch {
		meta, err := m.Metadata()
		if err == nil {
			err = json.Unmarshal(m.Data(), &events[i])
		}
		if err != nil {
			return err
		}
		if seq := meta.Sequence.Stream; seq > next.Seq {
			next.Seq = seq
			next.Apply(events[i].N)
			if ev := &events[i]; ev.Chain != "" && len(ev.Path) == 0 {
				next.Ended++
			} else if ev.Chain != "" {
				f, err := w.forward(ev)
				if err != nil {
					return err
				}
				sends = append(sends, f)
			}
		}
		counts[i] = next.Count
	}
	if next.Seq > e.state.Seq {
		data, err := json.Marshal(next)
		if err != nil {
			return err
		}
		if e.revision, err = w.kv.Update(ctx, e.key, data, e.revision); err != nil {
			return err
		}
		e.state = next
	}
	for _, f := range sends {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for i, m := range batch {
		if err := m.Ack(); err != nil {
			return err
		}
		if to := events[i].Reply; to != "" && (events[i].Chain == "" || len(events[i].Path) == 0) {
			_ = w.nc.Publish(to, strconv.AppendInt(nil, counts[i], 10)) // a sender that gets none asks again
		}
	}
	return nil
}

func (w *handWorker) load(ctx context.Context, e *handEntity) error {
	if e.loaded {
		return nil
	}
	entry, err := w.kv.Get(ctx, e.key)
	e.state, e.revision, e.loaded = handState{}, 0, true
	if err == nil {
		e.revision = entry.Revision()
		err = json.Unmarshal(entry.Value(), &e.state)
	} else if errors.Is(err, jetstream.ErrKeyNotFound) {
		err = nil
	}
	return err
}

// forward sends the next event of a chain. Its id is the same if the handler runs again.
func (w *handWorker) forward(ev *handEvent) (jetstream.PubAckFuture, error) {
	data, err := json.Marshal(handEvent{Path: ev.Path[1:], Chain: ev.Chain, Reply: ev.Reply})
	if err != nil {
		return nil, err
	}
	return w.js.PublishAsync(w.subject+"."+ev.Path[0], data, jetstream.WithMsgID(ev.Chain+"/"+strconv.Itoa(len(ev.Path))))
}

// handSystem is the client.
type handSystem struct {
	at      *harness.Site
	engine  string
	nc      *nats.Conn
	js      jetstream.JetStream
	kv      jetstream.KeyValue
	stream  string
	subject string
	process *harness.Process

	inbox   string
	mu      sync.Mutex
	waiting map[string]chan int64
	next    uint64
}

// Start creates the stream and the bucket, and starts the worker.
func (h hand) Start(ctx context.Context, at *harness.Site) (System, error) {
	nc, err := nats.Connect(at.Servers.URL())
	if err != nil {
		return nil, err
	}
	s := &handSystem{at: at, engine: h.Name(), nc: nc, waiting: map[string]chan int64{}, inbox: nats.NewInbox()}
	s.stream, s.subject = handNames(h.Name())
	if s.js, err = jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(30_000)); err != nil {
		return nil, err
	}
	replicas := cmp.Or(at.Servers.Size()/3*3, 1)
	if _, err := s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: s.stream, Subjects: []string{s.subject + ".>"}, Duplicates: 2 * time.Minute, Replicas: replicas}); err != nil {
		return nil, err
	}
	if s.kv, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: s.stream, Replicas: replicas}); err != nil {
		return nil, err
	}
	if _, err := nc.Subscribe(s.inbox+".*", s.answered); err != nil {
		return nil, err
	}
	return s, s.Restart(ctx)
}

// Restart starts the worker, after it has ended the one before.
func (s *handSystem) Restart(context.Context) (err error) {
	if s.process != nil {
		_ = s.process.Stop() // it may have failed, and is replaced
	}
	s.process, err = harness.StartRole(harness.Role{Engine: s.engine, URL: s.at.Servers.URL(), Size: s.at.Servers.Size()})
	return err
}

func (s *handSystem) answered(m *nats.Msg) {
	token := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	count, _ := strconv.ParseInt(string(m.Data), 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.waiting[token]; ch != nil {
		ch <- count // has room for one
		delete(s.waiting, token)
	}
}

// call publishes an event and waits for its answer.
func (s *handSystem) call(ctx context.Context, entity, id string, ev handEvent) (int64, error) {
	ch := make(chan int64, 1)
	s.mu.Lock()
	s.next++
	token := strconv.FormatUint(s.next, 36)
	s.waiting[token] = ch
	s.mu.Unlock()
	ev.Reply = s.inbox + "." + token
	f, err := s.publish(entity, id, ev)
	if err != nil {
		return 0, err
	}
	select {
	case count := <-ch:
		return count, nil
	case err := <-f.Err():
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(patience):
		return 0, errors.New("no answer")
	}
}

func (s *handSystem) publish(entity, id string, ev handEvent) (jetstream.PubAckFuture, error) {
	data, err := json.Marshal(ev)
	if err != nil {
		return nil, err
	}
	key := handKey(entity)
	return s.js.PublishAsync(s.subject+"."+key, data, jetstream.WithMsgID(key+"/"+id), jetstream.WithStallWait(patience))
}

func (s *handSystem) Add(ctx context.Context, entity, id string) (int64, error) {
	return s.call(ctx, entity, id, handEvent{})
}

func (s *handSystem) Post(ctx context.Context, entity, id string) error {
	f, err := s.publish(entity, id, handEvent{})
	if err != nil {
		return err
	}
	select {
	case <-f.Ok():
		return nil
	case err := <-f.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *handSystem) Pour(ctx context.Context, entities []string, n int) error {
	for i := 1; i < n; i++ {
		for _, e := range entities {
			if _, err := s.publish(e, "p"+strconv.Itoa(i), handEvent{N: int64(i)}); err != nil {
				return err
			}
		}
	}
	return inParallel(ctx, len(entities), func(ctx context.Context, i int) error {
		_, err := s.call(ctx, entities[i], "p"+strconv.Itoa(n), handEvent{N: int64(n)})
		return err
	})
}

func (s *handSystem) Chain(ctx context.Context, entities []string, id string) error {
	var path []string
	for _, e := range entities[1:] {
		path = append(path, handKey(e))
	}
	_, err := s.call(ctx, entities[0], id, handEvent{Path: path, Chain: entities[0] + "/" + id})
	return err
}

func (s *handSystem) State(ctx context.Context, entity string) (st State, err error) {
	e, err := s.kv.Get(ctx, handKey(entity))
	if err != nil {
		return st, err
	}
	return st, json.Unmarshal(e.Value(), &st)
}

func (s *handSystem) Watch(ctx context.Context, entity string, each func(count int64)) error {
	return s.follow(ctx, handKey(entity), func(_ string, count int64) { each(count) })
}

func (s *handSystem) follow(ctx context.Context, keys string, each func(key string, count int64)) error {
	w, err := s.kv.Watch(ctx, keys)
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }() // ends with the connection at the latest
	for {
		select {
		case e := <-w.Updates():
			if e == nil {
				continue // all present values were received
			}
			var st State
			if err := json.Unmarshal(e.Value(), &st); err != nil {
				return err
			}
			each(e.Key(), st.Count)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// FanIn keeps the last count of each key, and the sum.
func (s *handSystem) FanIn(ctx context.Context, _, prefix string, n int, each func(sum int64)) error {
	counts, sum := map[string]int64{}, int64(0)
	return s.follow(ctx, handKey(prefix)+"*", func(key string, count int64) {
		sum += count - counts[key]
		counts[key] = count
		if len(counts) == n {
			each(sum)
		}
	})
}

func (s *handSystem) Fill(ctx context.Context, entity string, n int) error {
	return inParallel(ctx, n, func(ctx context.Context, i int) error {
		_, err := s.kv.Put(ctx, handKey(entity)+".d"+strconv.Itoa(i), strconv.AppendInt(nil, int64(i), 10))
		return err
	})
}

func (s *handSystem) Read(ctx context.Context, entity string, i int) (int64, error) {
	e, err := s.kv.Get(ctx, handKey(entity)+".d"+strconv.Itoa(i))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(e.Value()), 10, 64)
}

func (s *handSystem) Parts() harness.Parts {
	return harness.Parts{Workers: []*harness.Process{s.process}}
}

func (s *handSystem) Close() error {
	err := s.process.Stop()
	s.nc.Close()
	return err
}
