package doctor

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/bus/survey"
)

// sync is the knowledge about when the servers sync to disk.
type sync int

const (
	unknown sync = iota
	always
	interval
)

// syncs returns the weakest known value, and the longest interval.
func (j *judge) syncs() (weakest sync, longest time.Duration) {
	weakest = always
	for _, s := range j.Servers {
		switch {
		case !s.JetStream:
		case s.Disk == nil:
			return unknown, 0
		case !s.Disk.SyncAlways:
			weakest, longest = interval, max(longest, s.Disk.SyncInterval)
		}
	}
	if len(j.Unreachable) > 0 && weakest == always {
		return unknown, 0
	}
	return weakest, longest
}

// allKnown reports whether the sync interval of every server that answers is known.
func (j *judge) allKnown() bool {
	return !slices.ContainsFunc(j.Servers, func(s survey.ServerFacts) bool { return s.JetStream && s.Disk == nil })
}

func (j *judge) durability() {
	for _, s := range j.Servers {
		if !s.JetStream || s.Disk == nil {
			continue
		}
		said, do := " (sync_interval: always)", "Set `sync_interval: always` in the jetstream block"
		if s.Disk.ByProcess {
			said, do = ", according to the process that embeds it", "Give it embedded.Config.Fsync: embedded.FsyncAlways, which is the default"
		}
		every := span(s.Disk.SyncInterval)
		switch {
		case s.Disk.SyncAlways:
			j.ok(CheckDurability, "%s writes to the disk before it acknowledges%s", s.Name, said)
		case j.Cluster == "":
			j.bad(Warning, CheckDurability, fmt.Sprintf("%s writes to the disk every %s", s.Name, every),
				fmt.Sprintf("A power cut or a crash of the operating system loses what was acknowledged in the last %s. A crash of the process loses nothing.", every),
				do+", unless you can live with that.")
		default:
			j.bad(Warning, CheckDurability, fmt.Sprintf("%s writes to the disk every %s", s.Name, every),
				fmt.Sprintf("If a majority of the servers lose power within %s, what was acknowledged in that time is lost.", every),
				do+", unless the servers can never lose power together.")
		}
	}
	silent := j.Monitor != nil && !errors.Is(j.Monitor, survey.ErrNoMonitor)
	if weakest, _ := j.syncs(); weakest != unknown || j.allKnown() {
		if silent {
			j.bad(Warning, CheckDurability, "not every server has answered: "+j.Monitor.Error(),
				"The result above is from another source.", "Check the address and the credentials.")
		}
		return
	}
	found := "not known: when the servers write to their disks cannot be seen from here"
	if silent {
		found += " (" + j.Monitor.Error() + ")"
	}
	j.bad(Warning, CheckDurability, found,
		"Servers report it only on their monitoring port and to the system account, and settle.Start reports it for its embedded server. By default they write every two minutes, and a power failure loses that much.",
		"Give --monitor http://HOST:8222 for each server, or --system-creds FILE, or look for `sync_interval: always` in their configuration.")
}

// fewestReplicas returns the smallest number of replicas of a stream.
func (j *judge) fewestReplicas() int {
	fewest := 0
	for i := range j.Streams {
		if r := j.Streams[i].Replicas; r > 0 && (fewest == 0 || r < fewest) {
			fewest = r
		}
	}
	return fewest
}

const nothing = "Nothing that was acknowledged."

// losses lists what each kind of failure can lose. test/powerloss has tested each.
func (j *judge) losses() []Loss {
	process := Loss{"A worker, a coordinator or a client is killed", nothing + " Others go on where it was."}
	if j.fewestReplicas() >= 3 {
		return append([]Loss{process}, j.clusterLosses()...)
	}
	return append([]Loss{process}, j.singleLosses()...)
}

func (j *judge) singleLosses() []Loss {
	cut := "Not known: see durability. If the server writes every two minutes, which is its default, up to two minutes of what was acknowledged."
	switch weakest, longest := j.syncs(); weakest {
	case always:
		cut = nothing
	case interval:
		cut = fmt.Sprintf("Up to %s of what was acknowledged, from each stream separately. A worker that finds a log or a lane shorter than known refuses to serve it and reports that; if the workers lost their memory as well, events that were handled may be handled again.", span(longest))
	}
	return []Loss{
		{"The NATS server is killed", nothing + " Everything waits until it is back."},
		{"The server's machine loses power", cut},
		{"The server's disk is lost", "Everything since the last backup: there is no second copy."},
	}
}

func (j *judge) clusterLosses() []Loss {
	one := Loss{"One server is killed, or loses power or its disk", nothing + " A majority has it; others lead within some seconds."}
	if weakest, longest := j.syncs(); weakest != always {
		one.Lost += " (A second server that loses power before the first has caught up makes it the next case.)"
		cut := "Not known: see durability. With the servers' default, up to two minutes of what was acknowledged."
		if weakest == interval {
			cut = fmt.Sprintf("Up to %s of what was acknowledged: a majority that has forgotten outvotes a server that has not.", span(longest))
		}
		return []Loss{one, {"Two servers, or all, lose power together", cut}, j.diskLosses()}
	}
	return []Loss{one, {"Two servers, or all, lose power together", nothing + " Everything waits until two of them are back."}, j.diskLosses()}
}

func (j *judge) diskLosses() Loss {
	return Loss{"Two servers lose their disks", "Perhaps all since the last backup: what remains on the third has to be rescued by hand."}
}

// span returns a duration as people write it.
func span(d time.Duration) string {
	switch {
	case d == time.Minute:
		return "1 minute"
	case d > time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return d.String()
}
