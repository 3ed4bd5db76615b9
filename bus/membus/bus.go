package membus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/settlehq/settle/model"
)

// Partitions is the number of partitions of the deployment.
func (cl *client) Partitions() int { return cl.server.Partitions() }

// Horizon is for how long the deployment remembers events.
func (cl *client) Horizon() time.Duration { return cl.server.Horizon() }

// MaxPayload is the largest message in bytes, headers included.
func (cl *client) MaxPayload() int { return cl.server.MaxPayload() }

// Append appends a commit if the space's head is where a.Expect says.
func (c *logClient) Append(a model.Append, done func(seq uint64, err error)) {
	if err := model.CheckName("space", a.Space); err != nil {
		go done(0, err) // ends when done returns
		return
	}
	r := storing(Op{Label: "append", Space: a.Space}, func(op Op) func() {
		seq, err := c.server.Append(a)
		c.tell(Step{Moment: Arrives, Op: op, Append: &a, Seq: seq, Err: err})
		if c.net != nil && errors.Is(err, model.ErrRefused) && c.server.Head(a.Space) > a.Expect {
			return func() { c.askOwner(a, err, done) }
		}
		return func() { done(c.classify(a, seq, err)) } // a log that ends before a.Expect has nothing to tell
	}, func() { done(0, model.ErrStopped) })
	r.epoch, r.rewound = a.Epoch, func() { done(0, fmt.Errorf("append %s of space %s: %w", a.ID, a.Space, model.ErrRewound)) }
	c.submit(r)
}

// askOwner is classify for a client that is connected through a network: a request of
// its own. There is a commit behind a.Expect, so an answer without one is from the past.
func (c *logClient) askOwner(a model.Append, refused error, done func(seq uint64, err error)) {
	c.submit(&request{
		op: Op{Label: "owned", Space: a.Space},
		recall: func(behind int) func() {
			next := c.server.readLogBehind(a.Space, a.Expect, 1, behind)
			return func() {
				switch {
				case len(next) == 0:
					c.askOwner(a, refused, done)
				case next[0].ID == a.ID && next[0].Prev == a.Expect:
					done(next[0].Seq, nil)
				default:
					done(0, fmt.Errorf("append %s of space %s behind %d: %w", a.ID, a.Space, a.Expect, refused))
				}
			}
		},
		stopped: func() { done(0, model.ErrStopped) },
	})
}

// classify finds out whose commit a refused append has lost against. It asks
// after every refusal, not only after a second try: a duplicate on the network
// may have brought the refusal of a first one.
func (c *logClient) classify(a model.Append, seq uint64, err error) (uint64, error) {
	if !errors.Is(err, model.ErrRefused) {
		return seq, err
	}
	if own, stored := c.server.Owned(a); stored {
		return own, nil
	}
	return 0, fmt.Errorf("append %s of space %s behind %d: %w", a.ID, a.Space, a.Expect, err)
}

// Head is the sequence of the space's last commit.
func (c *logClient) Head(ctx context.Context, space string) (uint64, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	return recall(ctx, c.client, Op{Label: "head", Space: space}, func(behind int) uint64 { return c.server.headBehind(space, behind) })
}

// ReadLog returns up to limit entries of the space behind after.
func (c *logClient) ReadLog(ctx context.Context, space string, after uint64, limit int) ([]model.LogEntry, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	return recall(ctx, c.client, Op{Label: "read-log", Space: space}, func(behind int) []model.LogEntry {
		return c.server.readLogBehind(space, after, limit, behind)
	})
}

// Send stores an event unless its id is in the lane.
func (c *laneClient) Send(m model.Message, done func(model.SendResult, error)) {
	c.sendTo(model.PartitionOf(m.Space, c.Partitions()), Op{Label: "send", Space: m.Space}, m, done)
}

// SendAstray is Send to the lane of a partition that need not be its own: see Server.SendTo.
func (c *laneClient) SendAstray(partition int, m model.Message, done func(model.SendResult, error)) {
	c.sendTo(partition, Op{Label: "send-astray", Space: m.Space, Key: number(partition)}, m, done)
}

func (c *laneClient) sendTo(partition int, op Op, m model.Message, done func(model.SendResult, error)) {
	if err := checkMessage(m); err != nil {
		go done(model.SendResult{}, err) // ends when done returns
		return
	}
	r := storing(op, func(op Op) func() {
		result, err := c.server.SendTo(partition, m)
		c.tell(Step{Moment: Arrives, Op: op, Event: &m, Seq: result.Seq, Err: err})
		return func() { done(result, err) }
	}, func() { done(model.SendResult{}, model.ErrStopped) })
	if m.Bound {
		r.epoch, r.rewound = m.Epoch, func() { done(model.SendResult{}, fmt.Errorf("send event %s: %w", m.ID, model.ErrRewound)) }
	}
	m.Bound, m.Epoch = false, 0 // neither is stored
	c.submit(r)
}

func checkMessage(m model.Message) error {
	if err := model.CheckName("space", m.Space); err != nil {
		return err
	}
	if err := model.CheckName("stream", m.Stream); err != nil {
		return err
	}
	return model.CheckAnyEventID(m.ID)
}

// ReadLane returns up to limit events of one space behind after.
func (c *laneClient) ReadLane(ctx context.Context, space string, after uint64, limit int) ([]model.Message, error) {
	if err := model.CheckName("space", space); err != nil {
		return nil, err
	}
	return recall(ctx, c.client, Op{Label: "read-lane", Space: space}, func(behind int) []model.Message {
		return c.server.readLaneBehind(space, after, limit, behind)
	})
}

// CountLane counts the events of one space in a part of its lane.
func (c *laneClient) CountLane(ctx context.Context, space string, after, upTo uint64) (int, error) {
	if err := model.CheckName("space", space); err != nil {
		return 0, err
	}
	return recall(ctx, c.client, Op{Label: "count-lane", Space: space}, func(int) int { return c.server.CountLane(space, after, upTo) })
}

// FindEvent returns the event of that name, if the lane has one.
func (c *laneClient) FindEvent(ctx context.Context, space, stream, id string) (model.Message, bool, error) {
	if err := checkMessage(model.Message{Space: space, Stream: stream, ID: id}); err != nil {
		return model.Message{}, false, err
	}
	type answer struct {
		m  model.Message
		ok bool
	}
	a, err := recall(ctx, c.client, Op{Label: "find-event", Space: space, Key: stream + "." + id}, func(behind int) answer {
		m, ok := c.server.findEventBehind(space, stream, id, behind)
		return answer{m, ok}
	})
	return a.m, a.ok, err
}

// LaneEnd is the last sequence of a partition's lane.
func (c *laneClient) LaneEnd(ctx context.Context, partition int) (uint64, error) {
	if err := c.server.checkPartition(partition); err != nil {
		return 0, err
	}
	return recall(ctx, c.client, Op{Label: "lane-end", Key: number(partition)}, func(behind int) uint64 { return c.server.laneEndBehind(partition, behind) })
}

// Observe tells the owner of a space that somebody watches one of its documents.
func (c *memberClient) Observe(l model.Lease) error {
	if err := l.Check(); err != nil {
		return err
	}
	return c.publish(Op{Label: "observe", Space: l.Space, Key: l.Doc}, func() { c.server.Observe(l) })
}

// CallRoll asks those who observe spaces of a partition to say so again.
func (c *memberClient) CallRoll(partition int) error {
	if err := c.server.checkPartition(partition); err != nil {
		return err
	}
	return c.publish(Op{Label: "call-roll", Key: number(partition)}, func() { c.server.CallRoll(partition) })
}

func number(partition int) string { return strconv.Itoa(partition) }

// publish submits a message that nobody acknowledges: it is sent at most once,
// and its answer is that there is none.
func (cl *client) publish(op Op, arrive func()) error {
	if err := cl.err(context.Background()); err != nil {
		return err
	}
	if cl.net != nil {
		cl.post(op, arrive)
		return nil
	}
	cl.submit(&request{
		op: op,
		arrive: func(try int) func() {
			if try == 1 {
				arrive()
			}
			return func() {}
		},
		stopped: func() {},
	})
	return nil
}

// Announce says that a member is there.
func (c *memberClient) Announce(ctx context.Context, m model.Member) error {
	if err := model.CheckName("worker", m.ID); err != nil {
		return err
	}
	_, err := ask(ctx, c.client, Op{Label: "announce"}, func(int) bool { c.server.Announce(m); return true })
	return err
}

// AnswerPings makes Ping(id) true until ctx ends.
func (c *memberClient) AnswerPings(ctx context.Context, id string) error {
	if err := model.CheckName("worker", id); err != nil {
		return err
	}
	if err := c.awaitLink(ctx); err != nil {
		return err
	}
	context.AfterFunc(ctx, c.server.Answer(id, c.online))
	return nil
}

// Ping reports whether somebody answers for id.
func (c *memberClient) Ping(ctx context.Context, id string) (bool, error) {
	if err := model.CheckName("worker", id); err != nil {
		return false, err
	}
	return ask(ctx, c.client, Op{Label: "ping", Key: id}, func(int) bool { return c.server.Answering(id) })
}

// Bus is one client of a Server: port.Bus, and port.Records. Its parts share a client and nothing else.
type Bus struct {
	*client
	laneClient
	logClient
	stateClient
	deadClient
	recordClient
	memberClient
	serviceClient
}

type (
	laneClient    struct{ *client } // sends and reads events
	logClient     struct{ *client } // appends and reads commits
	stateClient   struct{ *client } // saves and loads documents and positions
	deadClient    struct{ *client } // stores and reads dead letters
	recordClient  struct{ *client } // stores and reads records
	memberClient  struct{ *client } // announces members, and carries leases
	serviceClient struct{ *client } // asks and answers
)

// Connect attaches a client. It must be ended by Close or Kill.
func (s *Server) Connect(id string) *Bus {
	c := newClient(s, id)
	go c.run() // ends when the client is closed or killed
	return busOf(c)
}

// Dial attaches a client that is connected through a network. It must be ended by
// Close or Kill.
func (s *Server) Dial(id string, net Network) *Bus {
	c := newClient(s, id)
	c.net = net
	c.journeys, c.counts = map[*request]*journey{}, map[countKey]counted{}
	go c.runJourneys() // ends when the client is closed or killed
	return busOf(c)
}

func newClient(s *Server, id string) *client {
	c := &client{id: id, server: s, stopped: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	s.clients[c] = true
	s.mu.Unlock()
	return c
}

func busOf(c *client) *Bus {
	return &Bus{c, laneClient{c}, logClient{c}, stateClient{c}, deadClient{c}, recordClient{c}, memberClient{c}, serviceClient{c}}
}
