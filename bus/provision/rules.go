package provision

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// setting is a setting of a stream.
type setting struct {
	Name  string
	value func(jetstream.StreamConfig) string
	// back returns arguments of `nats stream edit` that restore the wanted value, "" if the server does
	// not allow the change.
	back func(want jetstream.StreamConfig) string
}

// rule requires the value of a setting, and describes the consequences of another one.
type rule struct {
	setting
	breaks string
	effect effect
}

// effect is how grave an altered setting is.
type effect int

const (
	// refused: a guarantee does not hold. Programs refuse the stream.
	refused effect = iota
	// unsafe: a guarantee may not hold. Programs use the stream, as in earlier versions, and the doctor reports it.
	unsafe
	// limiting: no guarantee is broken, and work can stop. The doctor reports it.
	limiting
)

// check returns an error for each setting for which programs refuse the stream.
func (a *Spec) check(found jetstream.StreamConfig) []error {
	var errs []error
	for _, broken := range a.Compare(found) {
		if broken.Refused {
			errs = append(errs, broken)
		}
	}
	return errs
}

// Compare returns an error for every setting that violates a rule.
func (a *Spec) Compare(found jetstream.StreamConfig) (broken []*AssetError) {
	for _, r := range a.Rules {
		is, must := r.value(found), r.value(a.Config)
		if is != must {
			broken = append(broken, &AssetError{
				Stream: a.Config.Name, Setting: r.Name, Found: is, Wanted: must, Breaks: r.breaks, Fix: r.Fix(a.Config),
				Refused: r.effect == refused, Limits: r.effect == limiting,
			})
		}
	}
	return broken
}

// Fix describes how to restore the setting.
func (s *setting) Fix(want jetstream.StreamConfig) string {
	args := s.back(want)
	if args == addedByProvision {
		return "`settle provision` adds them"
	}
	if args == "" {
		return "The server does not change this back. Restore the last backup of all streams, or move what is there to a new deployment: `settle export`, `settle import`"
	}
	if key, edit := strings.CutPrefix(args, interactive); edit {
		return fmt.Sprintf("Set it back with `nats stream edit %s %s`, which opens an editor: %s", want.Name, strings.TrimSpace(interactive), key)
	}
	return fmt.Sprintf("Set it back with `nats stream edit %s %s`", want.Name, args)
}

// interactive is the prefix for settings that no flag restores. The rest is the text for the editor.
const interactive = "--interactive "

// addedByProvision stands for the arguments of a setting that Provision changes.
const addedByProvision = "--provision"

// The ways to restore a setting.

func inEditor(text string) func(jetstream.StreamConfig) string {
	return func(jetstream.StreamConfig) string { return interactive + text }
}

func byFlag(flag string) func(jetstream.StreamConfig) string {
	return func(jetstream.StreamConfig) string { return flag }
}

func onOrOff(flag string, on func(jetstream.StreamConfig) bool) func(jetstream.StreamConfig) string {
	return func(want jetstream.StreamConfig) string {
		if on(want) {
			return "--" + flag
		}
		return "--no-" + flag
	}
}

func metadata(key string) setting {
	return setting{
		value: func(c jetstream.StreamConfig) string { return c.Metadata[key] },
		back: func(want jetstream.StreamConfig) string {
			return interactive + "metadata " + key + ": " + strconv.Quote(want.Metadata[key])
		},
	}
}

func (s setting) named(name string) setting {
	s.Name = name
	return s
}

func never(jetstream.StreamConfig) string { return "" }

// The settings that rules check.
var (
	setStorage = setting{"storage", func(c jetstream.StreamConfig) string { return c.Storage.String() }, never}
	setPersist = setting{"persist mode", func(c jetstream.StreamConfig) string { return c.PersistMode.String() }, never}
	setAcks    = setting{"acknowledgements", func(c jetstream.StreamConfig) string { return onOff(!c.NoAck) }, byFlag("--ack")}
	setSubject = setting{"subjects", func(c jetstream.StreamConfig) string { return sorted(ownSubjects(c)) }, func(want jetstream.StreamConfig) string {
		return "--subjects '" + strings.Join(want.Subjects, ",") + "'"
	}}
	setSends      = setting{"subjects of clients", func(c jetstream.StreamConfig) string { return cmp.Or(sorted(sentSubjects(c)), "none") }, func(jetstream.StreamConfig) string { return addedByProvision }}
	setTransform  = setting{"subject transform", func(c jetstream.StreamConfig) string { return transformText(c.SubjectTransform) }, byFlag("--no-transform")}
	setDirect     = setting{"direct get", func(c jetstream.StreamConfig) string { return onOff(c.AllowDirect) }, byFlag("--allow-direct")}
	setMirror     = setting{"mirror", func(c jetstream.StreamConfig) string { return sourceText(c.Mirror) }, byFlag("--no-mirror")}
	setSources    = setting{"sources", func(c jetstream.StreamConfig) string { return sourcesText(c.Sources) }, inEditor("no sources")}
	setSealed     = setting{"sealed", func(c jetstream.StreamConfig) string { return onOff(c.Sealed) }, never}
	setCounters   = setting{"counters", func(c jetstream.StreamConfig) string { return onOff(c.AllowMsgCounter) }, never}
	setLargest    = setting{"largest message", func(c jetstream.StreamConfig) string { return limit(int64(c.MaxMsgSize)) }, byFlag("--max-msg-size=-1")}
	setSchema     = metadata(metaSchema).named("schema (metadata " + metaSchema + ")")
	setComponent  = metadata(metaComponent).named("component (metadata " + metaComponent + ")")
	setPartitions = metadata(metaPartitions).named(partitionsSetting)
	setHorizon    = setting{horizonSetting, func(c jetstream.StreamConfig) string { return horizonText(c.Metadata[metaHorizon]) }, metadata(metaHorizon).back}
	setRetention  = setting{"retention", func(c jetstream.StreamConfig) string { return c.Retention.String() }, byFlag("--retention=limits")}
	setDiscard    = setting{"discard policy", func(c jetstream.StreamConfig) string { return c.Discard.String() }, byFlag("--discard=new")}
	setAge        = setting{"maximum age", func(c jetstream.StreamConfig) string { return age(c.MaxAge) }, func(want jetstream.StreamConfig) string {
		return "--max-age=" + want.MaxAge.String()
	}}
	setTTL        = setting{"message TTL", func(c jetstream.StreamConfig) string { return onOff(c.AllowMsgTTL) }, never}
	setMarkers    = setting{"subject delete markers", func(c jetstream.StreamConfig) string { return age(c.SubjectDeleteMarkerTTL) }, never} // they come with message TTL
	setSchedules  = setting{"message schedules", func(c jetstream.StreamConfig) string { return onOff(c.AllowMsgSchedules) }, never}
	setDeletes    = setting{"deletes denied", func(c jetstream.StreamConfig) string { return onOff(c.DenyDelete) }, byFlag("--deny-delete")}
	setPerSubject = setting{"messages per subject", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgsPerSubject) }, func(want jetstream.StreamConfig) string {
		return "--max-msgs-per-subject=" + strconv.FormatInt(want.MaxMsgsPerSubject, 10)
	}}
	setDiscardEach = setting{"discard per subject", func(c jetstream.StreamConfig) string { return onOff(c.DiscardNewPerSubject) }, onOrOff("discard-per-subject", func(c jetstream.StreamConfig) bool { return c.DiscardNewPerSubject })}
	setRollup      = setting{"roll-up", func(c jetstream.StreamConfig) string { return onOff(c.AllowRollup) }, onOrOff("allow-rollup", func(c jetstream.StreamConfig) bool { return c.AllowRollup })}
	setRepublish   = setting{"republish", func(c jetstream.StreamConfig) string { return republishText(c.RePublish) }, func(want jetstream.StreamConfig) string {
		if want.RePublish == nil {
			return interactive + "no republish"
		}
		return fmt.Sprintf("--republish-source='%s' --republish-destination='%s'", want.RePublish.Source, want.RePublish.Destination)
	}}
	setMessages  = setting{"maximum messages", func(c jetstream.StreamConfig) string { return limit(c.MaxMsgs) }, byFlag("--max-msgs=-1")}
	setBytes     = setting{"maximum bytes", func(c jetstream.StreamConfig) string { return limit(c.MaxBytes) }, byFlag("--max-bytes=-1")}
	setConsumers = setting{"maximum consumers", func(c jetstream.StreamConfig) string { return limit(int64(c.MaxConsumers)) }, inEditor("max_consumers: -1")}
	setConsumer  = setting{"consumer limits", func(c jetstream.StreamConfig) string { return consumerLimits(c.ConsumerLimits) }, inEditor("no consumer_limits")}
	setPurges    = setting{"purges denied", func(c jetstream.StreamConfig) string { return onOff(c.DenyPurge) }, never}
	// A window that is shorter than the created one is a server's own limit, and does no harm.
	setWindow = setting{"duplicate window", func(c jetstream.StreamConfig) string { return max(c.Duplicates, duplicateWindow).String() }, byFlag("--dupe-window=" + duplicateWindow.String())}
	// Announcements are kept for an hour or longer: deployments of earlier versions have no limit.
	setMemberAge = setting{"maximum age", func(c jetstream.StreamConfig) string {
		if c.MaxAge == 0 || c.MaxAge >= memberAge {
			return age(memberAge)
		}
		return age(c.MaxAge)
	}, setAge.back}
)

// The reasons that several rules share.
const (
	evicts    = "events, commits or documents that were acknowledged would disappear"
	forgets   = "an event that was handled could be stored again, or a commit accepted that another one precedes"
	rewrites  = "a client could remove or replace what is stored, by a header alone"
	unread    = "the records could not be found or read"
	notSafe   = "what was acknowledged could be lost"
	foreign   = "the stream would hold messages that Settle did not write, or lack some that it did"
	hidden    = "events that failed would not be seen, or be shown as something that they were not"
	unfollows = "confirmed commits would not reach the followers of a space"
	swallows  = "the server could take a message for a duplicate that is none, and acknowledge it without storing it"
	spreads   = "what is stored would be published under other subjects, and could be taken for something else there"
	unheard   = "workers would not be known to each other, and take each other's partitions"
	blind     = "workers, coordinators and clients could not read the stream when that is reached"
	grows     = "processed messages could not be removed, and the stream would grow without limit"
)

// commonRules hold for every asset.
var commonRules = []rule{
	{setStorage, notSafe, refused},
	{setPersist, notSafe, refused},
	{setAcks, notSafe, refused},
	{setSubject, unread, refused},
	{setTransform, unread, refused},
	{setDirect, unread, refused},
	{setMirror, foreign, refused},
	{setSources, foreign, refused},
	{setSealed, foreign, refused},
	{setCounters, foreign, refused},
	{setLargest, "commits and events that the server would take could not be stored", refused},
	{setSchema, unread, refused},
	{setComponent, unread, refused},
	{setPartitions, lostSpaces, refused},
	{setWindow, swallows, unsafe},
	{setConsumers, blind, limiting},
	{setConsumer, blind, limiting},
}

// keepRules hold for streams from which nothing may disappear by itself.
var keepRules = append(slices.Clone(commonRules),
	rule{setRetention, evicts, refused},
	rule{setDiscard, evicts, refused},
	rule{setAge, evicts, refused},
	rule{setTTL, evicts, refused},
	rule{setMarkers, evicts, refused},
	rule{setSchedules, rewrites, refused},
	rule{setDeletes, forgets, refused},
	rule{setPerSubject, forgets, refused},
)

// laneRules: a lane may be full, but it must not lose messages. A limit on its bytes may be chosen; one on its messages is of
// no use, as nothing in Settle sets it or reports how full it is.
var laneRules = append(slices.Clone(keepRules),
	rule{setSends, "clients cannot send events", limiting},
	rule{setDiscardEach, "an event could be stored twice", refused},
	rule{setRollup, rewrites, refused},
	rule{setRepublish, foreign, refused},
	rule{setMessages, "events are refused when that is reached, and what spaces send each other waits", limiting},
	rule{setPurges, grows, limiting},
)

// logRules: a log has no limits except the server's.
var logRules = append(slices.Clone(keepRules),
	rule{setRollup, rewrites, refused},
	rule{setRepublish, unfollows, refused},
	rule{setMessages, "spaces could not go on when it is reached", refused},
	rule{setBytes, "spaces could not go on when it is reached", refused},
	rule{setPurges, grows, limiting},
)

// stateRules: roll-up is how KV clients purge a key, so it is allowed there.
var stateRules = append(slices.Clone(keepRules),
	rule{setMessages, "checkpoints could not be saved when it is reached", refused},
	rule{setBytes, "checkpoints could not be saved when it is reached", refused},
	rule{setDiscardEach, "a checkpoint could not be saved over the one before", limiting},
	rule{setRepublish, spreads, unsafe},
	rule{setPurges, grows, limiting},
)

// programsRules: a client that can write there decides what runs, and deployed programs
// stay.
var programsRules = append(slices.Clone(keepRules),
	rule{setRepublish, foreign, refused},
	rule{setMessages, "programs could not be deployed when it is reached", refused},
	rule{setBytes, "programs could not be deployed when it is reached", refused},
	rule{setDiscardEach, "rules could not be changed", limiting},
)

// workersRules: announcements are repeated, so they may expire.
var workersRules = append(slices.Clone(commonRules),
	rule{setHorizon, "an event could be forgotten by one worker while another still accepts its id", refused},
	rule{setPerSubject, "members would be announced by what they said long ago", refused},
	rule{setRetention, unheard, unsafe},
	rule{setDiscard, unheard, limiting},
	rule{setDiscardEach, unheard, limiting},
	rule{setMemberAge, unheard, limiting},
	rule{setMessages, unheard, limiting},
	rule{setBytes, unheard, limiting},
	rule{setRepublish, spreads, unsafe},
)

// deadRules: letters are about events in the log, so an operator may let them
// expire.
var deadRules = append(slices.Clone(commonRules),
	rule{setRetention, hidden, refused},
	rule{setDiscard, hidden, refused},
	rule{setPerSubject, hidden, refused},
	rule{setDiscardEach, hidden, refused},
	rule{setRollup, rewrites, refused},
	rule{setRepublish, foreign, refused},
	rule{setTTL, hidden, unsafe},
	rule{setMarkers, hidden, unsafe},
	rule{setSchedules, rewrites, unsafe},
	rule{setMessages, "letters could not be written when it is reached, and what spaces send each other would wait for that", limiting},
	rule{setBytes, "letters could not be written when it is reached, and what spaces send each other would wait for that", limiting},
)

// Narrow returns an error for a lane that cannot hold the largest event that the server takes.
func (a *Spec) Narrow(found jetstream.StreamConfig, maxPayload int) *AssetError {
	if a.Component != ComponentLane || found.MaxBytes <= 0 || found.MaxBytes >= int64(maxPayload) {
		return nil
	}
	return &AssetError{
		Stream: a.Config.Name, Setting: setBytes.Name, Found: limit(found.MaxBytes), Wanted: fmt.Sprintf("at least %d (max_payload), or unlimited", maxPayload),
		Breaks: "events that the server takes could never be stored", Fix: setBytes.Fix(a.Config), Limits: true,
	}
}

// duplicateWindow is how long a server remembers the Nats-Msg-Id of messages, as short as it allows.
const duplicateWindow = 100 * time.Millisecond

func consumerLimits(l jetstream.StreamConsumerLimits) string {
	var parts []string
	if l.InactiveThreshold > 0 {
		parts = append(parts, "inactive threshold "+l.InactiveThreshold.String())
	}
	if l.MaxAckPending > 0 {
		parts = append(parts, "acknowledgements pending "+strconv.Itoa(l.MaxAckPending))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
