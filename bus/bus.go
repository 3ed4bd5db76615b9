package bus

import (
	"cmp"
	"context"
	"os"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/model"
)

// Bus is one connection to a deployment. It satisfies port.Bus and port.Records, and may be used
// from many goroutines. Each part has what it needs for its own methods, and knows none of the others but
// those that it is built on.
type Bus struct {
	cfg Config

	*streams
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
	*provisioner
	*copier
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
	s := &streams{link: newLink(linkConfig{name: cfg.Name, version: cfg.Version, prefix: cfg.Prefix, ackTimeout: cfg.AckTimeout, log: cfg.Logger})}
	r := &records{s}
	b := &Bus{
		cfg: cfg, streams: s, records: r,
		lanes: &lanes{s}, logs: &logs{streams: s}, states: &states{streams: s},
		deadLetters: &deadLetters{r}, rewinds: &rewinds{r}, backups: &backups{r},
		members: &members{s}, observers: &observers{s}, services: &services{streams: s, server: cfg.Server},
		provisioner: &provisioner{streams: s, want: provisionConfig{
			Partitions: cfg.Partitions, Replicas: cfg.Replicas, Horizon: cfg.Horizon, DeadLetterMaxAge: cfg.DeadLetterMaxAge, LaneMaxBytes: cfg.LaneMaxBytes,
		}},
		copier: &copier{s},
	}
	s.forgetRead, s.reportRewind = b.seen.clear, b.noteRewind
	return b
}

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
	if err := b.streams.open(nc, api, b.cfg.Faults); err != nil {
		nc.Close()
		return err
	}
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

// readSettings checks the server and reads the number of partitions.
func (b *Bus) readSettings(ctx context.Context) error {
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
func (pr *provisioner) choose(stored settingsOfDeployment) error {
	if n := pr.want.Partitions; n != 0 && stored.partitions != 0 && n != stored.partitions {
		return partitionsError(pr.names.workersBucket(), stored.partitions, n)
	}
	if h := pr.want.Horizon; h != 0 && stored.horizon != 0 && h != stored.horizon {
		return horizonError(pr.names.workersBucket(), stored.horizon, h)
	}
	pr.partitions.Store(int64(cmp.Or(stored.partitions, pr.want.Partitions, DefaultPartitions)))
	pr.horizon.Store(int64(cmp.Or(stored.horizon, pr.want.Horizon, model.DefaultHorizon)))
	return nil
}
