//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/pause"
)

func (n *nemesis) serverFaults() []fault {
	all := []fault{
		{faultKillNode, 30, func(ctx context.Context, f *injury) (string, error) {
			c, err := f.pick(f.d.nodes)
			if err != nil {
				return "", err
			}
			return c.name, f.killNode(ctx, c)
		}},
		{faultStopNode, 20, stopNode},
		{faultLeaveNode, 10, leaveNode},
		{faultDisk, 8, diskFull},
		{faultPower, 30, cutPower},
	}
	if n.d.o.Topology == topologyCluster {
		all = append(all,
			fault{faultKillLeader, 25, killLeader},
			fault{faultKillAll, 5, killAll},
			fault{faultDepose, 15, depose},
			fault{faultCutNode, 20, cutNode},
			fault{faultPowerAll, 30, cutPowerOfAll})
	}
	return all
}

// killNode kills a server, and starts it again after a while.
func (f *injury) killNode(ctx context.Context, c *child) error {
	if err := f.kill(c, "server"); err != nil {
		return err
	}
	f.hold(ctx, 200*time.Millisecond, 5*time.Second)
	return errors.Join(c.start(false), f.recovered(ctx))
}

func stopNode(ctx context.Context, f *injury) (string, error) {
	name, err := f.stopAndContinue(ctx, f.d.nodes, time.Second, 12*time.Second)
	return name, errors.Join(err, f.recovered(ctx))
}

func leaveNode(ctx context.Context, f *injury) (string, error) {
	c, err := f.pick(f.d.nodes)
	if err != nil {
		return "", err
	}
	_ = c.stop(context.WithoutCancel(ctx), time.Minute) // the exit status of a server does not matter
	f.hold(ctx, 0, 2*time.Second)
	return c.name, errors.Join(c.start(false), f.recovered(ctx))
}

func killAll(ctx context.Context, f *injury) (string, error) {
	var errs []error
	for _, c := range f.d.nodes {
		errs = append(errs, f.kill(c, "server"))
	}
	f.hold(ctx, 200*time.Millisecond, 3*time.Second)
	for _, c := range f.d.nodes {
		errs = append(errs, c.start(false))
	}
	return "all", errors.Join(append(errs, f.recovered(ctx))...)
}

func killLeader(ctx context.Context, f *injury) (string, error) {
	stream := f.stream()
	leader, err := f.leader(ctx, stream)
	if err != nil {
		return stream, err
	}
	for _, c := range f.d.nodes {
		if c.name == leader {
			return leader + " of " + stream, f.killNode(ctx, c)
		}
	}
	return stream, fmt.Errorf("its leader %q is none of the servers", leader)
}

// stream returns a random lane or log stream.
func (f *injury) stream() string {
	kind := []string{"LOG", "LANE"}[f.rand.IntN(2)]
	return fmt.Sprintf("%s_%s_%d", strings.ToUpper(bus.DefaultPrefix), kind, f.rand.IntN(f.d.o.Partitions))
}

// depose makes the leaders of some streams step down.
func depose(ctx context.Context, f *injury) (string, error) {
	var names []string
	err := f.ask(ctx, func(ctx context.Context, b *bus.Bus) error {
		for range 3 {
			stream := f.stream()
			names = append(names, stream)
			reply, err := b.Conn().RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+stream, nil)
			if err != nil {
				return err
			}
			if !json.Valid(reply.Data) {
				return fmt.Errorf("step down: %s", reply.Data)
			}
		}
		return nil
	})
	f.hold(ctx, 100*time.Millisecond, time.Second)
	return strings.Join(names, " "), errors.Join(err, f.recovered(ctx))
}

// cutNode drops packets from a server to the others, or in the other direction, or both.
// Clients still reach it.
func cutNode(ctx context.Context, f *injury) (string, error) {
	c, err := f.pick(f.d.nodes)
	if err != nil {
		return "", err
	}
	way := f.rand.IntN(3)
	for _, other := range f.d.nodes {
		if other != c {
			err = errors.Join(err, f.cut(c.host, other.host, way))
		}
	}
	f.hold(ctx, 2*time.Second, 20*time.Second)
	err = errors.Join(err, f.join(c.host), f.recovered(ctx))
	return c.name + [...]string{" both ways", " outwards", " inwards"}[way], err
}

// diskFull fills the disk of a server, makes room again, and restarts the server, which
// gives up its streams when it cannot write.
func diskFull(ctx context.Context, f *injury) (string, error) {
	c := f.d.nodes[len(f.d.nodes)-1]
	if err := f.d.disk.fill(); err != nil {
		return c.name, errors.Join(err, f.d.disk.free())
	}
	f.hold(ctx, 2*time.Second, 8*time.Second)
	err := f.d.disk.free()
	f.hold(ctx, 0, 2*time.Second)
	_ = c.stop(context.WithoutCancel(ctx), 20*time.Second) // its exit status does not matter, and it may have ended already
	return c.name, errors.Join(err, c.start(false), f.recovered(ctx))
}

// ask sends a request to the servers over a connection of its own.
func (n *nemesis) ask(ctx context.Context, question func(context.Context, *bus.Bus) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	b, err := bus.Connect(ctx, n.d.busConfig("client/nemesis"))
	if err != nil {
		return err
	}
	defer b.Close()
	return question(ctx, b)
}

func (n *nemesis) leader(ctx context.Context, stream string) (leader string, err error) {
	err = n.ask(ctx, func(ctx context.Context, b *bus.Bus) error {
		s, err := b.JetStream().Stream(ctx, stream)
		if err == nil && s.CachedInfo().Cluster != nil {
			leader = s.CachedInfo().Cluster.Leader
		}
		return err
	})
	return leader, err
}

// recoverPatience is the time limit for servers to recover from a fault.
const recoverPatience = 90 * time.Second

// recovered waits until the servers have recovered: every stream has a leader and all of its replicas.
// Otherwise the next fault would come on top of this one.
func (n *nemesis) recovered(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), recoverPatience)
	defer cancel()
	for {
		err := n.ask(bounded, whole)
		if err == nil {
			return nil
		}
		if pause.For(bounded, 200*time.Millisecond) != nil {
			return fmt.Errorf("the servers are not whole %v after the fault: %w", recoverPatience, err)
		}
	}
}

// whole returns an error if a stream is not healthy.
func whole(ctx context.Context, b *bus.Bus) error {
	streams := b.JetStream().ListStreams(ctx)
	found := 0
	var missing error
	for info := range streams.Info() {
		found++
		missing = errors.Join(missing, complete(info))
	}
	if err := streams.Err(); err != nil {
		return err
	}
	if want := 2 + 3*b.Partitions(); found < want {
		return fmt.Errorf("%d of %d streams are there", found, want)
	}
	return missing
}

// fewBehind is a negligible lag of a replica.
const fewBehind = 500

func complete(info *jetstream.StreamInfo) error {
	if info.Cluster == nil || len(info.Cluster.Name) == 0 {
		return nil
	}
	if info.Cluster.Leader == "" {
		return fmt.Errorf("%s has no leader", info.Config.Name)
	}
	for _, r := range info.Cluster.Replicas {
		// Under load a replica that keeps up is behind most of the time.
		if r.Offline || !r.Current && r.Lag > fewBehind {
			return fmt.Errorf("%s: replica %s is behind (by %d, offline %v)", info.Config.Name, r.Name, r.Lag, r.Offline)
		}
	}
	return nil
}
