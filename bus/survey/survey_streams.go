package survey

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/model"
)

// StreamFacts are about one asset of the deployment.
type StreamFacts struct {
	Name, Component string
	// Partition is AllPartitions for a shared stream.
	Partition int
	Missing   bool
	// Restoring: a restore of the stream has not ended, or was interrupted. Nothing can be stored in it.
	Restoring bool
	Unseen    error                   // why nothing is known of it
	Broken    []*provision.AssetError // altered settings, with their consequences
	Version   string                  // of the program that created it
	Replicas  int
	// Leader and Followers are servers; there are none outside a cluster.
	Leader         string
	Followers      []FollowerFacts
	Messages       uint64
	MaxMessages    int64      // 0 or less means no limit
	Dead           *DeadFacts // of the stream of dead letters; nil if it could not be counted
	Bytes, Limit   int64      // a Limit of 0 or less means no limit
	Clock          *ClockFacts
	Consumers      []string // foreign ones
	ConsumersError error
}

// DeadFacts are about the dead letters.
type DeadFacts struct {
	model.DeadCounts
	// OldestOpen is when the event of the oldest open letter ended, zero if
	// there is none among the first.
	OldestOpen time.Time
	// Stream is the stream with most open letters, and OfStream their number.
	Stream   string
	OfStream int
	// Firsts are the first open letters of a few streams, in their order, as far as they are among the
	// letters that were read to find that of Stream.
	Firsts []model.DeadLetter
}

// maxFirsts is how many streams have one in DeadFacts.Firsts.
const maxFirsts = 4

// first takes in an open letter.
func (f *DeadFacts) first(d *model.DeadLetter) {
	if f.OldestOpen.IsZero() {
		f.OldestOpen = d.Ended
	}
	if slices.ContainsFunc(f.Firsts, func(of model.DeadLetter) bool { return of.Stream == d.Stream }) {
		return
	}
	if d.Stream == f.Stream || len(f.Firsts) < maxFirsts-1 {
		f.Firsts = append(f.Firsts, *d)
	}
}

// FollowerFacts are about a replica that does not lead.
type FollowerFacts struct {
	Name             string
	Current, Offline bool
	Lag              uint64
}

// ReachFacts are the ends of a partition's streams, and the known positions in them: a
// stream that ends before a known position has lost messages. The ends were read last,
// and a stream only grows, so concurrent activity does not look like a loss.
type ReachFacts struct {
	Partition int
	LogLast   uint64
	LaneLast  uint64
	Released  uint64 // the coordinators' position in the log
	Saved     uint64 // the log sequence that the newest checkpoint reflects
	Handled   uint64 // the lane sequence that the newest commit, or the workers' position, has behind it
	Behind    uint64 // how many entries the coordinators have still to read
	// Missing: a stream of the partition is missing, so nothing was compared. Unseen is any other reason why nothing was.
	Missing bool
	Unseen  error
}

// deployment examines every asset.
func (s *surveyor) deployment(ctx context.Context) {
	stored, err := s.settings(ctx)
	if errors.Is(err, provision.ErrNoDeployment) {
		s.NoDeployment = true
		asking, cancel := s.ask(ctx)
		defer cancel()
		s.Others, _ = s.b.Deployments(asking) // a hint
		return
	}
	if err = errors.Join(err, s.b.Choose(stored)); err != nil {
		s.Settings = err
	}
	if stored.Partitions == 0 {
		return
	}
	s.b.Streams().Adopt(stored.Partitions, stored.Horizon)
	s.Partitions, s.Horizon = stored.Partitions, stored.Horizon
	for _, a := range s.b.Specs(stored.Partitions) {
		s.Streams = append(s.Streams, s.stream(ctx, a))
	}
	for p := range stored.Partitions {
		s.Reaches = append(s.Reaches, s.reach(ctx, p))
	}
	s.members(ctx)
	s.services(ctx)
	s.backup(ctx)
	s.rewinds(ctx)
}

// rewinds reads what is noted of streams that have gone back. If it cannot be read, neither can the
// newest backup, which says why.
func (s *surveyor) rewinds(ctx context.Context) {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	s.Rewinds, _ = s.b.RewindNotes(ctx)
}

// backup reads the record of the newest backup.
func (s *surveyor) backup(ctx context.Context) {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	var err error
	if s.Backup, err = s.b.LastBackup(ctx); err != nil && !errors.Is(err, wire.ErrNoStream) { // a missing stream is reported elsewhere
		s.BackupUnseen = askError(err)
	}
}

func (s *surveyor) settings(ctx context.Context) (provision.Settings, error) {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	stored, err := s.b.StoredSettings(ctx)
	switch {
	case err != nil:
		return stored, askError(err)
	case stored.Partitions == 0:
		return stored, provision.ErrNoDeployment
	}
	return stored, nil
}

// stream examines one asset.
func (s *surveyor) stream(ctx context.Context, a provision.Spec) (f StreamFacts) {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	f = StreamFacts{Name: a.Config.Name, Component: a.Component, Partition: a.Partition}
	asked := time.Now()
	info, err := s.b.Streams().StreamInfo(ctx, a.Config.Name)
	answered := time.Now()
	switch {
	case errors.Is(err, wire.ErrNoStream):
		f.Missing = true
		return f
	case err != nil:
		f.Unseen = askError(err)
		return f
	}
	f.Restoring = provision.IsRestoring(info) && a.Component != provision.ComponentWorkers
	if !f.Restoring { // it has other settings until it is opened
		f.Broken = a.Compare(info.Config)
		if narrow := a.Narrow(info.Config, s.b.MaxPayload()); narrow != nil {
			f.Broken = append(f.Broken, narrow)
		}
	}
	if replicas, is := errors.AsType[*provision.AssetError](s.b.CheckStoredReplicas(info)); is {
		f.Broken = append(f.Broken, replicas)
	}
	if a.Component == provision.ComponentWorkers {
		s.Created = info.Created
	}
	f.Version, f.Replicas = info.Config.Metadata[provision.MetaVersion], info.Config.Replicas
	f.Messages, f.MaxMessages = info.State.Msgs, info.Config.MaxMsgs
	f.Bytes, f.Limit = int64(info.State.Bytes), info.Config.MaxBytes
	f.Clock = clockFacts(info.TimeStamp, asked, answered)
	f.cluster(info.Cluster)
	if a.Component == "dead" {
		f.Dead = s.dead(ctx)
	}
	if info.State.Consumers > 0 {
		f.Consumers, f.ConsumersError = s.consumers(ctx, a.Config.Name)
	}
	return f
}

// oldestWithin is how many of the first dead letters are searched for the oldest open one, in pages
// of some hundred.
const oldestWithin = 10_000

// dead counts the dead letters; nil if they cannot be read. The figures are for people.
func (s *surveyor) dead(ctx context.Context) *DeadFacts {
	o, err := s.b.OverviewDead(ctx)
	if err != nil {
		return nil
	}
	f, index := &DeadFacts{DeadCounts: o.Counts, Stream: o.Stream, OfStream: o.OfStream}, o.Index
	if f.Open == 0 {
		return f
	}
	for after, read := uint64(0), 0; read < oldestWithin; {
		page, err := s.b.ReadDead(ctx, "", after, wire.PageLimit)
		if err != nil {
			return f
		}
		known := index
		if known == nil {
			if known, err = s.indexOf(ctx, page); err != nil {
				return f
			}
		}
		for i := range page {
			after = page[i].Seq
			if !known.Open(page[i].Name()) {
				continue
			}
			f.first(&page[i])
		}
		found := slices.ContainsFunc(f.Firsts, func(of model.DeadLetter) bool { return of.Stream == f.Stream })
		if read += len(page); found || len(page) < wire.PageLimit {
			return f
		}
	}
	return f
}

// indexOf returns an index of some letters, and of the notes about them.
func (s *surveyor) indexOf(ctx context.Context, page []model.DeadLetter) (model.DeadIndex, error) {
	var names, asked []model.DeadName
	for i := range page {
		names = append(names, page[i].Name())
	}
	here := model.NewDeadIndex(names)
	for _, n := range names {
		if model.IsNoteID(n.Event) {
			continue
		}
		for _, note := range []model.DeadName{n.RedrivenNote(), n.Note(model.Dismissed)} {
			if !here[note] && note.Check() == nil {
				asked = append(asked, note)
			}
		}
	}
	notes, err := s.b.GetDead(ctx, asked)
	for i := range notes {
		names = append(names, notes[i].Name())
	}
	return model.NewDeadIndex(names), err
}

func (f *StreamFacts) cluster(c *jetstream.ClusterInfo) {
	if c == nil {
		return
	}
	f.Leader = c.Leader
	for _, r := range c.Replicas {
		f.Followers = append(f.Followers, FollowerFacts{Name: r.Name, Current: r.Current, Offline: r.Offline, Lag: r.Lag})
	}
}

// consumers returns those that Settle has not created.
func (s *surveyor) consumers(ctx context.Context, stream string) (foreign []string, err error) {
	handle, err := s.b.Streams().JS.Stream(ctx, stream)
	if err != nil {
		return nil, askError(err)
	}
	names := handle.ConsumerNames(ctx)
	for name := range names.Name() {
		if !strings.HasPrefix(name, wire.TailPrefix) {
			foreign = append(foreign, name)
		}
	}
	if err := names.Err(); err != nil {
		return nil, askError(err)
	}
	return foreign, nil
}

// looks is how often the ends of a partition's streams are read before a loss is
// reported: a new leader may not have applied everything yet.
const looks = 3

// reach compares the ends of a partition's streams with the known positions.
func (s *surveyor) reach(ctx context.Context, p int) ReachFacts {
	ctx, cancel := s.ask(ctx)
	defer cancel()
	r := ReachFacts{Partition: p}
	errs := []error{s.known(ctx, &r)}
	for look := 1; ; look++ {
		err := s.ends(ctx, &r)
		if err == nil && len(r.Lost(s.Prefix)) > 0 && look < looks && s.b.Streams().Sleep(ctx, quiet) == nil {
			continue
		}
		errs = append(errs, err)
		break
	}
	r.Unseen = errors.Join(errs...)
	if r.Missing = errors.Is(r.Unseen, wire.ErrNoStream); r.Missing {
		r.Unseen = nil // it is reported with the streams
	}
	if r.Unseen == nil && !r.Missing && r.LogLast > r.Released {
		r.Behind = r.LogLast - r.Released
	}
	return r
}

// known reads the known positions in the streams of a partition. Each of these was taken from
// the stream that it is about: other positions in the bucket are of another stream, or advance
// independently.
func (s *surveyor) known(ctx context.Context, r *ReachFacts) error {
	var errs [4]error
	var lane uint64
	r.Released, errs[0] = s.b.LoadPosition(ctx, r.Partition, "released")
	lane, errs[1] = s.b.LoadPosition(ctx, r.Partition, "lane")
	r.Saved, errs[2] = s.saved(ctx, r.Partition)
	r.Handled, errs[3] = s.handled(ctx, r.Partition)
	r.Handled = max(r.Handled, lane)
	return errors.Join(errs[:]...)
}

// ends reads the ends of a partition's streams. A stream that cannot be read, or is missing, is
// reported elsewhere, and not as a loss.
func (s *surveyor) ends(ctx context.Context, r *ReachFacts) error {
	end := func(stream string) (uint64, error) {
		info, err := s.b.Streams().StreamInfo(ctx, stream)
		if err != nil {
			return math.MaxUint64, fmt.Errorf("end of %s: %w", stream, askError(err))
		}
		return info.State.LastSeq, nil
	}
	var errs [2]error
	r.LogLast, errs[0] = end(s.b.Streams().Names.LogStream(r.Partition))
	r.LaneLast, errs[1] = end(s.b.Streams().Names.LaneStream(r.Partition))
	return errors.Join(errs[:]...)
}

// saved returns the log sequence that the newest checkpoint in the bucket reflects.
func (s *surveyor) saved(ctx context.Context, p int) (uint64, error) {
	bucket := s.b.Streams().Names.StateBucket(p)
	m, err := s.b.Streams().LeaderGet(ctx, wire.BucketStream(bucket), wire.GetRequest{LastFor: wire.BucketSubject(bucket, "*."+wire.MarkKey)})
	if err != nil {
		return 0, reachError(wire.BucketStream(bucket), err)
	}
	return wire.Number(m.Header, wire.HeaderSeq), nil
}

// handled returns the lane sequence up to which the newest commit has handled everything of its
// space; 0 if that commit cannot be read, which the worker of its space reports.
func (s *surveyor) handled(ctx context.Context, p int) (uint64, error) {
	stream := s.b.Streams().Names.LogStream(p)
	m, err := s.b.Streams().LeaderGet(ctx, stream, wire.GetRequest{LastFor: s.b.Streams().Names.Logs(p)})
	if err != nil {
		return 0, reachError(stream, err)
	}
	if c, err := model.DecodeCommit(m.Data); err == nil {
		return c.Cursor.Floor, nil
	}
	return 0, nil
}

// reachError returns nil for a missing message: there was none yet, or it was purged.
func reachError(stream string, err error) error {
	if errors.Is(err, wire.ErrNoMessage) {
		return nil
	}
	return fmt.Errorf("last message of %s: %w", stream, askError(err))
}

// Lost describes the losses of the streams as text; nil if there are none.
func (r ReachFacts) Lost(prefix string) (lost []string) {
	n := wire.NewNames(prefix)
	known := max(r.Released, r.Saved)
	if r.LogLast < known {
		lost = append(lost, n.LogStream(r.Partition)+" ends at "+strconv.FormatUint(r.LogLast, 10)+", and is known to have reached "+strconv.FormatUint(known, 10))
	}
	if r.LaneLast < r.Handled {
		lost = append(lost, n.LaneStream(r.Partition)+" ends at "+strconv.FormatUint(r.LaneLast, 10)+", and events up to "+strconv.FormatUint(r.Handled, 10)+" were handled")
	}
	return lost
}
