package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// provisioner creates and checks the streams of a deployment.
type provisioner struct {
	*streams
	want      provisionConfig
	restoring bool // read a deployment that is being restored as if it were not
}

// provisionConfig are the settings of Config about the streams of a deployment.
type provisionConfig struct {
	Partitions, Replicas      int
	Horizon, DeadLetterMaxAge time.Duration
	LaneMaxBytes              int64
}

// Provision creates missing assets of the deployment, and checks existing ones as Check
// does. It may be called at any time, by any number of programs concurrently.
//
// Created streams are empty. For a deployment that was complete before, call Lost first: creating a lost stream
// anew discards the information that its data is missing.
func (pr *provisioner) Provision(ctx context.Context) error { return pr.provisionBut(ctx, nil) }

// provisionBut is Provision of all streams except lost ones.
func (pr *provisioner) provisionBut(ctx context.Context, lost []string) error {
	stored, err := pr.storedSettings(ctx)
	if err == nil && stored.horizon == 0 { // the bucket that stores it is missing
		err = pr.createWorkers(ctx, stored)
	}
	if err != nil {
		return err
	}
	stored, err = pr.storedSettings(ctx) // another program may have just decided them
	if err != nil {
		return err
	}
	if err := pr.choose(stored); err != nil {
		return err
	}
	away := false
	return pr.eachAsset(func(a asset) error {
		if away || slices.Contains(lost, a.config.Name) { // the next one would wait for as long without effect
			return nil
		}
		err := pr.provision(ctx, a)
		away = isAwayPeer(err)
		return err
	})
}

// createWorkers creates the bucket with the fixed settings of a deployment. If other streams exist, they
// determine the number of partitions; only the bucket stores the horizon.
func (pr *provisioner) createWorkers(ctx context.Context, stored settingsOfDeployment) error {
	if stored.partitions > 0 && pr.want.Horizon == 0 {
		return fmt.Errorf("stream %s is missing, and other streams of the deployment are there: restore it, or say with which horizon it was created (`settle provision --horizon`)", bucketStream(pr.names.workersBucket()))
	}
	if err := pr.choose(stored); err != nil {
		return err
	}
	return pr.create(ctx, pr.workersAssetOf(pr.Partitions()).config)
}

// Lost returns the missing streams of partitions, and the bucket of the workers, if other streams of the deployment
// have data: the missing ones existed once. A stream created in place of one is empty. One that is being restored
// counts as lost until that has ended.
func (pr *provisioner) Lost(ctx context.Context) (lost []string, err error) {
	stored, err := pr.storedSettings(ctx)
	if err != nil || stored.partitions == 0 {
		return nil, err
	}
	if stored.horizon == 0 {
		lost = append(lost, bucketStream(pr.names.workersBucket()))
	}
	used := false
	for p := range stored.partitions {
		for _, a := range []asset{pr.logAsset(p), pr.laneAsset(p), pr.stateAsset(p)} {
			info, err := pr.streamInfo(ctx, a.config.Name)
			switch {
			case errors.Is(err, errNoStream):
				lost = append(lost, a.config.Name)
			case err != nil:
				return nil, fmt.Errorf("stream %s: %w", a.config.Name, err)
			case isRestoring(info):
				lost, used = append(lost, a.config.Name), true
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
func (pr *provisioner) Check(ctx context.Context) error { return pr.checkBut(ctx, nil) }

// checkBut is Check of all streams except those of partitions that are lost.
func (pr *provisioner) checkBut(ctx context.Context, lost []string) error {
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
var ErrNoDeployment = errors.New("there is no deployment of this prefix on this server; create it with Provision")

// Deployments returns the prefixes of the deployments in the account, sorted: those that have a stream of the
// log of partition 0. It lists streams, which no role permits. It returns none for a user without that permission.
func (pr *provisioner) Deployments(ctx context.Context) (prefixes []string, err error) {
	if pr.mayPublish(ctx, "list streams", "", "$JS.API.STREAM.LIST") != nil {
		return nil, ctx.Err()
	}
	list := pr.js.ListStreams(ctx, jetstream.WithStreamListSubject("*.log.0.*"))
	for info := range list.Info() {
		for _, subject := range info.Config.Subjects {
			if prefix, is := strings.CutSuffix(subject, ".log.0.*"); is && info.Config.Name == newNames(prefix).logStream(0) {
				prefixes = append(prefixes, prefix)
			}
		}
	}
	slices.Sort(prefixes)
	return prefixes, list.Err()
}

func (pr *provisioner) workersAssetOf(partitions int) asset { return pr.assets(partitions)[0] }

func (pr *provisioner) eachAsset(do func(asset) error) error {
	var errs []error
	for _, a := range pr.assets(pr.Partitions()) {
		errs = append(errs, do(a))
	}
	return errors.Join(errs...)
}

// provision creates a missing asset, and checks it.
func (pr *provisioner) provision(ctx context.Context, a asset) error {
	err := pr.check(ctx, a, 0)
	if !errors.Is(err, errNoStream) {
		return err
	}
	if err := pr.create(ctx, a.config); err != nil {
		return err
	}
	return pr.check(ctx, a, pr.timing.placement)
}

// create creates a stream. If one of that name appeared meanwhile, that is no error:
// it is checked next.
func (pr *provisioner) create(ctx context.Context, c jetstream.StreamConfig) error {
	err := pr.createReplicated(ctx, c, pr.want.Replicas)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return nil
	}
	return err
}

// createReplicated creates a stream with so many replicas. 0 is 3 if that is
// possible: only a single server refuses it, as it is not in a cluster.
func (pr *provisioner) createReplicated(ctx context.Context, c jetstream.StreamConfig, replicas int) error {
	if replicas == 0 {
		err := pr.createReplicated(ctx, c, 3)
		if isCode(err, codeReplicasNotSupported) {
			return pr.createReplicated(ctx, c, 1)
		}
		return err
	}
	if err := pr.checkReplicas(c.Name, replicas); err != nil {
		return err
	}
	c.Replicas = replicas
	return explainCreate(pr.createPatiently(ctx, c), c)
}

// createPatiently repeats the request until there is an answer: while a cluster starts, a request may
// reach none of its servers. Creating the same stream twice has no further effect.
func (pr *provisioner) createPatiently(ctx context.Context, c jetstream.StreamConfig) error {
	placement := time.Now().Add(pr.timing.placement)
	return pr.persist(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, pr.ackTimeout)
		defer cancel()
		_, err := pr.js.CreateStream(ctx, c)
		if isAwayPeer(err) && time.Now().Before(placement) {
			return transient(err)
		}
		return apiTransient(err)
	})
}

// isAwayPeer reports whether a stream could not be placed because the cluster has not heard
// from one of its servers recently, or since its route was renewed.
func isAwayPeer(err error) bool {
	return err != nil && isCode(err, codeClusterNoPeers) && strings.Contains(err.Error(), "peer offline")
}

// checkReplicas refuses a single replica in a cluster before anything is created.
func (pr *provisioner) checkReplicas(stream string, replicas int) error {
	if cluster := pr.nc.ConnectedClusterName(); replicas == 1 && cluster != "" && pr.kv == "" {
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
	case isCode(err, codeReplicasNotSupported):
		return fmt.Errorf("create stream %s with %d replicas: the server is not part of a cluster: %w; use 1 replica, or 0 to let that be chosen", c.Name, c.Replicas, err)
	case isCode(err, codeClusterNoPeers), isCode(err, codeInsufficientResources):
		return fmt.Errorf("create stream %s with %d replicas: the cluster has no such number of servers with room for it: %w; add servers, or use fewer replicas", c.Name, c.Replicas, err)
	case isCode(err, codeStreamSubjectOverlap):
		return fmt.Errorf("create stream %s for %s: another stream has such subjects: %w; remove that stream, or use another prefix", c.Name, sorted(c.Subjects), err)
	}
	return fmt.Errorf("create stream %s: %w", c.Name, err)
}

// check compares an asset with the existing one; it returns errNoStream if it is missing, after the confirmation that
// askStream requires.
func (pr *provisioner) check(ctx context.Context, a asset, absent time.Duration) error {
	info, err := pr.askStream(ctx, absent, a.config.Name)
	switch {
	case errors.Is(err, errNoStream):
		return fmt.Errorf("stream %s (%s): %w; `settle doctor` says what to do: if it was there once, an empty one in its place has forgotten everything", a.config.Name, a.component, err)
	case err != nil:
		return fmt.Errorf("stream %s (%s): %w", a.config.Name, a.component, err)
	case isRestoring(info) && a.component != ComponentWorkers: // the workers' bucket is marked during a full restore
		return fmt.Errorf("stream %s (%s): %w", a.config.Name, a.component, errStreamRestoring)
	}
	errs := a.check(info.Config)
	if err := pr.checkStoredReplicas(info); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// isRestoring reports whether a stream is being restored and not open yet.
func isRestoring(info *jetstream.StreamInfo) bool { return info.Config.Metadata[metaRestoring] != "" }

// checkStoredReplicas refuses a number of replicas that is not the configured one,
// and one replica in a cluster.
func (pr *provisioner) checkStoredReplicas(info *jetstream.StreamInfo) error {
	found, wanted := info.Config.Replicas, pr.want.Replicas
	if wanted != 0 && found != wanted {
		return &AssetError{
			Refused: true, Stream: info.Config.Name, Setting: "replicas", Found: strconv.Itoa(found), Wanted: strconv.Itoa(wanted),
			Breaks: "fewer servers than intended can fail without losing what was acknowledged",
			Fix:    fmt.Sprintf("Change it with `nats stream edit %s --replicas %d`, or run with %d or 0", info.Config.Name, wanted, found),
		}
	}
	if cluster := clusterOf(info); cluster != "" && found == 1 {
		return singleReplica(info.Config.Name, cluster)
	}
	return nil
}

// settingsOfDeployment are fixed when a deployment is created; they are zero while
// there is none. Only the horizon is zero if the bucket of the workers is missing and other streams exist.
type settingsOfDeployment struct {
	partitions int
	horizon    time.Duration
}

// storedSettings returns those that the deployment was created with.
func (pr *provisioner) storedSettings(ctx context.Context) (settingsOfDeployment, error) {
	var none settingsOfDeployment
	name := bucketStream(pr.names.workersBucket())
	info, err := pr.streamInfo(ctx, name)
	switch {
	case errors.Is(err, errNoStream):
		return pr.settingsOfOthers(ctx)
	case err != nil:
		return none, fmt.Errorf("look for the deployment: %w", err)
	case info.Config.Metadata[metaRestoring] != "" && !pr.restoring:
		return none, ErrRestoring
	}
	n, err := partitionsIn(info)
	if err != nil {
		return none, err
	}
	h, err := time.ParseDuration(horizonText(info.Config.Metadata[metaHorizon]))
	if err != nil || h < minHorizon {
		return none, fmt.Errorf("stream %s: metadata %s is %q, not a duration of at least %v: restore it", name, metaHorizon, info.Config.Metadata[metaHorizon], minHorizon)
	}
	return settingsOfDeployment{partitions: n, horizon: h}, nil
}

func partitionsIn(info *jetstream.StreamInfo) (int, error) {
	text := info.Config.Metadata[metaPartitions]
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPartitions {
		return 0, fmt.Errorf("stream %s: metadata %s is %q, not a number of partitions; it is not Settle's, or was altered: restore it, or use another prefix",
			info.Config.Name, metaPartitions, text)
	}
	return n, nil
}

// settingsOfOthers reads the settings from the other streams of a deployment whose bucket of workers is missing. Every
// stream stores them, so that the deployment is not taken for a missing one, and created with other partitions.
func (pr *provisioner) settingsOfOthers(ctx context.Context) (settingsOfDeployment, error) {
	for _, a := range []asset{pr.logAsset(0), pr.laneAsset(0), pr.stateAsset(0), pr.deadAsset()} {
		info, err := pr.askStream(ctx, 0, a.config.Name) // the leader has confirmed it for long enough
		switch {
		case errors.Is(err, errNoStream):
			continue
		case err != nil:
			return settingsOfDeployment{}, fmt.Errorf("look for the deployment: %w", err)
		}
		n, err := partitionsIn(info)
		return settingsOfDeployment{partitions: n}, err
	}
	return settingsOfDeployment{}, nil
}

// MayProvision returns model.ErrForbidden if the server reports that this user may not create the streams of a
// deployment, and nil if it may, or if that is not known.
func (pr *provisioner) MayProvision(ctx context.Context) error {
	var subjects []string
	for _, a := range pr.assets(pr.Partitions()) {
		subjects = append(subjects, pr.api+"STREAM.CREATE."+a.config.Name)
	}
	return pr.mayPublish(ctx, "creating a deployment", RoleOperator, subjects...)
}
