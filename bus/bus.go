package bus

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// Bus is one connection to a deployment. It satisfies port.Bus and port.Records, and may be used
// from many goroutines. Each part has what it needs for its own methods, and knows none of the others but
// those that it is built on.
type Bus struct {
	cfg     Config
	streams *wire.Streams

	*lanes
	*logs
	*states
	*records
	*deadLetters
	*rewinds
	*backups
	*members
	*observers
	*services
	*performers
	*provision.Provisioner
}

// Connect connects to a server and reads the deployment's settings. It creates
// nothing: see Provision. It waits for a cluster without a leader until ctx ends,
// which bounds the call only; the bus lives until Close or Kill, whatever happens to
// the connection. A server that cannot be reached is an error, unless Config.AwaitServer is set.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	if err := cfg.Fill(); err != nil {
		return nil, err
	}
	if cfg.AwaitServer && cfg.Server == nil {
		return connectPatiently(ctx, cfg)
	}
	return connectOnce(ctx, cfg)
}

// Config returns the configuration of the connection, for another connection to the same deployment.
func (b *Bus) Config() Config { return b.cfg }

// newBus returns a bus that is not connected yet.
func newBus(cfg Config) *Bus {
	s := &wire.Streams{Link: wire.NewLink(wire.LinkConfig{Name: cfg.Name, Version: cfg.Version, Prefix: cfg.Prefix, AckTimeout: cfg.AckTimeout, Log: cfg.Logger})}
	r := &records{s}
	b := &Bus{
		cfg: cfg, streams: s, records: r,
		lanes: &lanes{s}, logs: &logs{Streams: s}, states: &states{Streams: s},
		deadLetters: &deadLetters{r}, rewinds: &rewinds{r}, backups: &backups{r},
		members: &members{s}, observers: &observers{s}, services: &services{Streams: s, server: cfg.Server}, performers: &performers{Streams: s},
		Provisioner: &provision.Provisioner{Streams: s, Want: provision.Config{
			Partitions: cfg.Partitions, Replicas: cfg.Replicas, Horizon: cfg.Horizon, DeadLetterMaxAge: cfg.DeadLetterMaxAge, LaneMaxBytes: cfg.LaneMaxBytes,
		}},
	}
	s.ForgetRead, s.ReportRewind = b.states.seen.clear, b.rewinds.noteRewind
	return b
}

// Dial connects and reads nothing: the deployment may be missing, or damaged. Packages that examine or restore
// a deployment use it; everything else uses Connect.
func Dial(cfg Config) (*Bus, error) {
	if err := cfg.Fill(); err != nil {
		return nil, err
	}
	b := newBus(cfg)
	if err := b.dial(); err != nil {
		return nil, err
	}
	b.streams.Begin()
	return b, nil
}

// Streams returns the streams below the spaces, for packages that examine or copy them.
func (b *Bus) Streams() *wire.Streams { return b.streams }

// connectOnce fails if no server can be reached now.
func connectOnce(ctx context.Context, cfg Config) (*Bus, error) {
	b := newBus(cfg)
	if err := b.dial(); err != nil {
		return nil, err
	}
	if err := b.readSettings(ctx); err != nil {
		b.Kill()
		return nil, err
	}
	b.streams.Begin()
	return b, nil
}

// dial makes the connection and everything that depends on it.
func (b *Bus) dial() error {
	conn, err := ResolveConnection(b.cfg, os.Getenv)
	if err != nil {
		return err
	}
	nc, api, err := conn.connect(b.options()...)
	if err != nil {
		return err
	}
	if err := findInbox(nc); err != nil {
		nc.Close()
		return err
	}
	if err := b.streams.Open(nc, api, b.cfg.Faults); err != nil {
		nc.Close()
		return err
	}
	return nil
}

// options returns those that the guarantees need, then the caller's. Without
// ReconnectBufSize(-1) a message could arrive long after it was given up.
func (b *Bus) options() []nats.Option {
	return append([]nats.Option{
		nats.Name("settle/" + b.cfg.Name),
		nats.ReconnectBufSize(-1),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { // until watchConnection
			b.streams.Faults.Warn("NATS reports an error", err.Error(), "error", err)
		}),
	}, b.cfg.Options...)
}

// readSettings checks the server and reads the number of partitions.
func (b *Bus) readSettings(ctx context.Context) error {
	if err := wire.CheckVersion(b.streams.NC.ConnectedServerVersion()); err != nil {
		return err
	}
	b.streams.Clustered.Store(b.streams.NC.ConnectedClusterName() != "" || b.streams.KV != "")
	stored, err := b.StoredSettings(ctx)
	if errors.Is(err, wire.ErrNoJetStream) && b.streams.API == jetstream.DefaultAPIPrefix {
		stored, err = b.importedSettings(ctx, err)
	}
	if err != nil {
		return err
	}
	return b.Choose(stored)
}

// importedSettings reads the settings as a user of an account that imports what it needs from that of the streams. If the account imports
// nothing, the error is the one from before.
func (b *Bus) importedSettings(ctx context.Context, before error) (stored provision.Settings, err error) {
	if err := b.streams.UseImported(); err != nil {
		return stored, err
	}
	stored, err = b.StoredSettings(ctx)
	if errors.Is(err, wire.ErrNoJetStream) {
		err = before
	}
	return stored, err
}

// Close waits until requests in flight have their answers, at most for the
// acknowledgement timeout, ends the rest with model.ErrStopped and closes the
// connection. It must not be called from a callback.
func (b *Bus) Close() { b.streams.Close() }

// Kill closes the connection at once, as the end of the process would, and ends
// everything with model.ErrStopped. It waits for nothing. It must not be called
// from a callback.
func (b *Bus) Kill() { b.streams.Kill() }

// Reachable reports whether the bus is connected to a server now.
func (b *Bus) Reachable() bool { return b.streams.NC.IsConnected() }

// Conn returns the connection, for other uses of the program, such as offering a service. Close closes it.
func (b *Bus) Conn() *nats.Conn { return b.streams.NC }

// JetStream returns the JetStream context of the connection, in the
// configured domain, for inspection and administration.
func (b *Bus) JetStream() jetstream.JetStream { return b.streams.JS }

// ConnectionName returns the connection's name in the server's listings.
func (b *Bus) ConnectionName() string { return b.streams.NC.Opts.Name }

// ProgramVersion returns the version of the program, from Config.
func (b *Bus) ProgramVersion() string { return b.cfg.Version }

// Prefix returns the deployment's prefix: its name, and the first token of its subjects.
func (b *Bus) Prefix() string { return b.cfg.Prefix }

// Partitions returns the number of partitions of the deployment.
func (b *Bus) Partitions() int { return b.streams.Partitions() }

// Horizon returns how long the deployment remembers events.
func (b *Bus) Horizon() time.Duration { return b.streams.Horizon() }

// MaxPayload returns the largest message that the server accepts, in bytes, headers
// included.
func (b *Bus) MaxPayload() int { return b.streams.MaxPayload() }

// Epoch returns how often the store was found to have gone back. See port.Deployment.
func (b *Bus) Epoch() uint64 { return b.streams.Now() }

// StaleWindow returns how long a leader may answer from an earlier state. See port.Deployment.
func (b *Bus) StaleWindow() time.Duration { return b.streams.StaleWindow() }

// Rewinds returns, for each stream that was found to have gone back since the bus was connected, the last
// rewind, in the order of detection.
func (b *Bus) Rewinds() []model.Rewind { return b.streams.Past.Rewound() }

// Refusal returns when the server last did not store a message, for lack of room or because of a failure,
// and why; the zero time if it never happened. It includes a server that answers other requests
// but no store requests.
func (b *Bus) Refusal() (at time.Time, why string) { return b.streams.Pub.LastRefusal() }

// PassedOver returns what this process has passed over because it cannot be read, by stream.
func (b *Bus) PassedOver() []model.PassedOver { return b.streams.PassedOver() }

// PassRecordOver notes that a record cannot be read by the caller, which knows its format.
func (b *Bus) PassRecordOver(r *model.Record, reason string) {
	bucket := b.streams.Names.ProgramsBucket()
	b.streams.PassOver(wire.BucketStream(bucket), r.Rev, wire.BucketSubject(bucket, r.Key), reason)
}

// MayRead returns an error if the server reports that this user may not read the streams.
func (b *Bus) MayRead(ctx context.Context) error {
	return b.streams.MayPublish(ctx, "reading receipts and logs", roles.Reader, b.streams.API+"DIRECT.GET."+b.streams.Names.LogStream(0))
}

// LastDenial returns when the server last denied this user a subject, and which; the zero time if it never did.
func (b *Bus) LastDenial() (at time.Time, why string) { return b.streams.LastDenial() }
