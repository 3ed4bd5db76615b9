package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
)

func (j *judge) deployment() {
	switch {
	case j.NoDeployment:
		text := "there is no deployment with prefix " + j.Prefix + " in this account"
		if len(j.Others) > 0 {
			text += ", but there are deployments with prefix " + strings.Join(j.Others, ", ")
		}
		j.bad(Failure, CheckDeployment, text,
			"Nothing can be sent or hosted.", "Check --prefix and the account, or create one: `settle provision`.")
	case j.Settings != nil:
		j.bad(Failure, CheckDeployment, j.Settings.Error(), "Programs refuse to use a deployment whose settings they cannot read or are not configured with.", "See the text.")
	default:
		j.ok(CheckDeployment, "prefix %s, %s, horizon %v", j.Prefix, display.Count(j.Partitions, "partition"), j.Horizon)
	}
}

func (j *judge) streams() {
	fine := 0
	for i := range j.Streams {
		s := &j.Streams[i]
		switch {
		case s.Missing:
			j.bad(Failure, CheckStreams, "stream "+s.Name+" ("+s.Component+") is missing", withoutStream(s),
				"If it was never made, as after an upgrade or a `settle provision` that was cut short, `settle provision` makes it. If it was deleted, restore it from a backup (`settle restore DIR --stream "+s.Name+"`), and do nothing else first: an empty one in its place has forgotten everything.")
		case s.Restoring:
			j.bad(Failure, CheckStreams, "stream "+s.Name+" ("+s.Component+") is being restored, or a restore of it was interrupted", "Nothing can be stored in it until the restore has ended.",
				"Wait for `settle restore --stream "+s.Name+"` to end, or run it again.")
		case s.Unseen != nil:
			j.bad(Failure, CheckStreams, fmt.Sprintf("stream %s: %v", s.Name, s.Unseen), "It may have no leader, which is so when a majority of the servers is not there; or this user may not ask.", "See cluster and permissions.")
		case len(s.Broken) > 0:
			for _, b := range s.Broken {
				level := Failure
				if b.Limits {
					level = Warning
				}
				j.bad(level, CheckStreams, fmt.Sprintf("stream %s: %s is %s, must be %s", b.Stream, b.Setting, b.Found, b.Wanted), "Otherwise "+b.Breaks+".", b.Fix+".")
			}
		default:
			fine++
		}
	}
	if fine > 0 {
		j.ok(CheckStreams, "%d of %d streams have every setting on which a promise rests", fine, len(j.Streams))
	}
	if v := distinct(j.Streams, func(s survey.StreamFacts) string { return s.Version }); len(v) > 0 {
		j.ok(CheckStreams, "created by version %s", strings.Join(v, ", "))
	}
}

// withoutStream describes what does not work without a stream.
func withoutStream(s *survey.StreamFacts) string {
	switch s.Component {
	case provision.ComponentWorkers:
		return "Workers do not know of each other, and none can be started."
	case provision.ComponentDead:
		return "Events that fail or are refused cannot be kept as dead letters, and those that were are not here."
	case provision.ComponentPrograms:
		return "What was deployed, and which spaces run it, cannot be read."
	}
	return fmt.Sprintf("The spaces of partition %d stand still. Those of other partitions go on, and so do workers, coordinators and commands for them.", s.Partition)
}

// manyBehind is how many entries a follower may lag before that is reported.
const manyBehind = 1000

// replicas reports servers that are behind, each once.
func (j *judge) replicas() {
	fine := 0
	behind := map[string][]string{}
	for i := range j.Streams {
		s := &j.Streams[i]
		switch {
		case s.Replicas == 0:
		case s.Replicas > 1 && s.Leader == "":
			j.bad(Failure, CheckReplicas, "stream "+s.Name+" has no leader", "Nothing can be stored in it until a majority of its servers is there.", "Start the servers that are down.")
		case !upToDate(s, behind):
		default:
			fine++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(behind)) {
		j.bad(Warning, CheckReplicas, fmt.Sprintf("%s is not up to date with %s: %s", name, display.Count(len(behind[name]), "stream"), clip(behind[name])),
			"Until it has caught up, one server less can fail.", "Start it if it is down; else it catches up by itself.")
	}
	switch {
	case fine == 0:
	case j.fewestReplicas() == 1:
		j.ok(CheckReplicas, "one replica of each stream, as there is one server")
	default:
		j.ok(CheckReplicas, "%d of %d streams: %d replicas, a leader, and followers that are up to date", fine, len(j.Streams), j.fewestReplicas())
	}
}

// upToDate reports whether all followers of a stream are, and records which are not.
func upToDate(s *survey.StreamFacts, behind map[string][]string) bool {
	good := true
	for _, f := range s.Followers {
		if f.Offline || !f.Current || f.Lag > manyBehind {
			good = false
			behind[f.Name] = append(behind[f.Name], s.Name)
		}
	}
	return good
}

func (j *judge) reach() {
	fine, unseen := 0, error(nil)
	for _, r := range j.Reaches {
		for _, lost := range r.Lost(j.Prefix) {
			j.bad(Failure, CheckReach, lost, "The stream has lost messages that were acknowledged: after a power cut without fsync, or by an old backup. Workers refuse its partition.",
				"Overwrite nothing: what is still there is the newest that there is. Copy all streams first (deploy/README.md); if a server still has the messages, start it. docs/operations.md says how to go on.")
		}
		switch {
		case r.Unseen != nil:
			unseen = r.Unseen
		case r.Missing: // see streams
		case len(r.Lost(j.Prefix)) == 0:
			fine++
		}
	}
	if unseen != nil {
		j.bad(Warning, CheckReach, "could not be compared: "+unseen.Error(), "A stream that has lost messages would not be noticed here. Workers notice it.", readAdvice(unseen))
	}
	if fine > 0 {
		j.ok(CheckReach, "of %s, none ends before what is known of it", display.Count(fine, "partition"))
	}
}

// readAdvice returns what to do about something that could not be read.
func readAdvice(err error) string {
	if _, is := errors.AsType[*model.UnreadableError](err); is {
		return "A stored message cannot be read: `settle quarantine` names it, and what to do about it."
	}
	if errors.Is(err, survey.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, model.ErrForbidden) {
		return "Use a user that may read (`settle permissions`). If this one may, the stream has no leader: see cluster."
	}
	return "The reason is not that this user may not read: see the findings about servers and streams, and repeat the command."
}

func (j *judge) consumers() {
	for i := range j.Streams {
		s := &j.Streams[i]
		if s.ConsumersError != nil {
			j.bad(Warning, CheckConsumers, fmt.Sprintf("stream %s: consumers could not be listed: %v", s.Name, s.ConsumersError), "Consumers of others cost the servers.", "Ask as an operator.")
			return
		}
		if len(s.Consumers) > 0 && s.Component != "state" && s.Component != "workers" {
			j.bad(Warning, CheckConsumers, fmt.Sprintf("stream %s has consumers that are none of Settle's: %s", s.Name, strings.Join(s.Consumers, ", ")),
				"They see everything, and slow the stream down if they are many. They cannot remove anything.", "Remove them with `nats consumer rm`, if they are not yours.")
		}
	}
}

// Clocks that differ by more than these are reported.
const (
	skewWarning = time.Second
	skewFailure = time.Minute
)

func (j *judge) clock() {
	least, most := time.Duration(0), time.Duration(0)
	known := false
	note := func(c *survey.ClockFacts) {
		if c == nil {
			return
		}
		// The part that the network delay may explain does not count.
		surely := max(0, c.Offset.Abs()-c.Uncertainty)
		if c.Offset < 0 {
			surely = -surely
		}
		if !known {
			least, most, known = surely, surely, true
		}
		least, most = min(least, surely), max(most, surely)
	}
	for i := range j.Servers {
		note(j.Servers[i].Clock)
	}
	for i := range j.Streams {
		note(j.Streams[i].Clock)
	}
	if !known {
		return
	}
	worst := max(least.Abs(), most.Abs(), most-least)
	text := fmt.Sprintf("the servers' clocks are between %v and %v ahead of this machine's", least.Round(time.Millisecond), most.Round(time.Millisecond))
	const why = "Timers and delayed events are due by these clocks, event ids that carry their time are judged by them, and so is the horizon. No order and no receipt depends on a clock."
	switch {
	case worst >= skewFailure:
		j.bad(Failure, CheckClock, text, why, "Let every machine keep time: chrony or systemd-timesyncd.")
	case worst >= skewWarning:
		j.bad(Warning, CheckClock, text, why, "Let every machine keep time: chrony or systemd-timesyncd.")
	default:
		j.ok(CheckClock, "the servers' clocks and this machine's agree to within %v", skewWarning)
	}
}
