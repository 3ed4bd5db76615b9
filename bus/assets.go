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
// settings. Programs of one schema understand each other's.
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

// AssetError says that a stream does not have a setting on which a guarantee
// rests.
type AssetError struct {
	Stream  string
	Setting string
	Found   string
	Wanted  string
	Breaks  string // the guarantee that does not hold with what was found
	Fix     string // what to do
}

func (e *AssetError) Error() string {
	return fmt.Sprintf("stream %s: %s is %s, must be %s: otherwise %s. %s", e.Stream, e.Setting, e.Found, e.Wanted, e.Breaks, e.Fix)
}

// partitionsError says that a deployment has another number of partitions.
func partitionsError(bucket string, stored, wanted int) error {
	return &AssetError{
		Stream: bucketStream(bucket), Setting: partitionsSetting,
		Found: strconv.Itoa(stored), Wanted: strconv.Itoa(wanted),
		Breaks: lostSpaces,
		Fix:    fmt.Sprintf("The number is fixed when a deployment is created: run with %d, or with 0 to take what is stored", stored),
	}
}

const horizonSetting = "horizon (metadata " + metaHorizon + ")"

// horizonError says that a deployment remembers events for another time.
func horizonError(bucket string, stored, wanted time.Duration) error {
	return &AssetError{
		Stream: bucketStream(bucket), Setting: horizonSetting,
		Found: stored.String(), Wanted: wanted.String(),
		Breaks: "an event could be forgotten by one worker while another still accepts its id, and be handled twice",
		Fix:    fmt.Sprintf("The horizon is fixed when a deployment is created: run with %v, or with 0 to take what is stored", stored),
	}
}

// asset is a stream that the deployment needs.
type asset struct {
	component string // lane, log, state, workers, dead, programs
	partition int    // AllPartitions for one that they share
	config    jetstream.StreamConfig
	rules     []rule
}

// assets are all of them. The bucket of the workers comes first: it is the one of
// which there is only one, so it decides between two programs that create a
// deployment at the same time with different numbers of partitions.
func (b *Bus) assets(partitions int) []asset {
	all := []asset{b.workersAsset(), b.deadAsset(), b.programsAsset()}
	for i := range all {
		all[i].partition = AllPartitions
	}
	for p := range partitions {
		all = append(all, b.logAsset(p), b.laneAsset(p), b.stateAsset(p))
	}
	for i := range all {
		all[i].config.Metadata = map[string]string{
			metaComponent:  all[i].component,
			metaVersion:    b.cfg.Version,
			metaSchema:     strconv.Itoa(Schema),
			metaPartitions: strconv.Itoa(partitions),
		}
	}
	all[0].config.Metadata[metaHorizon] = b.Horizon().String()
	return all
}

func (b *Bus) logAsset(p int) asset {
	c := streamConfig(b.names.logStream(p), b.names.logs(p))
	c.Description = "Settle: the commits of the spaces of partition " + strconv.Itoa(p)
	c.MaxMsgsPerSubject = -1
	c.RePublish = &jetstream.RePublish{Source: b.names.logs(p), Destination: b.names.feeds(p)}
	return asset{component: ComponentLog, partition: p, config: c, rules: logRules}
}

func (b *Bus) laneAsset(p int) asset {
	c := streamConfig(b.names.laneStream(p), b.names.lanes(p))
	c.Description = "Settle: the events for the spaces of partition " + strconv.Itoa(p)
	c.MaxMsgsPerSubject = 1
	c.DiscardNewPerSubject = true
	if b.cfg.LaneMaxBytes > 0 {
		c.MaxBytes = b.cfg.LaneMaxBytes
	}
	return asset{component: ComponentLane, partition: p, config: c, rules: laneRules}
}

func (b *Bus) stateAsset(p int) asset {
	c := bucketConfig(b.names.stateBucket(p))
	c.Description = "Settle: the documents of the spaces of partition " + strconv.Itoa(p)
	return asset{component: ComponentState, partition: p, config: c, rules: stateRules}
}

func (b *Bus) workersAsset() asset {
	c := bucketConfig(b.names.workersBucket())
	c.Description = "Settle: the workers, and the number of partitions"
	c.MaxAge = memberAge
	return asset{component: "workers", config: c, rules: workersRules}
}

// memberAge is for how long what a member has said last is kept: those that have gone
// are still seen for a while, and do not pile up.
const memberAge = time.Hour

func (b *Bus) programsAsset() asset {
	c := bucketConfig(b.names.programsBucket())
	c.Description = "Settle: the versions of hosted programs, and which space runs which"
	return asset{component: "programs", config: c, rules: programsRules}
}

// deadAsset takes a letter about each event once, from any number of coordinators.
func (b *Bus) deadAsset() asset {
	c := streamConfig(b.names.deadStream(), b.names.deads())
	c.Description = "Settle: the events that failed or were refused"
	c.MaxMsgsPerSubject = 1
	c.DiscardNewPerSubject = true
	c.MaxAge = b.cfg.DeadLetterMaxAge
	return asset{component: "dead", config: c, rules: deadRules}
}

// streamConfig is what LANE, LOG and DEAD have in common. The window for Nats-Msg-Id is
// as small as the server allows: it can only swallow what is not a duplicate.
func streamConfig(name, subject string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: name, Subjects: []string{subject},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
		MaxMsgs: -1, MaxBytes: -1, MaxConsumers: -1, MaxMsgSize: -1,
		Duplicates: 100 * time.Millisecond,
		DenyDelete: true, AllowDirect: true,
	}
}

// bucketConfig is what every NATS client takes for a KV bucket with history 1.
func bucketConfig(bucket string) jetstream.StreamConfig {
	c := streamConfig(bucketStream(bucket), bucketSubject(bucket, ">"))
	c.MaxMsgsPerSubject = 1
	c.AllowRollup = true
	return c
}

// rule is one setting that must not be altered.
type rule struct {
	setting string
	value   func(jetstream.StreamConfig) string
	breaks  string
}

// check returns an error for each rule that the found configuration breaks.
func (a *asset) check(found jetstream.StreamConfig) []error {
	var broken []error
	for _, r := range a.rules {
		is, must := r.value(found), r.value(a.config)
		if is != must {
			broken = append(broken, a.broken(r, is, must))
		}
	}
	return broken
}

func (a *asset) broken(r rule, is, must string) *AssetError {
	return &AssetError{
		Stream: a.config.Name, Setting: r.setting, Found: is, Wanted: must, Breaks: r.breaks,
		Fix: fmt.Sprintf("Set it back with `nats stream edit %s`, or use another account or prefix", a.config.Name),
	}
}

// The reasons that several rules share.
const (
	evicts    = "events, commits or documents that were acknowledged would disappear"
	forgets   = "an event that was handled could be stored again, or a commit accepted that another one precedes"
	rewrites  = "a client could remove or replace what is stored, by a header alone"
	unread    = "the records could not be found or read"
	notSafe   = "what was acknowledged could be lost"
	foreign   = "the stream would hold what nobody of Settle wrote, or not hold what was written"
	hidden    = "events that failed would not be seen, or be shown as something that they were not"
	unfollows = "confirmed commits would not reach those who follow a space"
)

// commonRules hold for every asset.
var commonRules = []rule{
	{"storage", func(c jetstream.StreamConfig) string { return c.Storage.String() }, notSafe},
	{"persist mode", func(c jetstream.StreamConfig) string { return c.PersistMode.String() }, notSafe},
	{"acknowledgements", func(c jetstream.StreamConfig) string { return onOff(!c.NoAck) }, notSafe},
	{"subjects", func(c jetstream.StreamConfig) string { return sorted(c.Subjects) }, unread},
	{"subject transform", func(c jetstream.StreamConfig) string { return transformText(c.SubjectTransform) }, unread},
	{"direct get", func(c jetstream.StreamConfig) string { return onOff(c.AllowDirect) }, unread},
	{"mirror", func(c jetstream.StreamConfig) string { return sourceText(c.Mirror) }, foreign},
	{"sources", func(c jetstream.StreamConfig) string { return sourcesText(c.Sources) }, foreign},
	{"sealed", func(c jetstream.StreamConfig) string { return onOff(c.Sealed) }, foreign},
	{"counters", func(c jetstream.StreamConfig) string { return onOff(c.AllowMsgCounter) }, foreign},
	{"largest message", func(c jetstream.StreamConfig) string { return limit(int64(c.MaxMsgSize)) }, "commits and events that the server would take could not be stored"},
	{"schema (metadata " + metaSchema + ")", func(c jetstream.StreamConfig) string { return c.Metadata[metaSchema] }, unread},
	{"component (metadata " + metaComponent + ")", func(c jetstream.StreamConfig) string { return c.Metadata[metaComponent] }, unread},
	{partitionsSetting, func(c jetstream.StreamConfig) string { return c.Metadata[metaPartitions] }, lostSpaces},
}

// keepRules hold where nothing may disappear by itself.
var keepRules = append(slices.Clone(commonRules),
	rule{"retention", func(c jetstream.StreamConfig) string { return c.Retention.String() }, evicts},
	rule{"discard policy", func(c jetstream.StreamConfig) string { return c.Discard.String() }, evicts},
	rule{"maximum age", func(c jetstream.StreamConfig) string { return age(c.MaxAge) }, evicts},
	rule{"message TTL", func(c jetstream.StreamConfig) string { return onOff(c.AllowMsgTTL) }, evicts},
	rule{"subject delete markers", func(c jetstream.StreamConfig) string { return age(c.SubjectDeleteMarkerTTL) }, evicts},
	rule{"message schedules", func(c jetstream.StreamConfig) string { return onOff(c.AllowMsgSchedules) }, rewrites},
	rule{"deletes denied", func(c jetstream.StreamConfig) string { return onOff(c.DenyDelete) }, forgets},
	rule{"messages per subject", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgsPerSubject) }, forgets},
)

// laneRules: a lane may be full, but it may not forget.
var laneRules = append(slices.Clone(keepRules),
	rule{"discard per subject", func(c jetstream.StreamConfig) string { return onOff(c.DiscardNewPerSubject) }, "an event could be stored twice"},
	rule{"roll-up", func(c jetstream.StreamConfig) string { return onOff(c.AllowRollup) }, rewrites},
	rule{"republish", func(c jetstream.StreamConfig) string { return republishText(c.RePublish) }, foreign},
)

// logRules: a log has no limits but the server's.
var logRules = append(slices.Clone(keepRules),
	rule{"roll-up", func(c jetstream.StreamConfig) string { return onOff(c.AllowRollup) }, rewrites},
	rule{"republish", func(c jetstream.StreamConfig) string { return republishText(c.RePublish) }, unfollows},
	rule{"maximum messages", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgs) }, "spaces could not go on when it is reached"},
	rule{"maximum bytes", func(c jetstream.StreamConfig) string { return limit(c.MaxBytes) }, "spaces could not go on when it is reached"},
)

// stateRules: roll-up is how KV clients purge a key, so it is allowed there.
var stateRules = append(slices.Clone(keepRules),
	rule{"maximum messages", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgs) }, "checkpoints could not be saved when it is reached"},
	rule{"maximum bytes", func(c jetstream.StreamConfig) string { return limit(c.MaxBytes) }, "checkpoints could not be saved when it is reached"},
)

// programsRules: whoever can write there decides what runs, and a program that was deployed
// stays.
var programsRules = append(slices.Clone(keepRules),
	rule{"republish", func(c jetstream.StreamConfig) string { return republishText(c.RePublish) }, foreign},
	rule{"maximum messages", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgs) }, "programs could not be deployed when it is reached"},
	rule{"maximum bytes", func(c jetstream.StreamConfig) string { return limit(c.MaxBytes) }, "programs could not be deployed when it is reached"},
)

// workersRules: announcements are repeated, so they may expire.
var workersRules = append(slices.Clone(commonRules),
	rule{horizonSetting, func(c jetstream.StreamConfig) string { return horizonText(c.Metadata[metaHorizon]) }, "an event could be forgotten by one worker while another still accepts its id"},
	rule{"messages per subject", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgsPerSubject) }, "members would be announced by what they said long ago"},
)

// deadRules: letters are about what lies in the log, so an operator may let them
// expire.
var deadRules = append(slices.Clone(commonRules),
	rule{"retention", func(c jetstream.StreamConfig) string { return c.Retention.String() }, hidden},
	rule{"discard policy", func(c jetstream.StreamConfig) string { return c.Discard.String() }, hidden},
	rule{"messages per subject", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgsPerSubject) }, hidden},
	rule{"discard per subject", func(c jetstream.StreamConfig) string { return onOff(c.DiscardNewPerSubject) }, hidden},
	rule{"roll-up", func(c jetstream.StreamConfig) string { return onOff(c.AllowRollup) }, rewrites},
	rule{"republish", func(c jetstream.StreamConfig) string { return republishText(c.RePublish) }, foreign},
)

// How settings are compared and shown. The server completes what is left empty, so
// equal settings can be spelt differently; these spell them alike.

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

// horizonText is the default for a deployment from before there was a choice.
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
