package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/model"
)

// Provisioner creates and checks the streams of a deployment.
type Provisioner struct {
	*wire.Streams
	Want      Config
	Restoring bool // read a deployment that is being restored as if it were not
	found     atomic.Bool
}

// Config are the settings of Config about the streams of a deployment.
type Config struct {
	Partitions, Replicas      int
	Horizon, DeadLetterMaxAge time.Duration
	LaneMaxBytes              int64
}

// Provision creates missing assets of the deployment, and checks existing ones as Check
// does. It may be called at any time, by any number of programs concurrently.
//
// Created streams are empty. For a deployment that was complete before, call Lost first: creating a lost stream
// anew discards the information that its data is missing.
func (pr *Provisioner) Provision(ctx context.Context) error { return pr.provisionBut(ctx, nil) }

// provisionBut is Provision of all streams except lost ones.
func (pr *Provisioner) provisionBut(ctx context.Context, lost []string) error {
	stored, err := pr.StoredSettings(ctx)
	if err == nil && stored.Horizon == 0 { // the bucket that stores it is missing
		err = pr.createWorkers(ctx, stored)
	}
	if err != nil {
		return err
	}
	stored, err = pr.StoredSettings(ctx) // another program may have just decided them
	if err != nil {
		return err
	}
	if err := pr.Choose(stored); err != nil {
		return err
	}
	away := false
	return pr.eachAsset(func(a Spec) error {
		if away || slices.Contains(lost, a.Config.Name) { // the next one would wait for as long without effect
			return nil
		}
		err := pr.provision(ctx, a)
		away = isAwayPeer(err)
		return err
	})
}

// createWorkers creates the bucket with the fixed settings of a deployment. If other streams exist, they
// determine the number of partitions; only the bucket stores the horizon.
func (pr *Provisioner) createWorkers(ctx context.Context, stored Settings) error {
	if stored.Partitions > 0 && pr.Want.Horizon == 0 {
		return fmt.Errorf("stream %s is missing, and other streams of the deployment are there: restore it, or say with which horizon it was created (`settle provision --horizon`)", wire.BucketStream(pr.Names.WorkersBucket()))
	}
	if err := pr.Choose(stored); err != nil {
		return err
	}
	return pr.create(ctx, pr.WorkersSpec(pr.Partitions()).Config)
}

// Lost returns the missing streams of partitions, and the bucket of the workers, if other streams of the deployment
// have data: the missing ones existed once. A stream created in place of one is empty. One that is being restored
// counts as lost until that has ended.
func (pr *Provisioner) Lost(ctx context.Context) (lost []string, err error) {
	stored, err := pr.StoredSettings(ctx)
	if err != nil || stored.Partitions == 0 {
		return nil, err
	}
	if stored.Horizon == 0 {
		lost = append(lost, wire.BucketStream(pr.Names.WorkersBucket()))
	}
	used := false
	for p := range stored.Partitions {
		for _, a := range []Spec{pr.logAsset(p), pr.laneAsset(p), pr.stateAsset(p)} {
			info, err := pr.StreamInfo(ctx, a.Config.Name)
			switch {
			case errors.Is(err, wire.ErrNoStream):
				lost = append(lost, a.Config.Name)
			case err != nil:
				return nil, fmt.Errorf("stream %s: %w", a.Config.Name, err)
			case IsRestoring(info):
				lost, used = append(lost, a.Config.Name), true
			default:
				used = used || info.State.LastSeq > 0
			}
		}
	}
	if !used {
		return nil, nil
	}
	return lost, nil
}

// Check compares every setting on which a guarantee rests with the required one, and
// creates nothing. The error joins an *AssetError for each altered asset, and
// names the missing ones; it is ErrNoDeployment if all are missing.
func (pr *Provisioner) Check(ctx context.Context) error { return pr.checkBut(ctx, nil) }

// checkBut is Check of all streams except those of partitions that are lost.
func (pr *Provisioner) checkBut(ctx context.Context, lost []string) error {
	found, err := pr.defects(ctx, 0)
	if err != nil {
		return err
	}
	var errs []error
	for i := range found {
		if d := &found[i]; !d.Missing() && !errors.Is(d.Err, errStreamRestoring) || d.Partition == AllPartitions || !slices.Contains(lost, d.Stream) {
			errs = append(errs, d.Err)
		}
	}
	return errors.Join(errs...)
}

// ErrNoDeployment reports that no asset of a deployment exists.
var ErrNoDeployment = errors.New("there is no deployment of this prefix on this server; create it with Bus.Provision or `settle provision`")

// Deployments returns the prefixes of the deployments in the account, sorted: those that have a stream of the
// log of partition 0. It lists streams, which no role permits. It returns none for a user without that permission.
func (pr *Provisioner) Deployments(ctx context.Context) (prefixes []string, err error) {
	if pr.MayPublish(ctx, "list streams", "", "$JS.API.STREAM.LIST") != nil {
		return nil, ctx.Err()
	}
	list := pr.JS.ListStreams(ctx, jetstream.WithStreamListSubject("*.log.0.*"))
	for info := range list.Info() {
		for _, subject := range info.Config.Subjects {
			if prefix, is := strings.CutSuffix(subject, ".log.0.*"); is && info.Config.Name == wire.NewNames(prefix).LogStream(0) {
				prefixes = append(prefixes, prefix)
			}
		}
	}
	slices.Sort(prefixes)
	return prefixes, list.Err()
}

func (pr *Provisioner) WorkersSpec(partitions int) Spec { return pr.Specs(partitions)[0] }

func (pr *Provisioner) eachAsset(do func(Spec) error) error {
	var errs []error
	for _, a := range pr.Specs(pr.Partitions()) {
		errs = append(errs, do(a))
	}
	return errors.Join(errs...)
}

// provision creates a missing asset, and checks it.
func (pr *Provisioner) provision(ctx context.Context, a Spec) error {
	err := pr.CheckStream(ctx, a, 0)
	if err == nil {
		return pr.addSends(ctx, a)
	}
	if !errors.Is(err, wire.ErrNoStream) {
		return err
	}
	if err := pr.create(ctx, a.Config); err != nil {
		return err
	}
	return pr.CheckStream(ctx, a, pr.Timing.Placement)
}

// addSends adds the subjects under which clients send to a lane of a deployment of an earlier version.
func (pr *Provisioner) addSends(ctx context.Context, a Spec) error {
	if a.Component != ComponentLane {
		return nil
	}
	info, err := pr.StreamInfo(ctx, a.Config.Name)
	if err != nil || setSends.value(info.Config) == setSends.value(a.Config) {
		return err
	}
	c := info.Config
	c.Subjects = a.Config.Subjects
	err = pr.Persist(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, pr.AckTimeout)
		defer cancel()
		_, err := pr.JS.UpdateStream(ctx, c)
		return wire.APITransient(err)
	})
	if err != nil {
		return fmt.Errorf("add the subjects of clients to stream %s: %w", c.Name, err)
	}
	return nil
}

// create creates a stream. If one of that name appeared meanwhile, that is no error:
// it is checked next.
func (pr *Provisioner) create(ctx context.Context, c jetstream.StreamConfig) error {
	err := pr.CreateReplicated(ctx, c, pr.Want.Replicas)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

// CreateReplicated creates a stream with so many replicas. 0 is 3 if that is
// possible: only a single server refuses it, as it is not in a cluster.
func (pr *Provisioner) CreateReplicated(ctx context.Context, c jetstream.StreamConfig, replicas int) error {
	if replicas == 0 {
		err := pr.CreateReplicated(ctx, c, 3)
		if wire.IsCode(err, wire.CodeReplicasNotSupported) {
			return pr.CreateReplicated(ctx, c, 1)
		}
		return err
	}
	if err := pr.CheckReplicas(c.Name, replicas); err != nil {
		return err
	}
	c.Replicas = replicas
	return explainCreate(pr.createPatiently(ctx, c), c)
}

// createPatiently repeats the request until there is an answer: while a cluster starts, a request may
// reach none of its servers. Creating the same stream twice has no further effect.
func (pr *Provisioner) createPatiently(ctx context.Context, c jetstream.StreamConfig) error {
	placement := time.Now().Add(pr.Timing.Placement)
	return pr.Persist(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, pr.AckTimeout)
		defer cancel()
		_, err := pr.JS.CreateStream(ctx, c)
		if isAwayPeer(err) && time.Now().Before(placement) {
			return wire.Transient(err)
		}
		return wire.APITransient(err)
	})
}

// isAwayPeer reports whether a stream could not be placed because the cluster has not heard
// from one of its servers recently, or since its route was renewed.
func isAwayPeer(err error) bool {
	return err != nil && wire.IsCode(err, wire.CodeClusterNoPeers) && strings.Contains(err.Error(), "peer offline")
}

// CheckReplicas refuses a single replica in a cluster before anything is created.
func (pr *Provisioner) CheckReplicas(stream string, replicas int) error {
	if cluster := pr.NC.ConnectedClusterName(); replicas == 1 && cluster != "" && pr.KV == "" {
		return singleReplica(stream, cluster)
	}
	return nil
}

func singleReplica(stream, cluster string) error {
	return &AssetError{
		Refused: true, Stream: stream, Setting: "replicas", Found: "1", Wanted: "3 or 5 in cluster " + cluster,
		Breaks: "a restart of the one server that has it can lose what was acknowledged, and takes its partition away while it lasts",
		Fix:    "Set replicas to 3, or to 0 to let that be chosen; an existing stream is changed with `nats stream edit " + stream + " --replicas 3`",
	}
}

// explainCreate adds advice to an error that an operator has to resolve.
func explainCreate(err error, c jetstream.StreamConfig) error {
	switch {
	case err == nil, errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		return err
	case wire.IsCode(err, wire.CodeReplicasNotSupported):
		return fmt.Errorf("create stream %s with %d replicas: the server is not part of a cluster: %w; use 1 replica, or 0 to let that be chosen", c.Name, c.Replicas, err)
	case wire.IsCode(err, wire.CodeClusterNoPeers), wire.IsCode(err, wire.CodeInsufficientResources):
		return fmt.Errorf("create stream %s with %d replicas: the cluster has no such number of servers with room for it: %w; add servers, or use fewer replicas", c.Name, c.Replicas, err)
	case wire.IsCode(err, wire.CodeStreamSubjectOverlap):
		return fmt.Errorf("create stream %s for %s: another stream has such subjects: %w; remove that stream, or use another prefix", c.Name, sorted(c.Subjects), err)
	}
	return fmt.Errorf("create stream %s: %w", c.Name, err)
}

// CheckStream compares an asset with the existing one; it returns errNoStream if it is missing, after the confirmation that
// askStream requires.
func (pr *Provisioner) CheckStream(ctx context.Context, a Spec, absent time.Duration) error {
	info, err := pr.AskStream(ctx, absent, a.Config.Name)
	switch {
	case errors.Is(err, wire.ErrNoStream):
		return fmt.Errorf("stream %s (%s): %w; `settle doctor` says what to do: if it was there once, an empty one in its place has forgotten everything", a.Config.Name, a.Component, err)
	case err != nil:
		return fmt.Errorf("stream %s (%s): %w", a.Config.Name, a.Component, err)
	case IsRestoring(info) && a.Component != ComponentWorkers: // the workers' bucket is marked during a full restore
		return fmt.Errorf("stream %s (%s): %w", a.Config.Name, a.Component, errStreamRestoring)
	}
	errs := a.check(info.Config)
	if err := pr.CheckStoredReplicas(info); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// IsRestoring reports whether a stream is being restored and not open yet.
func IsRestoring(info *jetstream.StreamInfo) bool { return info.Config.Metadata[MetaRestoring] != "" }

// CheckStoredReplicas refuses a number of replicas that is not the configured one,
// and one replica in a cluster.
func (pr *Provisioner) CheckStoredReplicas(info *jetstream.StreamInfo) error {
	found, wanted := info.Config.Replicas, pr.Want.Replicas
	if wanted != 0 && found != wanted {
		return &AssetError{
			Refused: true, Stream: info.Config.Name, Setting: "replicas", Found: strconv.Itoa(found), Wanted: strconv.Itoa(wanted),
			Breaks: "fewer servers than intended can fail without losing what was acknowledged",
			Fix:    fmt.Sprintf("Change it with `nats stream edit %s --replicas %d`, or run with %d or 0", info.Config.Name, wanted, found),
		}
	}
	if cluster := wire.ClusterOf(info); cluster != "" && found == 1 {
		return singleReplica(info.Config.Name, cluster)
	}
	return nil
}

// Settings are fixed when a deployment is created; they are zero while
// there is none. Only the horizon is zero if the bucket of the workers is missing and other streams exist.
type Settings struct {
	Partitions int
	Horizon    time.Duration
}

// StoredSettings returns those that the deployment was created with.
func (pr *Provisioner) StoredSettings(ctx context.Context) (Settings, error) {
	var none Settings
	name := wire.BucketStream(pr.Names.WorkersBucket())
	info, err := pr.StreamInfo(ctx, name)
	if errors.Is(err, wire.ErrNoStream) {
		others, failed := pr.settingsOfOthers(ctx)
		if failed != nil || others.Partitions == 0 {
			return others, failed
		}
		if info, err = pr.StreamInfo(ctx, name); errors.Is(err, wire.ErrNoStream) { // it is not just being created: it comes before the others
			return others, nil
		}
	}
	switch {
	case err != nil:
		return none, fmt.Errorf("look for the deployment: %w", err)
	case info.Config.Metadata[MetaRestoring] != "" && !pr.Restoring:
		return none, ErrRestoring
	}
	n, err := partitionsIn(info)
	if err != nil {
		return none, err
	}
	h, err := time.ParseDuration(horizonText(info.Config.Metadata[metaHorizon]))
	if err != nil || h < MinHorizon {
		return none, fmt.Errorf("stream %s: metadata %s is %q, not a duration of at least %v: restore it", name, metaHorizon, info.Config.Metadata[metaHorizon], MinHorizon)
	}
	return Settings{Partitions: n, Horizon: h}, nil
}

func partitionsIn(info *jetstream.StreamInfo) (int, error) {
	text := info.Config.Metadata[metaPartitions]
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPartitions {
		return 0, fmt.Errorf("stream %s: metadata %s is %q, not a number of partitions; it is not Settle's, or was altered: restore it, or use another prefix",
			info.Config.Name, metaPartitions, text)
	}
	return n, nil
}

// settingsOfOthers reads the settings from the other streams of a deployment whose bucket of workers is missing. Every
// stream stores them, so that the deployment is not taken for a missing one, and created with other partitions.
func (pr *Provisioner) settingsOfOthers(ctx context.Context) (Settings, error) {
	for _, a := range []Spec{pr.logAsset(0), pr.laneAsset(0), pr.stateAsset(0), pr.deadAsset()} {
		info, err := pr.AskStream(ctx, 0, a.Config.Name) // the leader has confirmed it for long enough
		switch {
		case errors.Is(err, wire.ErrNoStream):
			continue
		case err != nil:
			return Settings{}, fmt.Errorf("look for the deployment: %w", err)
		}
		n, err := partitionsIn(info)
		return Settings{Partitions: n}, err
	}
	return Settings{}, nil
}

// MayProvision returns model.ErrForbidden if the server reports that this user may not create the streams of a
// deployment, and nil if it may, or if that is not known.
func (pr *Provisioner) MayProvision(ctx context.Context) error {
	var subjects []string
	for _, a := range pr.Specs(pr.Partitions()) {
		subjects = append(subjects, pr.API+"STREAM.CREATE."+a.Config.Name)
	}
	return pr.MayPublish(ctx, "creating a deployment", roles.Administrator, subjects...)
}

// MaxPartitions prevents a typing error from creating more streams than a
// server supports.
const MaxPartitions = 1024

// MinHorizon is the shortest horizon: retries need some time.
const MinHorizon = time.Minute

// MetaRestoring is in the metadata of every stream of a deployment that is being restored. Its
// value is the stage, the id of the backup, and a token of the restore.
const MetaRestoring = "settle.io/restoring"

// ErrRestoring reports that a deployment must not be used: a restore is running, or was interrupted.
var ErrRestoring = errors.New("this deployment is being restored, or a restore of it was interrupted: wait for it to end, or run `settle restore` again with the same backup")

// errStreamRestoring is ErrRestoring of one stream.
var errStreamRestoring = fmt.Errorf("%w (with --stream)", ErrRestoring)

// Choose selects the stored setting, the configured one, or the default, in this order, and
// returns an error if the configured one differs from the stored one.
func (pr *Provisioner) Choose(stored Settings) error {
	if n := pr.Want.Partitions; n != 0 && stored.Partitions != 0 && n != stored.Partitions {
		return partitionsError(pr.Names.WorkersBucket(), stored.Partitions, n)
	}
	if h := pr.Want.Horizon; h != 0 && stored.Horizon != 0 && h != stored.Horizon {
		return horizonError(pr.Names.WorkersBucket(), stored.Horizon, h)
	}
	if stored.Partitions != 0 {
		pr.found.Store(true)
	}
	pr.Adopt(cmp.Or(stored.Partitions, pr.Want.Partitions, DefaultPartitions), cmp.Or(stored.Horizon, pr.Want.Horizon, model.DefaultHorizon))
	return nil
}

// DefaultPartitions is the number of partitions of a new deployment without a
// configured number. A partition costs three streams, and more of them let more
// workers share the spaces; the number cannot be changed later.
const DefaultPartitions = 8
