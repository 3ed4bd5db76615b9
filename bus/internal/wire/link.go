package wire

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

// Link is the connection of a process to the JetStream of a deployment: it makes requests and reads, repeated
// until there is an answer, and knows the names of the streams. It remembers nothing that it reads.
type Link struct {
	Name, Version string // of the process, and of its program
	Names         Names
	AckTimeout    time.Duration
	NC            *nats.Conn
	JS            jetstream.JetStream
	API           string // prefix of JetStream API subjects, with its dot
	KV            string // what precedes $KV subjects when writing: api in another domain
	Log           *slog.Logger
	// Faults logs faults that may last.
	Faults *faultlog.Log
	// denied is the last permissions violation of this user, nil if there was none.
	denied  atomic.Pointer[denial]
	passes  passes
	batches batchInbox

	deployment deployment
	Clustered  atomic.Bool // the assets are, or may be, in a cluster
	Timing     Timing

	Reconnects signal
	Stopped    chan struct{} // closed when the bus has ended
	stopOnce   sync.Once
}

// deployment is what was chosen when the deployment was created.
type deployment struct{ partitions, horizon atomic.Int64 }

// Adopt sets the number of partitions and the horizon of the deployment.
func (l *Link) Adopt(partitions int, horizon time.Duration) {
	l.deployment.partitions.Store(int64(partitions))
	l.deployment.horizon.Store(int64(horizon))
}

// LinkConfig is the configuration of a link.
type LinkConfig struct {
	Name, Version, Prefix string
	AckTimeout            time.Duration
	Log                   *slog.Logger
}

func NewLink(c LinkConfig) *Link {
	return &Link{
		Name: c.Name, Version: c.Version, Names: NewNames(c.Prefix), AckTimeout: c.AckTimeout,
		Log: c.Log, Faults: faultlog.New(c.Log), Timing: defaultTiming, Stopped: make(chan struct{}),
	}
}

// Timing holds the durations that only tests change.
type Timing struct {
	PastLimit time.Duration // see appending.answerFromThePast
	HeadCheck time.Duration // how often FollowSpace compares the head
	Heartbeat time.Duration // how often an idle consumer shows that it is alive
	GoneAfter time.Duration // how long a subscription waits for a missing stream
	Placement time.Duration // how long a stream waits for the servers of its replicas
	Absent    time.Duration // how long a cluster reports that there is no stream before that is believed
	PastCheck time.Duration // how often the remembered messages are compared with the streams
	Silent    time.Duration // how long a stream may be silent before Defects counts it as not answering
}

var defaultTiming = Timing{
	PastLimit: pastLimit,
	HeadCheck: 5 * time.Second,
	Heartbeat: 2 * time.Second,
	GoneAfter: 30 * time.Second,
	PastCheck: 30 * time.Second,
	Silent:    10 * time.Second,
	// Longer than the ten seconds after which each server of a cluster repeats its status
	// to the others: until then, nothing is placed on it.
	Placement: 15 * time.Second,
	Absent:    time.Second,
}

// useAPI selects the JetStream domain or prefix that the context requests.
func (l *Link) useAPI(s APISettings) (err error) {
	patient := jetstream.WithDefaultTimeout(apiPatience)
	switch {
	case s.APIPrefix != "":
		l.JS, err = jetstream.NewWithAPIPrefix(l.NC, s.APIPrefix, patient)
	case s.Domain != "":
		l.JS, err = jetstream.NewWithDomain(l.NC, s.Domain, patient)
	default:
		l.JS, err = jetstream.New(l.NC, patient)
	}
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	l.API = apiSubjects(s)
	if l.API != jetstream.DefaultAPIPrefix {
		l.KV = l.API
	}
	return nil
}

// UseImported makes requests to the JetStream API under the subject to which an account without streams imports it. It must be called
// before anything else uses the link.
func (l *Link) UseImported() error { return l.useAPI(APISettings{APIPrefix: l.Names.ImportedAPI()}) }

// Imported reports whether UseImported was called.
func (l *Link) Imported() bool { return l.API == l.Names.ImportedAPI() }

// APISettings are the settings of a nats context about the JetStream API.
type APISettings struct{ Domain, APIPrefix string }

// apiPatience is the timeout of JetStream API requests without a deadline. This package's
// own requests have one, and are repeated.
const apiPatience = 30 * time.Second

func apiSubjects(s APISettings) string {
	switch {
	case s.APIPrefix != "" && s.APIPrefix[len(s.APIPrefix)-1] == '.':
		return s.APIPrefix
	case s.APIPrefix != "":
		return s.APIPrefix + "."
	case s.Domain != "":
		return "$JS." + s.Domain + ".API."
	}
	return jetstream.DefaultAPIPrefix
}

// Partitions returns the number of partitions of the deployment.
func (l *Link) Partitions() int { return int(l.deployment.partitions.Load()) }

// Horizon returns how long the deployment remembers events.
func (l *Link) Horizon() time.Duration { return time.Duration(l.deployment.horizon.Load()) }

// MaxPayload returns the largest message that the server accepts, in bytes, headers
// included.
func (l *Link) MaxPayload() int { return int(l.NC.MaxPayload()) }

func (l *Link) PartitionOf(space string) int { return model.PartitionOf(space, l.Partitions()) }

// CheckPartition rejects a number that is no partition before it becomes part of a name.
func (l *Link) CheckPartition(p int) error {
	if n := l.Partitions(); p < 0 || p >= n {
		return fmt.Errorf("partition %d does not exist: the deployment has %d, numbered from 0", p, n)
	}
	return nil
}

// Persist repeats a read as long as another try may succeed, until ctx ends or the
// bus is stopped.
func (l *Link) Persist(ctx context.Context, read func(context.Context) error) error {
	for try := 1; ; try++ {
		err := read(ctx)
		if !errors.Is(err, ErrTransient) {
			return err
		}
		if stop := l.Sleep(ctx, Pause(try)); stop != nil {
			return fmt.Errorf("%w (last: %w)", stop, err)
		}
	}
}

// Transient marks an error of the connection as one that is worth another try;
// persist ends the tries when the bus is stopped.
func Transient(err error) error { return fmt.Errorf("%w: %w", ErrTransient, err) }

// Sleep waits, and returns early with the reason if ctx or the bus has ended.
func (l *Link) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return l.Over(ctx)
	case <-ctx.Done():
		return ctx.Err()
	case <-l.Stopped:
		return model.ErrStopped
	}
}

// Over returns why nothing more should be done for ctx, nil if it should.
func (l *Link) Over(ctx context.Context) error {
	select {
	case <-l.Stopped:
		return model.ErrStopped
	default:
		return ctx.Err()
	}
}

// Bounded adds a deadline to a context that has none.
func (l *Link) Bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, bounded := ctx.Deadline(); bounded {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, 2*l.AckTimeout)
}

// Publish sends a message without acknowledgement.
func (l *Link) Publish(subject string, body []byte) error {
	if err := l.Over(context.Background()); err != nil {
		return err
	}
	if err := l.NC.Publish(subject, body); err != nil {
		return fmt.Errorf("publish to %s: %w", subject, err)
	}
	return nil
}

// Listen delivers the messages of a subject on the caller's goroutine, until ctx
// ends or the bus is stopped. The connection renews the subscription by itself.
func (l *Link) Listen(ctx context.Context, deliver func(*nats.Msg), subjects ...string) error {
	messages := make(chan *nats.Msg, topicRoom)
	for _, subject := range subjects {
		sub, err := l.NC.ChanSubscribe(subject, messages)
		if err != nil {
			if over := l.Over(ctx); over != nil {
				return over
			}
			return fmt.Errorf("subscribe to %s: %w", subject, err)
		}
		defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	}
	for {
		select {
		case m := <-messages:
			deliver(m)
		case <-ctx.Done():
			return ctx.Err()
		case <-l.Stopped:
			return model.ErrStopped
		}
	}
}

// topicRoom is how many leases or roll calls may wait to be delivered. More are
// dropped: they are renewed anyway.
const topicRoom = 4096

// Flush returns when the server has every subscription that was made before. A slow server
// is asked again, for as long as one attempt of any request may take.
func (l *Link) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, AskPatience)
	defer cancel()
	return l.Persist(ctx, func(context.Context) error {
		if err := l.NC.FlushTimeout(l.AckTimeout); err != nil {
			return Transient(err)
		}
		return nil
	})
}

// AskPatience is how long one attempt of a request may take: it can get lost with
// the process that received it.
const AskPatience = 15 * time.Second

// answersFor queries a stream once.
func (l *Link) answersFor(ctx context.Context, stream string) error {
	_, err := l.JS.Stream(ctx, stream)
	return err
}

// pastLimit is how long a head from before a.Expect is attributed to a leader that
// does not know of its successor yet. Elections take 4 to 9 s.
const pastLimit = 30 * time.Second
