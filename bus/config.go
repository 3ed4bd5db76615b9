package bus

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/faults"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

const (
	// DefaultPrefix begins all subjects, and in capitals all asset names.
	DefaultPrefix = "settle"
	// DefaultAckTimeout is long enough for a loaded server and short enough that
	// callers do not mistake a lost acknowledgement for an outage.
	DefaultAckTimeout = 5 * time.Second
)

// InProcess is a NATS server in this process. Package bus/embedded has one.
type InProcess interface {
	// ConnOption returns an option for connections that bypass the network.
	ConnOption() nats.Option
	// Sync returns when the server syncs to disk: "always", or an interval.
	Sync() string
	// Varz returns the server's report at /varz of a monitoring port, as JSON.
	Varz() ([]byte, error)
}

// Config configures the connection and the deployment. The zero
// value connects as the nats command line tool would. Package options declares flags for the fields
// that have a help text.
type Config struct {
	// Server connects within the process to an embedded server (package bus/embedded).
	// Environment and contexts are then ignored: they describe other servers. Creds, NKey, User
	// with Password, and Token select a user of its configuration file, if that has users.
	Server InProcess

	// How to connect; see ResolveConnection for what happens to empty fields.
	// URL has one address of a server or more, separated by commas.
	URL string `name:"nats" env:"-" help:"URL of the NATS server. Default: NATS_URL, then the selected nats context."`
	// Context is the name of a nats context, or the absolute path of its file.
	Context string `env:"-" help:"nats context to connect with. Default: NATS_CONTEXT, then the selected one."`
	// Creds is the path of a credentials file.
	Creds    string `env:"-" help:"Credentials file. Default: NATS_CREDS, then the context's."`
	NKey     string // path of a file with an NKey seed
	User     string
	Password string
	Token    string
	// InboxPrefix begins the subjects of answers to a user outside the account of the streams. Default: the context's, then _INBOX if the
	// user may subscribe to it, else _INBOX_ and the name of the user, else _INBOX_reader.
	InboxPrefix string `env:"-" help:"What the subjects of answers begin with. Default: NATS_INBOX_PREFIX, then the context's, then _INBOX, or _INBOX_USER for a user that may not subscribe to it." placeholder:"PREFIX"`
	CA          string // path of a PEM file, like the next two
	Cert        string
	Key         string

	// Name is "<role>/<id>" of the process, such as "worker/w1". The connection is
	// called "settle/<role>/<id>" in the server's listings.
	Name string
	// Version is that of the program. It is recorded in the assets that the program creates.
	Version string
	// Prefix begins all subjects and, in capitals, all asset names, so that several
	// deployments can share an account. Default DefaultPrefix.
	Prefix string `help:"The prefix of the deployment's subjects."`
	// Partitions must be the number that the deployment was created with. 0 accepts
	// any existing number, and takes provision.DefaultPartitions for a new deployment.
	Partitions int `help:"Partitions of the deployment, fixed when it is created; 0 keeps the current number, or uses 8 for a new deployment."`
	// Horizon is how long events are remembered after they are handled, so that a repeated
	// one is recognised. It must be the one that the deployment was
	// created with. 0 accepts any existing one, and takes model.DefaultHorizon for a new deployment.
	Horizon time.Duration `help:"How long handled events are remembered, fixed when the deployment is created; 0 keeps the current value, or uses 7 days for a new deployment."`
	// Replicas of every asset that Provision creates. 0 chooses 3 in a cluster and
	// 1 on a single server. 1 in a cluster is refused: a restarted server would
	// return with an arbitrary earlier state.
	Replicas int `help:"Replicas of each stream; 0 chooses 3 in a cluster and 1 on a single server."`
	// LaneMaxBytes limits the size of each LANE stream that Provision creates. A
	// full lane refuses events. 0 means no limit except the server's own.
	LaneMaxBytes int64 `help:"Bytes that each lane may hold; a full lane refuses events. 0 for no limit."`
	// DeadLetterMaxAge is how long the stream of dead letters that Provision
	// creates keeps them. 0 means without a limit.
	DeadLetterMaxAge time.Duration `help:"How long dead letters are kept; 0 for no limit."`
	// AwaitServer makes Connect wait until a server can be reached, for processes that may be
	// started before the servers. It logs what it waits for, at once and then at growing intervals.
	// Without it, and for an embedded Server, Connect fails. A server that refuses the credentials
	// ends the wait: waiting does not make them valid.
	AwaitServer bool
	// AckTimeout is how long to wait for an acknowledgement before the request is sent
	// again. Default DefaultAckTimeout.
	AckTimeout time.Duration `help:"How long an acknowledgement of the servers may take before the request is sent again."`
	// Options are applied to the connection last.
	Options []nats.Option
	// Faults makes requests fail on purpose, for tests. Nil costs nothing.
	Faults faults.Func
	// Logger receives events that no caller waits for: disconnections, requests that are not
	// answered for long, unreadable messages. Nil discards them.
	Logger *slog.Logger
}

// Fill replaces empty fields by their defaults. It returns an error for the first invalid field.
func (c *Config) Fill() error {
	if c.Name == "" {
		c.Name = "client/" + wire.ShortID()
	}
	if c.Version == "" {
		c.Version = "dev"
	}
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = DefaultAckTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c.check()
}

func (c *Config) check() error {
	if err := model.CheckName("prefix", c.Prefix); err != nil {
		return fmt.Errorf("bus configuration: %w", err)
	}
	if c.Partitions < 0 || c.Partitions > provision.MaxPartitions {
		return fmt.Errorf("bus configuration: %d partitions; use 1 to %d, or 0 for the number that is stored", c.Partitions, provision.MaxPartitions)
	}
	if c.Horizon != 0 && c.Horizon < provision.MinHorizon {
		return fmt.Errorf("bus configuration: horizon %v; use at least %v, or 0 for the one that is stored", c.Horizon, provision.MinHorizon)
	}
	if c.Replicas < 0 || c.Replicas > 5 || c.Replicas == 2 || c.Replicas == 4 {
		return fmt.Errorf("bus configuration: %d replicas; use 1 on a single server, 3 or 5 in a cluster, or 0 to let that be chosen", c.Replicas)
	}
	if c.DeadLetterMaxAge < 0 {
		return fmt.Errorf("bus configuration: dead letters expire after %v; use a positive duration, or 0 to keep them", c.DeadLetterMaxAge)
	}
	if c.AckTimeout < 0 {
		return fmt.Errorf("bus configuration: acknowledgement timeout %v; use a positive duration, or 0 for %v", c.AckTimeout, DefaultAckTimeout)
	}
	return nil
}
