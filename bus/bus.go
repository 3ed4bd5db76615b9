package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/internal/faultlog"
	"github.com/settlehq/settle/model"
)

// Bus is one connection to a deployment. It satisfies port.Bus, and may be used
// from many goroutines.
type Bus struct {
	cfg   Config
	names names
	nc    *nats.Conn
	js    jetstream.JetStream
	api   string // prefix of JetStream API subjects, with its dot
	kv    string // what precedes $KV subjects when writing: api in another domain
	log   *slog.Logger
	// faults logs faults that may last.
	faults *faultlog.Log
	// denied is the last permissions violation of this user, nil if there was none.
	denied atomic.Pointer[denial]

	pub        *publisher
	outlets    outlets
	seen       revisions
	past       past
	partitions atomic.Int64
	horizon    atomic.Int64
	clustered  atomic.Bool // the assets are, or may be, in a cluster
	commits    atomic.Bool // the server has confirmed that this user may append to a log, or does not report it
	restoring  bool        // read a deployment that is being restored as if it were not
	timing     timing

	reconnects signal
	stopped    chan struct{} // closed when the bus has ended
	stopOnce   sync.Once
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

// Connect connects to a server and reads the deployment's settings. It creates
// nothing: see Provision. It waits for a cluster without a leader until ctx ends,
// which bounds the call only; the bus lives until Close or Kill, whatever happens to
// the connection. A server that cannot be reached is an error, unless Config.AwaitServer is set.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if cfg.AwaitServer && cfg.Server == nil {
		return connectPatiently(ctx, cfg)
	}
	return connectOnce(ctx, cfg)
}

// newBus returns a bus that is not connected yet.
func newBus(cfg Config) *Bus {
	return &Bus{
		cfg: cfg, names: newNames(cfg.Prefix), log: cfg.Logger, faults: faultlog.New(cfg.Logger), timing: defaultTiming, stopped: make(chan struct{}),
	}
}

// connectOnce fails if no server can be reached now.
func connectOnce(ctx context.Context, cfg Config) (*Bus, error) {
	b := newBus(cfg)
	if err := b.dial(); err != nil {
		return nil, err
	}
	if err := b.open(ctx); err != nil {
		b.Kill()
		return nil, err
	}
	return b, nil
}

// dial makes the connection and everything that depends on it.
func (b *Bus) dial() error {
	conn, err := ResolveConnection(b.cfg, os.Getenv)
	if err != nil {
		return err
	}
	nc, s, err := conn.connect(b.options()...)
	if err != nil {
		return err
	}
	b.nc = nc
	if err := b.useAPI(s); err != nil {
		nc.Close()
		return err
	}
	if b.pub, err = newPublisher(nc, b.cfg.AckTimeout, b.cfg.Faults, &b.past, b.log, b.answersFor); err != nil {
		nc.Close()
		return fmt.Errorf("subscribe to acknowledgements: %w", err)
	}
	b.pub.suspect = b.suspect
	b.watchConnection()
	every := b.timing.pastCheck
	b.pub.running.Go(func() { b.comparePast(every) }) // ends with b.pub.ctx
	return nil
}

// options are those that the guarantees need, then the caller's. Without
// ReconnectBufSize(-1) a message could arrive long after it was given up.
func (b *Bus) options() []nats.Option {
	return append([]nats.Option{
		nats.Name("settle/" + b.cfg.Name),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { // until watchConnection
			b.faults.Warn("NATS reports an error", err.Error(), "error", err)
		}),
	}, b.cfg.Options...)
}

// apiPatience is the timeout of JetStream API requests without a deadline. This package's
// own requests have one, and are repeated.
const apiPatience = 30 * time.Second

// useAPI selects the JetStream domain or prefix that the context requests.
func (b *Bus) useAPI(s settings) (err error) {
	patient := jetstream.WithDefaultTimeout(apiPatience)
	switch {
	case s.apiPrefix != "":
		b.js, err = jetstream.NewWithAPIPrefix(b.nc, s.apiPrefix, patient)
	case s.domain != "":
		b.js, err = jetstream.NewWithDomain(b.nc, s.domain, patient)
	default:
		b.js, err = jetstream.New(b.nc, patient)
	}
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	b.api = apiSubjects(s)
	if b.api != jetstream.DefaultAPIPrefix {
		b.kv = b.api
	}
	return nil
}

func apiSubjects(s settings) string {
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

// open checks the server and reads the number of partitions.
func (b *Bus) open(ctx context.Context) error {
	if err := checkVersion(b.nc.ConnectedServerVersion()); err != nil {
		return err
	}
	b.clustered.Store(b.nc.ConnectedClusterName() != "" || b.kv != "")
	stored, err := b.storedSettings(ctx)
	if err != nil {
		return err
	}
	return b.choose(stored)
}

// choose selects the stored setting, the configured one, or the default, in this order, and
// returns an error if the configured one differs from the stored one.
func (b *Bus) choose(stored settingsOfDeployment) error {
	if n := b.cfg.Partitions; n != 0 && stored.partitions != 0 && n != stored.partitions {
		return partitionsError(b.names.workersBucket(), stored.partitions, n)
	}
	if h := b.cfg.Horizon; h != 0 && stored.horizon != 0 && h != stored.horizon {
		return horizonError(b.names.workersBucket(), stored.horizon, h)
	}
	b.partitions.Store(int64(cmp.Or(stored.partitions, b.cfg.Partitions, DefaultPartitions)))
	b.horizon.Store(int64(cmp.Or(stored.horizon, b.cfg.Horizon, model.DefaultHorizon)))
	return nil
}

// watchConnection reacts to events of the connection. The handlers run one
// at a time on a goroutine of the connection.
func (b *Bus) watchConnection() {
	b.nc.SetDisconnectErrHandler(func(_ *nats.Conn, err error) {
		if err != nil || !b.nc.IsClosed() { // otherwise this bus has closed it
			b.log.Warn("disconnected from NATS; requests wait until it is back", "error", err)
		}
		b.past.suspectAll()
		b.pub.disconnected()
	})
	b.nc.SetReconnectHandler(func(nc *nats.Conn) {
		b.log.Info("reconnected to NATS", "server", nc.ConnectedUrlRedacted())
		if err := checkVersion(nc.ConnectedServerVersion()); err != nil {
			b.log.Error("reconnected to a server that is too old", "error", err)
		}
		b.pub.reconnected() // except requests that wait until their stream has been compared
		b.compareAll()
		b.reconnects.raise()
	})
	b.nc.SetClosedHandler(func(*nats.Conn) { b.end() })
	b.nc.SetErrorHandler(b.connectionError)
}

func (b *Bus) connectionError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrSlowConsumer) {
		b.faults.Warn("messages were dropped because they came faster than they were read; they are read again", sub.Subject, "subject", sub.Subject)
		return
	}
	b.faults.Warn("NATS reports an error", err.Error(), "error", err)
	if errors.Is(err, nats.ErrPermissionViolation) {
		b.denied.Store(&denial{time.Now(), err.Error()})
	}
	if subject := forbiddenSubject(err); subject != "" {
		b.pub.forbid(subject, err)
	}
}

// Close waits until requests in flight have their answers, at most for the
// acknowledgement timeout, ends the rest with model.ErrStopped and closes the
// connection. It must not be called from a callback.
func (b *Bus) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), b.cfg.AckTimeout)
	defer cancel()
	b.pub.drain(ctx)
	b.end()
	b.nc.Close()
	b.pub.wait()
}

// Kill closes the connection at once, as the end of the process would, and ends
// everything with model.ErrStopped. It waits for nothing. It must not be called
// from a callback.
func (b *Bus) Kill() {
	b.nc.Close()
	b.end()
}

// end notifies everything that the bus has ended.
func (b *Bus) end() {
	b.stopOnce.Do(func() { close(b.stopped) })
	b.pub.stop()
}

// Reachable reports whether the bus is connected to a server now.
func (b *Bus) Reachable() bool { return b.nc.IsConnected() }

// Conn returns the connection, for purposes of the program besides Settle,
// such as offering a service. It is closed by Close.
func (b *Bus) Conn() *nats.Conn { return b.nc }

// JetStream returns the JetStream context of the connection, in the
// configured domain, for inspection and administration.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// ConnectionName returns the connection's name in the server's listings.
func (b *Bus) ConnectionName() string { return b.nc.Opts.Name }

// ProgramVersion returns the version of the program, from Config.
func (b *Bus) ProgramVersion() string { return b.cfg.Version }

// Prefix returns the deployment's prefix: its name, and the first token of its subjects.
func (b *Bus) Prefix() string { return b.cfg.Prefix }

// Partitions returns the number of partitions of the deployment.
func (b *Bus) Partitions() int { return int(b.partitions.Load()) }

// Horizon returns how long the deployment remembers events.
func (b *Bus) Horizon() time.Duration { return time.Duration(b.horizon.Load()) }

// MaxPayload returns the largest message that the server accepts, in bytes, headers
// included.
func (b *Bus) MaxPayload() int { return int(b.nc.MaxPayload()) }

func (b *Bus) partitionOf(space string) int { return model.PartitionOf(space, b.Partitions()) }

// checkPartition rejects a number that is no partition before it becomes part of a name.
func (b *Bus) checkPartition(p int) error {
	if n := b.Partitions(); p < 0 || p >= n {
		return fmt.Errorf("partition %d does not exist: the deployment has %d, numbered from 0", p, n)
	}
	return nil
}
