package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/settlehq/settle/bus/internal/wire"
)

// AwaitDeployment waits until a deployment exists under the bus's prefix, and adopts its number of partitions and
// its horizon in place of those assumed when the bus connected. It logs what it waits for
// at growing intervals, and returns it as the error if ctx ends first: ErrNoDeployment, or
// ErrRestoring during a restore.
func (pr *Provisioner) AwaitDeployment(ctx context.Context) error {
	v := wire.Waiter{Log: pr.Log}
	for {
		stored, err := pr.StoredSettings(ctx)
		switch {
		case err == nil && stored.Partitions > 0:
			return pr.Choose(stored)
		case err == nil:
			err = ErrNoDeployment
		case !errors.Is(err, ErrRestoring):
			return err
		}
		wait := v.Failed("waiting for a deployment", "prefix", pr.Names.Prefix, "server", pr.NC.ConnectedUrlRedacted(), "why", err)
		if over := pr.Sleep(ctx, wait); over != nil {
			return fmt.Errorf("waited for the deployment %s: %w (%w)", pr.Names.Prefix, over, err)
		}
	}
}

// Deployed returns an error that wraps ErrNoDeployment if the bus's prefix has no deployment, and says where it was
// looked for and how to create one. It asks the servers only until there is one, and then adopts its settings as
// AwaitDeployment does.
func (pr *Provisioner) Deployed(ctx context.Context) error {
	if pr.found.Load() {
		return nil
	}
	stored, err := pr.StoredSettings(ctx)
	switch {
	case err != nil:
		return err
	case stored.Partitions > 0:
		return pr.Choose(stored)
	}
	return &noDeploymentError{prefix: pr.Names.Prefix, server: pr.NC.ConnectedUrlRedacted()}
}

// noDeploymentError is ErrNoDeployment with the place.
type noDeploymentError struct{ prefix, server string }

func (e *noDeploymentError) Error() string {
	at := "this server"
	if e.server != "" {
		at = e.server
	}
	return fmt.Sprintf("there is no deployment with prefix %s on %s; check bus.Config.Prefix, or create one with Bus.Provision or `settle provision`", e.prefix, at)
}

func (e *noDeploymentError) Unwrap() error { return ErrNoDeployment }

// AwaitProvision waits until nothing of the deployment is missing, and checks it as Check does. It
// is for users that may not create missing streams; it logs what it waits for like
// AwaitDeployment. It does not wait for a stream of a partition that existed once (Lost): other partitions can be
// served without it.
func (pr *Provisioner) AwaitProvision(ctx context.Context) error {
	lost, err := pr.findLost(ctx)
	if err != nil {
		return err
	}
	return pr.awaitStreams(ctx, "waiting for streams that this user may not create; `settle provision` creates them", lost)
}

// Complete is Provision for programs that serve a deployment, at every start. It creates missing
// streams, but none that existed once (Lost): a new one would silently replace its lost contents. The other
// partitions can be served without a stream of one partition; Complete waits for the bucket of the workers.
func (pr *Provisioner) Complete(ctx context.Context) error {
	lost, err := pr.findLost(ctx)
	switch {
	case err != nil:
		return err
	case slices.Contains(lost, wire.BucketStream(pr.Names.WorkersBucket())):
		return pr.awaitStreams(ctx, "waiting for the bucket of the workers, which is gone; `settle doctor` says what to do", lost)
	}
	err = pr.provisionBut(ctx, lost)
	if errors.Is(err, errStreamRestoring) { // one that all partitions share
		return pr.awaitStreams(ctx, "waiting for a stream that is being restored", lost)
	}
	return err
}

// findLost is Lost, and logs the lost streams.
func (pr *Provisioner) findLost(ctx context.Context) ([]string, error) {
	lost, err := pr.Lost(ctx)
	if len(lost) > 0 {
		pr.Log.Error("streams of the deployment are gone, and others have data: nothing is created in their place, and their partitions are not served; restore them, or `settle provision` makes empty ones", "streams", lost)
	}
	return lost, err
}

// awaitStreams waits until no stream is missing except those of partitions that are lost, and logs what it waits for.
func (pr *Provisioner) awaitStreams(ctx context.Context, what string, lost []string) error {
	v := wire.Waiter{Log: pr.Log}
	for {
		err := pr.checkBut(ctx, lost)
		if !errors.Is(err, wire.ErrNoStream) && !errors.Is(err, ErrNoDeployment) && !errors.Is(err, errStreamRestoring) {
			return err
		}
		wait := v.Failed(what, "prefix", pr.Names.Prefix, "missing", err)
		if over := pr.Sleep(ctx, wait); over != nil {
			return fmt.Errorf("waited for the streams of deployment %s: %w (%w)", pr.Names.Prefix, over, err)
		}
	}
}
