package streamcopy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/roles"
)

// BeginStreamRestore connects, and makes sure that a deployment of cfg.Prefix lacks a stream, or has the remains of an
// interrupted restore of it, which it removes. cfg has the number of partitions and the horizon of the backup. Copy
// creates the stream, and OpenStream allows messages to be stored in it. No other stream is changed.
func BeginStreamRestore(ctx context.Context, cfg bus.Config, backup, stream string) (*Restorer, error) {
	wanted := provision.Settings{Partitions: cfg.Partitions, Horizon: cfg.Horizon}
	cfg.Partitions, cfg.Horizon = 0, 0
	b, err := bus.Dial(cfg)
	if err != nil {
		return nil, err
	}
	r := &Restorer{b: b, id: backup, token: nuid.Next(), only: stream}
	if err := r.beginStream(ctx, wanted); err != nil {
		b.Kill()
		return nil, err
	}
	return r, nil
}

func (r *Restorer) beginStream(ctx context.Context, wanted provision.Settings) error {
	if err := r.canKeepSequences(); err != nil {
		return err
	}
	stored, err := r.b.Provisioner.StoredSettings(ctx)
	workers := wire.BucketStream(r.b.Streams().Names.WorkersBucket())
	switch {
	case err != nil:
		return err
	case stored.Partitions == 0:
		return fmt.Errorf("there is no deployment with prefix %s on this server, of which a stream could be missing: restore all of it, without --stream", r.b.Prefix())
	case stored.Horizon == 0:
		return fmt.Errorf("stream %s is missing too, and is in no backup: make it first, with the horizon that the backup has: `settle provision --horizon %v`", workers, wanted.Horizon)
	case stored != wanted:
		return fmt.Errorf("the deployment has %d partitions and the horizon %v, and the backup is of one with %d and %v: it is another one", stored.Partitions, stored.Horizon, wanted.Partitions, wanted.Horizon)
	}
	if err := r.b.Provisioner.Choose(stored); err != nil {
		return err
	}
	a, err := r.asset()
	if err != nil {
		return err
	}
	var subjects []string
	for _, verb := range []string{"INFO", "CREATE", "UPDATE", "DELETE", "RESTORE"} {
		subjects = append(subjects, r.b.Streams().API+"STREAM."+verb+"."+a.Config.Name)
	}
	if err := r.b.Streams().MayPublish(ctx, "a restore", roles.Administrator, append(subjects, "$JS.SNAPSHOT.RESTORE.>")...); err != nil {
		return err
	}
	info, err := r.b.Streams().StreamInfo(ctx, workers)
	if err != nil {
		return fmt.Errorf("stream %s: %w", workers, err)
	}
	r.b.Provisioner.Want.Replicas = info.Config.Replicas // as many as the others have
	return r.removeInterrupted(ctx)
}

// asset returns the stream that is restored.
func (r *Restorer) asset() (provision.Spec, error) {
	for _, a := range r.b.Provisioner.Specs(r.b.Partitions()) {
		switch {
		case a.Config.Name != r.only:
		case a.Component == provision.ComponentWorkers:
			return provision.Spec{}, fmt.Errorf("stream %s is in no backup: `settle provision` makes it, and workers announce themselves again", r.only)
		default:
			return a, nil
		}
	}
	return provision.Spec{}, fmt.Errorf("deployment %s with %d partitions has no stream %s; `settle doctor` names those that are missing", r.b.Prefix(), r.b.Partitions(), r.only)
}

// removeInterrupted deletes the remains of an interrupted restore of the stream, in which nothing can have been stored, and returns
// an error for a stream that was not created by a restore.
func (r *Restorer) removeInterrupted(ctx context.Context) error {
	info, err := r.b.Streams().StreamInfo(ctx, r.only)
	switch {
	case errors.Is(err, wire.ErrNoStream):
		return nil
	case err != nil:
		return fmt.Errorf("look for stream %s: %w", r.only, err)
	case info.Config.Metadata[provision.MetaRestoring] != "":
	case info.State.LastSeq == 0:
		return fmt.Errorf("there is a stream %s, which never had a message: one that was made in place of the lost one has to be deleted first (`nats stream rm %s`)", r.only, r.only)
	default:
		return fmt.Errorf("there is a stream %s with messages up to %d: a stream is restored only where there is none. If it lacks what a backup has, see `settle doctor` and `settle accept-loss`; a restore would cost what it has besides", r.only, info.State.LastSeq)
	}
	err = r.b.Streams().JS.DeleteStream(ctx, r.only)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("delete stream %s, which an interrupted restore has left: %w", r.only, err)
	}
	return nil
}

// OpenStream allows clients and workers to store in the stream again, the last step of a restore of one stream.
func (r *Restorer) OpenStream(ctx context.Context, s *Restored) error {
	info, err := r.b.Streams().StreamInfo(ctx, s.Stream)
	if err != nil {
		return fmt.Errorf("stream %s: %w", s.Stream, err)
	}
	if _, _, token := cutMark(info.Config.Metadata[provision.MetaRestoring]); token != r.token {
		return errOtherRestore
	}
	c, err := r.config(s)
	if err != nil {
		return err
	}
	if err := r.update(ctx, c); err != nil {
		return err
	}
	a, err := r.asset()
	if err != nil {
		return err
	}
	return r.b.Provisioner.CheckStream(ctx, a, 0)
}

// Place is a position in a stream, with the identity of the message there.
type Place struct {
	Seq     uint64
	Time    time.Time
	Subject string
}

// MayHold reports whether a stream of the deployment may be the one that reached up to a sequence and had a message at a place: it
// reaches as far, and has no other message there; the message may have been purged. The error for a missing stream is model.ErrNoStream.
func (r *Restorer) MayHold(ctx context.Context, stream string, upTo uint64, p Place) (bool, error) {
	info, err := r.b.Streams().StreamInfo(ctx, stream)
	switch {
	case errors.Is(err, wire.ErrNoStream):
		return false, wire.ErrNoStream
	case err != nil:
		return false, fmt.Errorf("stream %s: %w", stream, err)
	case info.State.LastSeq < upTo:
		return false, nil
	case p.Seq == 0:
		return true, nil
	}
	m, err := r.b.Streams().LeaderGet(ctx, stream, wire.GetRequest{Seq: p.Seq})
	if errors.Is(err, wire.ErrNoMessage) {
		return true, nil
	}
	return err == nil && m.Time.Equal(p.Time) && m.Subject == p.Subject, err
}
