package provision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// Schema is the version of the assets' layout: names, subjects, headers and
// settings. Programs of the same schema are compatible.
const Schema = 1

// Metadata of every asset.
const (
	metaComponent  = "settle.io/component"
	MetaVersion    = "settle.io/version" // of the program that created it
	metaSchema     = "settle.io/schema"
	metaPartitions = "settle.io/partitions"
	metaHorizon    = "settle.io/horizon" // of the workers' bucket only
)

const (
	partitionsSetting = "partition count (metadata " + metaPartitions + ")"
	lostSpaces        = "spaces would be looked for in partitions where they are not"
)

// AssetError reports that a stream lacks a setting on which a guarantee
// rests.
type AssetError struct {
	Stream  string
	Setting string
	Found   string
	Wanted  string
	Breaks  string // the guarantee that does not hold with the present setting
	Fix     string // how to repair it
	// Refused reports that programs refuse the stream; Limits that no guarantee is broken, but that work can stop.
	Refused, Limits bool
}

func (e *AssetError) Error() string {
	return fmt.Sprintf("stream %s: %s is %s, must be %s: otherwise %s. %s", e.Stream, e.Setting, e.Found, e.Wanted, e.Breaks, e.Fix)
}

// partitionsError reports that a deployment has another number of partitions.
func partitionsError(bucket string, stored, wanted int) error {
	return &AssetError{
		Stream: wire.BucketStream(bucket), Setting: partitionsSetting, Refused: true,
		Found: strconv.Itoa(stored), Wanted: strconv.Itoa(wanted),
		Breaks: lostSpaces,
		Fix:    fmt.Sprintf("The number is fixed when a deployment is created: run with %d, or with 0 to take what is stored", stored),
	}
}

const horizonSetting = "horizon (metadata " + metaHorizon + ")"

// horizonError reports that a deployment has another horizon.
func horizonError(bucket string, stored, wanted time.Duration) error {
	return &AssetError{
		Stream: wire.BucketStream(bucket), Setting: horizonSetting, Refused: true,
		Found: stored.String(), Wanted: wanted.String(),
		Breaks: "an event could be forgotten by one worker while another still accepts its id, and be handled twice",
		Fix:    fmt.Sprintf("The horizon is fixed when a deployment is created: run with %v, or with 0 to take what is stored", stored),
	}
}

// Spec is a stream that the deployment needs.
type Spec struct {
	Component string // lane, log, state, workers, dead, programs
	Partition int    // AllPartitions for a shared one
	Config    jetstream.StreamConfig
	Rules     []rule
}

// Specs returns all of them. The bucket of the workers comes first: there is only
// one, so it decides between two programs that create a
// deployment at the same time with different numbers of partitions.
func (pr *Provisioner) Specs(partitions int) []Spec {
	all := []Spec{pr.workersAsset(), pr.deadAsset(), pr.programsAsset()}
	for i := range all {
		all[i].Partition = AllPartitions
	}
	for p := range partitions {
		all = append(all, pr.logAsset(p), pr.laneAsset(p), pr.stateAsset(p))
	}
	for i := range all {
		all[i].Config.Metadata = map[string]string{
			metaComponent:  all[i].Component,
			MetaVersion:    pr.Version,
			metaSchema:     strconv.Itoa(Schema),
			metaPartitions: strconv.Itoa(partitions),
		}
	}
	all[0].Config.Metadata[metaHorizon] = pr.Horizon().String()
	return all
}

func (pr *Provisioner) logAsset(p int) Spec {
	c := streamConfig(pr.Names.LogStream(p), pr.Names.Logs(p))
	c.Description = "Settle: the commits of the spaces of partition " + strconv.Itoa(p)
	c.MaxMsgsPerSubject = -1
	c.RePublish = &jetstream.RePublish{Source: pr.Names.Logs(p), Destination: pr.Names.Feeds(p)}
	return Spec{Component: ComponentLog, Partition: p, Config: c, Rules: logRules}
}

func (pr *Provisioner) laneAsset(p int) Spec {
	c := streamConfig(pr.Names.LaneStream(p), pr.Names.Lanes(p)...)
	c.Description = "Settle: the events for the spaces of partition " + strconv.Itoa(p)
	c.MaxMsgsPerSubject = 1
	c.DiscardNewPerSubject = true
	if pr.Want.LaneMaxBytes > 0 {
		c.MaxBytes = pr.Want.LaneMaxBytes
	}
	return Spec{Component: ComponentLane, Partition: p, Config: c, Rules: laneRules}
}

func (pr *Provisioner) stateAsset(p int) Spec {
	c := bucketConfig(pr.Names.StateBucket(p))
	c.Description = "Settle: the documents of the spaces of partition " + strconv.Itoa(p)
	return Spec{Component: ComponentState, Partition: p, Config: c, Rules: stateRules}
}

func (pr *Provisioner) workersAsset() Spec {
	c := bucketConfig(pr.Names.WorkersBucket())
	c.Description = "Settle: the workers, and the number of partitions"
	c.MaxAge = memberAge
	return Spec{Component: "workers", Config: c, Rules: workersRules}
}

// memberAge is how long a member's last announcement is kept: departed members
// stay visible for a while, and do not pile up.
const memberAge = time.Hour

func (pr *Provisioner) programsAsset() Spec {
	c := bucketConfig(pr.Names.ProgramsBucket())
	c.Description = "Settle: the versions of hosted programs, and which space runs which"
	return Spec{Component: "programs", Config: c, Rules: programsRules}
}

// deadAsset stores one letter about each event, from any number of coordinators.
func (pr *Provisioner) deadAsset() Spec {
	c := streamConfig(pr.Names.DeadStream(), pr.Names.Deads())
	c.Description = "Settle: the events that failed or were refused"
	c.MaxMsgsPerSubject = 1
	c.DiscardNewPerSubject = true
	c.MaxAge = pr.Want.DeadLetterMaxAge
	return Spec{Component: "dead", Config: c, Rules: deadRules}
}

// streamConfig returns the common settings of LANE, LOG and DEAD. The window for Nats-Msg-Id is
// as small as the server allows: it could only swallow messages that are no duplicates.
func streamConfig(name string, subjects ...string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: subjects,
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxMsgs: -1, MaxBytes: -1, MaxConsumers: -1, MaxMsgSize: -1,
		Duplicates: duplicateWindow,
		DenyDelete: true, AllowDirect: true,
	}
}

// bucketConfig returns the settings that every NATS client accepts as a KV bucket with history 1.
func bucketConfig(bucket string) jetstream.StreamConfig {
	c := streamConfig(wire.BucketStream(bucket), wire.BucketSubject(bucket, ">"))
	c.MaxMsgsPerSubject = 1
	c.AllowRollup = true
	return c
}

// How settings are compared and shown. The server completes empty settings, so
// equal settings can be spelt differently; these functions normalise them.

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func limit(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func age(d time.Duration) string {
	if d == 0 {
		return "unlimited"
	}
	return d.String()
}

// horizonText returns the default for a deployment that stores no horizon.
func horizonText(stored string) string {
	if stored == "" {
		return model.DefaultHorizon.String()
	}
	return stored
}

// sentSubjects returns those of a lane's subjects under which clients send; lanes of deployments of earlier versions have none
// until they are provisioned again. ownSubjects returns the others.
func sentSubjects(c jetstream.StreamConfig) (sent []string) {
	if !slices.ContainsFunc(c.Subjects, wire.IsLaneSubject) {
		return nil
	}
	for _, s := range c.Subjects {
		if wire.IsSendSubject(s) {
			sent = append(sent, s)
		}
	}
	return sent
}

func ownSubjects(c jetstream.StreamConfig) []string {
	sent := sentSubjects(c)
	return slices.DeleteFunc(slices.Clone(c.Subjects), func(s string) bool { return slices.Contains(sent, s) })
}

func sorted(subjects []string) string {
	subjects = slices.Clone(subjects)
	slices.Sort(subjects)
	return strings.Join(subjects, ", ")
}

func transformText(t *jetstream.SubjectTransformConfig) string {
	if t == nil {
		return "none"
	}
	return t.Source + " to " + t.Destination
}

func republishText(r *jetstream.RePublish) string {
	switch {
	case r == nil:
		return "none"
	case r.HeadersOnly:
		return r.Source + " to " + r.Destination + ", headers only"
	}
	return r.Source + " to " + r.Destination
}

func sourceText(s *jetstream.StreamSource) string {
	if s == nil {
		return "none"
	}
	return s.Name
}

func sourcesText(sources []*jetstream.StreamSource) string {
	if len(sources) == 0 {
		return "none"
	}
	var names []string
	for _, s := range sources {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

// Components of a deployment: the purpose of each of its streams.
const (
	ComponentLane     = "lane"
	ComponentLog      = "log"
	ComponentState    = "state"
	ComponentWorkers  = "workers"
	ComponentDead     = "dead"
	ComponentPrograms = "programs"
)

// Asset is one stream of a deployment.
type Asset struct {
	Stream    string `json:"stream"`
	Component string `json:"component"`
	// Partition is AllPartitions for a stream that the partitions share.
	Partition int `json:"partition"`
}

// AllPartitions is the partition number of a shared stream.
const AllPartitions = -1

// Assets returns the streams of the deployment.
func (pr *Provisioner) Assets() []Asset { return AssetsOf(pr.Names.Prefix, pr.Partitions()) }

// AssetsOf returns the streams of a deployment, those of one partition next to each other.
func AssetsOf(prefix string, partitions int) []Asset {
	n := wire.NewNames(prefix)
	all := []Asset{
		{wire.BucketStream(n.WorkersBucket()), ComponentWorkers, AllPartitions},
		{n.DeadStream(), ComponentDead, AllPartitions},
		{wire.BucketStream(n.ProgramsBucket()), ComponentPrograms, AllPartitions},
	}
	for p := range partitions {
		all = append(all,
			Asset{wire.BucketStream(n.StateBucket(p)), ComponentState, p}, Asset{n.LogStream(p), ComponentLog, p}, Asset{n.LaneStream(p), ComponentLane, p})
	}
	return all
}
