package bus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/settlehq/settle/model"
)

// Schema is the version of the assets' layout: names, subjects, headers and
// settings. Programs of the same schema are compatible.
const Schema = 1

// Metadata of every asset.
const (
	metaComponent  = "settle.io/component"
	metaVersion    = "settle.io/version" // of the program that created it
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
		Stream: bucketStream(bucket), Setting: partitionsSetting, Refused: true,
		Found: strconv.Itoa(stored), Wanted: strconv.Itoa(wanted),
		Breaks: lostSpaces,
		Fix:    fmt.Sprintf("The number is fixed when a deployment is created: run with %d, or with 0 to take what is stored", stored),
	}
}

const horizonSetting = "horizon (metadata " + metaHorizon + ")"

// horizonError reports that a deployment has another horizon.
func horizonError(bucket string, stored, wanted time.Duration) error {
	return &AssetError{
		Stream: bucketStream(bucket), Setting: horizonSetting, Refused: true,
		Found: stored.String(), Wanted: wanted.String(),
		Breaks: "an event could be forgotten by one worker while another still accepts its id, and be handled twice",
		Fix:    fmt.Sprintf("The horizon is fixed when a deployment is created: run with %v, or with 0 to take what is stored", stored),
	}
}

// asset is a stream that the deployment needs.
type asset struct {
	component string // lane, log, state, workers, dead, programs
	partition int    // AllPartitions for a shared one
	config    jetstream.StreamConfig
	rules     []rule
}

// assets returns all of them. The bucket of the workers comes first: there is only
// one, so it decides between two programs that create a
// deployment at the same time with different numbers of partitions.
func (pr *provisioner) assets(partitions int) []asset {
	all := []asset{pr.workersAsset(), pr.deadAsset(), pr.programsAsset()}
	for i := range all {
		all[i].partition = AllPartitions
	}
	for p := range partitions {
		all = append(all, pr.logAsset(p), pr.laneAsset(p), pr.stateAsset(p))
	}
	for i := range all {
		all[i].config.Metadata = map[string]string{
			metaComponent:  all[i].component,
			metaVersion:    pr.version,
			metaSchema:     strconv.Itoa(Schema),
			metaPartitions: strconv.Itoa(partitions),
		}
	}
	all[0].config.Metadata[metaHorizon] = pr.Horizon().String()
	return all
}

func (pr *provisioner) logAsset(p int) asset {
	c := streamConfig(pr.names.logStream(p), pr.names.logs(p))
	c.Description = "Settle: the commits of the spaces of partition " + strconv.Itoa(p)
	c.MaxMsgsPerSubject = -1
	c.RePublish = &jetstream.RePublish{Source: pr.names.logs(p), Destination: pr.names.feeds(p)}
	return asset{component: ComponentLog, partition: p, config: c, rules: logRules}
}

func (pr *provisioner) laneAsset(p int) asset {
	c := streamConfig(pr.names.laneStream(p), pr.names.lanes(p))
	c.Description = "Settle: the events for the spaces of partition " + strconv.Itoa(p)
	c.MaxMsgsPerSubject = 1
	c.DiscardNewPerSubject = true
	if pr.want.LaneMaxBytes > 0 {
		c.MaxBytes = pr.want.LaneMaxBytes
	}
	return asset{component: ComponentLane, partition: p, config: c, rules: laneRules}
}

func (pr *provisioner) stateAsset(p int) asset {
	c := bucketConfig(pr.names.stateBucket(p))
	c.Description = "Settle: the documents of the spaces of partition " + strconv.Itoa(p)
	return asset{component: ComponentState, partition: p, config: c, rules: stateRules}
}

func (pr *provisioner) workersAsset() asset {
	c := bucketConfig(pr.names.workersBucket())
	c.Description = "Settle: the workers, and the number of partitions"
	c.MaxAge = memberAge
	return asset{component: "workers", config: c, rules: workersRules}
}

// memberAge is how long a member's last announcement is kept: departed members
// stay visible for a while, and do not pile up.
const memberAge = time.Hour

func (pr *provisioner) programsAsset() asset {
	c := bucketConfig(pr.names.programsBucket())
	c.Description = "Settle: the versions of hosted programs, and which space runs which"
	return asset{component: "programs", config: c, rules: programsRules}
}

// deadAsset stores one letter about each event, from any number of coordinators.
func (pr *provisioner) deadAsset() asset {
	c := streamConfig(pr.names.deadStream(), pr.names.deads())
	c.Description = "Settle: the events that failed or were refused"
	c.MaxMsgsPerSubject = 1
	c.DiscardNewPerSubject = true
	c.MaxAge = pr.want.DeadLetterMaxAge
	return asset{component: "dead", config: c, rules: deadRules}
}

// streamConfig returns the common settings of LANE, LOG and DEAD. The window for Nats-Msg-Id is
// as small as the server allows: it could only swallow messages that are no duplicates.
func streamConfig(name, subject string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{subject},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxMsgs: -1, MaxBytes: -1, MaxConsumers: -1, MaxMsgSize: -1,
		Duplicates: duplicateWindow,
		DenyDelete: true, AllowDirect: true,
	}
}

// bucketConfig returns the settings that every NATS client accepts as a KV bucket with history 1.
func bucketConfig(bucket string) jetstream.StreamConfig {
	c := streamConfig(bucketStream(bucket), bucketSubject(bucket, ">"))
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
