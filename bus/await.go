package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/bus/internal/wire"
)

// connectPatiently connects as soon as a server can be reached.
func connectPatiently(ctx context.Context, cfg Config) (*Bus, error) {
	v := wire.Waiter{Log: cfg.Logger}
	for {
		b, err := connectOnce(ctx, cfg)
		if err == nil || !isAway(err) {
			return b, err
		}
		timer := time.NewTimer(v.Failed("waiting for a NATS server", "why", err))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("waited for a NATS server: %w (%w)", ctx.Err(), err)
		}
	}
}

// IsAway reports whether an error of Dial or Connect is that no server was reached, so that a later attempt may succeed.
func IsAway(err error) bool { return isAway(err) }

// isAway reports whether no server was reached, so that the same attempt may succeed later. A server that
// refuses the credentials or the certificate of the client, or that speaks another protocol, was reached.
func isAway(err error) bool {
	for _, away := range []error{
		nats.ErrNoServers, nats.ErrTimeout, nats.ErrConnectionClosed, nats.ErrStaleConnection,
		nats.ErrMaxConnectionsExceeded, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	op, network := errors.AsType[*net.OpError](err)
	if network && op.Op == wire.RemoteError {
		return false
	}
	_, name := errors.AsType[*net.DNSError](err)
	return network || name
}
