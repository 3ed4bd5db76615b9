package bus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// vigil paces a wait for something that is started elsewhere, and logs what it waits for: at once,
// then at growing intervals.
type vigil struct {
	log         *slog.Logger
	wait        time.Duration
	tries, tell int
}

// The first pause of a vigil, the longest, and the number of tries after which one is logged at least once: a line
// every few minutes.
const (
	vigilFirst, vigilMost = 250 * time.Millisecond, 5 * time.Second
	vigilTell             = 32
)

// failed records a failed try, logs it if it is time to, and returns the pause before the next.
func (v *vigil) failed(what string, about ...any) time.Duration {
	if v.tries++; v.tell == 0 {
		v.wait, v.tell = vigilFirst, 1
	}
	if v.tries == v.tell {
		v.log.Warn(what, about...)
		v.tell += min(v.tell, vigilTell)
	}
	wait := v.wait
	v.wait = min(2*wait, vigilMost)
	return wait
}

// connectPatiently connects as soon as a server can be reached.
func connectPatiently(ctx context.Context, cfg Config) (*Bus, error) {
	v := vigil{log: cfg.Logger}
	for {
		b, err := connectOnce(ctx, cfg)
		if err == nil || !isAway(err) {
			return b, err
		}
		timer := time.NewTimer(v.failed("waiting for a NATS server", "why", err))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("waited for a NATS server: %w (%w)", ctx.Err(), err)
		}
	}
}

// isAway reports whether no server was reached, so that the same attempt may succeed later. A server that
// refuses the credentials, or that speaks another protocol, was reached.
func isAway(err error) bool {
	for _, away := range []error{
		nats.ErrNoServers, nats.ErrTimeout, nats.ErrConnectionClosed, nats.ErrStaleConnection,
		nats.ErrMaxConnectionsExceeded, io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	_, network := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	return network || name
}

// AwaitDeployment waits until there is a deployment of the bus's prefix, and adopts its number
// of partitions and its horizon, whatever was assumed when the bus connected. It logs what it waits for
// at growing intervals, and returns it as the error if ctx ends first: ErrNoDeployment, or
// ErrRestoring during a restore.
func (pr *provisioner) AwaitDeployment(ctx context.Context) error {
	v := vigil{log: pr.log}
	for {
		stored, err := pr.storedSettings(ctx)
		switch {
		case err == nil && stored.partitions > 0:
			return pr.choose(stored)
		case err == nil:
			err = ErrNoDeployment
		case !errors.Is(err, ErrRestoring):
			return err
		}
		wait := v.failed("waiting for a deployment", "prefix", pr.names.prefix, "server", pr.nc.ConnectedUrlRedacted(), "why", err)
		if over := pr.sleep(ctx, wait); over != nil {
			return fmt.Errorf("waited for the deployment %s: %w (%w)", pr.names.prefix, over, err)
		}
	}
}

// AwaitProvision waits until nothing of the deployment is missing, and checks it as Check does. It
// is for users that may not create missing streams; it logs what it waits for like
// AwaitDeployment. It does not wait for a stream of a partition that existed once (Lost): other partitions can be
// served without it.
func (pr *provisioner) AwaitProvision(ctx context.Context) error {
	lost, err := pr.findLost(ctx)
	if err != nil {
		return err
	}
	return pr.awaitStreams(ctx, "waiting for streams that this user may not create; `settle provision` creates them", lost)
}

// Complete is Provision for programs that serve a deployment, at every start. It creates missing
// streams, but none that existed once (Lost): a new one would silently replace its lost contents. The other
// partitions can be served without a stream of one partition; Complete waits for the bucket of the workers.
func (pr *provisioner) Complete(ctx context.Context) error {
	lost, err := pr.findLost(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(lost, bucketStream(pr.names.workersBucket())):
		return pr.awaitStreams(ctx, "waiting for the bucket of the workers, which is gone; `settle doctor` says what to do", lost)
	}
	err = pr.provisionBut(ctx, lost)
	if errors.Is(err, errStreamRestoring) { // one that all partitions share
		return pr.awaitStreams(ctx, "waiting for a stream that is being restored", lost)
	}
	return err
}

// findLost is Lost, and logs the lost streams.
func (pr *provisioner) findLost(ctx context.Context) ([]string, error) {
	lost, err := pr.Lost(ctx)
	if len(lost) > 0 {
		pr.log.Error("streams of the deployment are gone, and others have data: nothing is created in their place, and their partitions are not served; restore them, or `settle provision` makes empty ones", "streams", lost)
	}
	return lost, err
}

// awaitStreams waits until no stream is missing except those of partitions that are lost, and logs what it waits for.
func (pr *provisioner) awaitStreams(ctx context.Context, what string, lost []string) error {
	v := vigil{log: pr.log}
	for {
		err := pr.checkBut(ctx, lost)
		if !errors.Is(err, errNoStream) && !errors.Is(err, ErrNoDeployment) && !errors.Is(err, errStreamRestoring) {
			return err
		}
		wait := v.failed(what, "prefix", pr.names.prefix, "missing", err)
		if over := pr.sleep(ctx, wait); over != nil {
			return fmt.Errorf("waited for the streams of deployment %s: %w (%w)", pr.names.prefix, over, err)
		}
	}
}
