package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/model"
)

// link is the connection of a process to the JetStream of a deployment: it makes requests and reads,
// again and again until there is an answer, and knows the names of the streams. It remembers nothing of
// what it reads.
type link struct {
	name, version string // of the process, and of its program
	names         names
	ackTimeout    time.Duration
	nc            *nats.Conn
	js            jetstream.JetStream
	api           string // prefix of JetStream API subjects, with its dot
	kv            string // what precedes $KV subjects when writing: api in another domain
	log           *slog.Logger
	// faults logs faults that may last.
	faults *faultlog.Log
	// denied is the last permissions violation of this user, nil if there was none.
	denied atomic.Pointer[denial]

	partitions atomic.Int64
	horizon    atomic.Int64
	clustered  atomic.Bool // the assets are, or may be, in a cluster
	timing     timing

	reconnects signal
	stopped    chan struct{} // closed when the bus has ended
	stopOnce   sync.Once
}

// linkConfig is what a link has to know before it connects.
type linkConfig struct {
	name, version, prefix string
	ackTimeout            time.Duration
	log                   *slog.Logger
}

func newLink(c linkConfig) *link {
	return &link{
		name: c.name, version: c.version, names: newNames(c.prefix), ackTimeout: c.ackTimeout,
		log: c.log, faults: faultlog.New(c.log), timing: defaultTiming, stopped: make(chan struct{}),
	}
}

// timing holds the durations that only tests change.
type timing struct {
	pastLimit time.Duration // see appending.answerFromThePast
	headCheck time.Duration // how often FollowSpace compares the head
	heartbeat time.Duration // how often a quiet consumer shows that it is there
	goneAfter time.Duration // how long a subscription waits for a missing stream
	placement time.Duration // how long a stream waits for the servers of its replicas
	absent    time.Duration // how long a cluster reports that there is no stream before that is believed
	pastCheck time.Duration // how often the remembered messages are compared with the streams
	silent    time.Duration // how long a stream may be silent before Defects counts it as not answering
}

var defaultTiming = timing{
	pastLimit: pastLimit,
	headCheck: 5 * time.Second,
	heartbeat: 2 * time.Second,
	goneAfter: 30 * time.Second,
	pastCheck: 30 * time.Second,
	silent:    10 * time.Second,
	// Longer than the ten seconds after which each server of a cluster repeats its status
	// to the others: until then, nothing is placed on it.
	placement: 15 * time.Second,
	absent:    time.Second,
}

// useAPI selects the JetStream domain or prefix that the context requests.
func (l *link) useAPI(s apiSettings) (err error) {
	patient := jetstream.WithDefaultTimeout(apiPatience)
	switch {
	case s.apiPrefix != "":
		l.js, err = jetstream.NewWithAPIPrefix(l.nc, s.apiPrefix, patient)
	case s.domain != "":
		l.js, err = jetstream.NewWithDomain(l.nc, s.domain, patient)
	default:
		l.js, err = jetstream.New(l.nc, patient)
	}
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	l.api = apiSubjects(s)
	if l.api != jetstream.DefaultAPIPrefix {
		l.kv = l.api
	}
	return nil
}

// apiSettings are the settings of a nats context about the JetStream API.
type apiSettings struct{ domain, apiPrefix string }

// apiPatience is the timeout of JetStream API requests without a deadline. This package's
// own requests have one, and are repeated.
const apiPatience = 30 * time.Second

func apiSubjects(s apiSettings) string {
	switch {
	case s.apiPrefix != "" && s.apiPrefix[len(s.apiPrefix)-1] == '.':
		return s.apiPrefix
	case s.apiPrefix != "":
		return s.apiPrefix + "."
	case s.domain != "":
		return "$JS." + s.domain + ".API."
	}
	return jetstream.DefaultAPIPrefix
}

// Reachable reports whether the bus is connected to a server now.
func (l *link) Reachable() bool { return l.nc.IsConnected() }

// Conn returns the connection, for purposes of the program besides Settle,
// such as offering a service. It is closed by Close.
func (l *link) Conn() *nats.Conn { return l.nc }

// JetStream returns the JetStream context of the connection, in the
// configured domain, for inspection and administration.
func (l *link) JetStream() jetstream.JetStream { return l.js }

// ConnectionName returns the connection's name in the server's listings.
func (l *link) ConnectionName() string { return l.nc.Opts.Name }

// ProgramVersion returns the version of the program, from Config.
func (l *link) ProgramVersion() string { return l.version }

// Prefix returns the deployment's prefix: its name, and the first token of its subjects.
func (l *link) Prefix() string { return l.names.prefix }

// Partitions returns the number of partitions of the deployment.
func (l *link) Partitions() int { return int(l.partitions.Load()) }

// Horizon returns how long the deployment remembers events.
func (l *link) Horizon() time.Duration { return time.Duration(l.horizon.Load()) }

// MaxPayload returns the largest message that the server accepts, in bytes, headers
// included.
func (l *link) MaxPayload() int { return int(l.nc.MaxPayload()) }

func (l *link) partitionOf(space string) int { return model.PartitionOf(space, l.Partitions()) }

// checkPartition rejects a number that is no partition before it becomes part of a name.
func (l *link) checkPartition(p int) error {
	if n := l.Partitions(); p < 0 || p >= n {
		return fmt.Errorf("partition %d does not exist: the deployment has %d, numbered from 0", p, n)
	}
	return nil
}

// persist repeats a read as long as another try may succeed, until ctx ends or the
// bus is stopped.
func (l *link) persist(ctx context.Context, read func(context.Context) error) error {
	for try := 1; ; try++ {
		err := read(ctx)
		if !errors.Is(err, errTransient) {
			return err
		}
		if stop := l.sleep(ctx, pause(try)); stop != nil {
			return fmt.Errorf("%w (last: %w)", stop, err)
		}
	}
}

// transient marks an error of the connection as one that is worth another try;
// persist ends the tries when the bus is stopped.
func transient(err error) error { return fmt.Errorf("%w: %w", errTransient, err) }

// sleep waits, and returns early with the reason if ctx or the bus has ended.
func (l *link) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.over(ctx)
	case <-ctx.Done():
		return ctx.Err()
	case <-l.stopped:
		return model.ErrStopped
	}
}

// over returns why nothing more should be done for ctx, nil if it should.
func (l *link) over(ctx context.Context) error {
	select {
	case <-l.stopped:
		return model.ErrStopped
	default:
		return ctx.Err()
	}
}

// bounded adds a deadline to a context that has none.
func (l *link) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, 2*l.ackTimeout)
}

// publish sends a message without acknowledgement.
func (l *link) publish(subject string, body []byte) error {
	if err := l.over(context.Background()); err != nil {
		return err
	}
	if err := l.nc.Publish(subject, body); err != nil {
		return fmt.Errorf("publish to %s: %w", subject, err)
	}
	return nil
}

// listen delivers the messages of a subject on the caller's goroutine, until ctx
// ends or the bus is stopped. The connection renews the subscription by itself.
func (l *link) listen(ctx context.Context, subject string, deliver func(*nats.Msg)) error {
	messages := make(chan *nats.Msg, topicRoom)
	sub, err := l.nc.ChanSubscribe(subject, messages)
	if err != nil {
		if over := l.over(ctx); over != nil {
			return over
		}
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	for {
		select {
		case m := <-messages:
			deliver(m)
		case <-ctx.Done():
			return ctx.Err()
		case <-l.stopped:
			return model.ErrStopped
		}
	}
}

// topicRoom is how many leases or roll calls may wait to be delivered. More are
// dropped: they are renewed anyway.
const topicRoom = 4096

// flush returns when the server has every subscription that was made before. A slow server
// is asked again, for as long as one attempt of any request may take.
func (l *link) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return l.persist(ctx, func(context.Context) error {
		if err := l.nc.FlushTimeout(l.ackTimeout); err != nil {
			return transient(err)
		}
		return nil
	})
}

// askPatience is how long one attempt of a request may take: it can get lost with
// the process that received it.
const askPatience = 15 * time.Second

// answersFor queries a stream once.
func (l *link) answersFor(ctx context.Context, stream string) error {
	_, err := l.js.Stream(ctx, stream)
	return err
}
