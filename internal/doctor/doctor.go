// Package doctor judges a deployment: it turns the facts of a survey.Survey into findings, each with a level,
// the reason why it matters and advice, and lists what can be lost. It does no I/O.
package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
)

// Level is the severity of a finding.
type Level int

// The levels are also the exit codes.
const (
	OK      Level = iota
	Warning       // it works, and can cost something
	Failure       // something does not work, or a promise does not hold
)

var levelNames = [...]string{"ok", "warning", "failure"}

func (l Level) String() string { return levelNames[l] }

// MarshalText returns the level's name for JSON.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is the result of one check.
type Finding struct {
	Level  Level  `json:"level"`
	Check  string `json:"check"` // the name of the check, which is stable
	Found  string `json:"found"`
	Reason string `json:"why,omitempty"` // it matters
	Do     string `json:"do,omitempty"`
}

// Loss describes what is lost when something happens.
type Loss struct {
	When string `json:"when"`
	Lost string `json:"lost"`
}

// Report is the judgement of a deployment.
type Report struct {
	Level    Level     `json:"level"` // the worst of the findings
	Findings []Finding `json:"findings"`
	Losses   []Loss    `json:"losses"`
}

// Checks, in the order in which they are reported.
const (
	CheckServers     = "servers"
	CheckPayload     = "payload"
	CheckJetStream   = "jetstream"
	CheckCluster     = "cluster"
	CheckDurability  = "durability"
	CheckStorage     = "storage"
	CheckDeployment  = "deployment"
	CheckStreams     = "streams"
	CheckReplicas    = "replicas"
	CheckReach       = "log and lanes"
	CheckConsumers   = "consumers"
	CheckClock       = "clock"
	CheckPermissions = "permissions"
	CheckBorders     = "borders"
	CheckUnreadable  = "unreadable"
	CheckWorkers     = "workers"
	CheckCoordinator = "coordinators"
	CheckVersions    = "versions"
	CheckStuck       = "stuck spaces"
	CheckGivenUp     = "given up"
	CheckComputing   = "computations"
	CheckConvergence = "convergence"
	CheckIdempotency = "idempotency"
	CheckBacklog     = "backlog"
	CheckTimers      = "timers"
	CheckTasks       = "tasks"
	CheckWaking      = "waking"
	CheckWatches     = "watches"
	CheckPerformers  = "performers"
	CheckPrograms    = "programs"
	CheckDead        = "dead letters"
	CheckBackup      = "backup"
)

// judge gathers findings.
type judge struct {
	*survey.Survey
	fleet    *fleet.Fleet // nil if it could not be read
	unseen   error        // the reason
	findings []Finding
	oldest   time.Duration // the permitted age of the newest backup; 0 for no check
}

func (j *judge) ok(check, format string, args ...any) {
	j.findings = append(j.findings, Finding{Check: check, Found: fmt.Sprintf(format, args...)})
}

func (j *judge) bad(level Level, check, found, why, do string) {
	j.findings = append(j.findings, Finding{level, check, found, why, do})
}

// Judge returns the report on a deployment. f holds the processes' own figures, nil if they could not be read, for
// the reason unseen if there is one. backupAge is the permitted age of the newest backup, 0 for no
// limit.
func Judge(s *survey.Survey, f *fleet.Fleet, unseen error, backupAge time.Duration) *Report {
	j := &judge{Survey: shortNamed(s), fleet: f, unseen: unseen, oldest: backupAge}
	j.servers()
	j.payload()
	if j.jetStream(); s.JetStream == nil {
		j.cluster()
		j.durability()
		j.storage()
		if j.deployment(); len(s.Streams) > 0 {
			j.streams()
			j.replicas()
			j.reach()
			j.consumers()
			j.clock()
			j.workers()
			j.coordinators()
			j.processes()
			j.dead()
			j.backup()
		}
	}
	j.permissions()
	j.borders()
	j.passedOver()
	r := &Report{Findings: j.findings}
	for _, f := range j.findings {
		r.Level = max(r.Level, f.Level)
	}
	if s.JetStream == nil && len(s.Streams) > 0 {
		r.Losses = j.losses()
	}
	return r
}

// shortNamed names servers without a name by the beginning of their id.
func shortNamed(s *survey.Survey) *survey.Survey {
	short := *s
	short.Servers = slices.Clone(s.Servers)
	for i := range short.Servers {
		if name := &short.Servers[i].Name; len(*name) == idLength && strings.ToUpper(*name) == *name {
			*name = (*name)[:8]
		}
	}
	return &short
}

// idLength is the length of a server's id.
const idLength = 56

func (j *judge) servers() {
	for _, s := range j.Servers {
		text := fmt.Sprintf("%s: nats-server %s", cmp.Or(s.Name, s.URL), s.Version)
		if s.APILevel > 0 {
			text += fmt.Sprintf(", JetStream API level %d", s.APILevel)
		}
		if s.RTT > 0 {
			text += fmt.Sprintf(", answers in %v", s.RTT.Round(10*time.Microsecond))
		}
		if s.TooOld != nil {
			j.bad(Failure, CheckServers, text, s.TooOld.Error(), "Upgrade this server; programs of Settle refuse to use it.")
			continue
		}
		j.ok(CheckServers, "%s", text)
	}
	for _, u := range j.Unreachable {
		j.bad(Warning, CheckServers, fmt.Sprintf("%s does not answer: %v", u.What, u.Reason),
			"The cluster lists this server. Either it is down, or it cannot be reached from here; its version is not known.",
			"Start it, or let this machine reach it.")
	}
	if v := distinct(j.Servers, func(s survey.ServerFacts) string { return s.Version }); len(v) > 1 {
		j.bad(Warning, CheckServers, "the servers have different versions: "+strings.Join(v, ", "),
			"This is normal during an upgrade, but not for long: a stream that needs what one of them does not know is taken out of service there.",
			"Finish the upgrade.")
	}
}

// Limits of max_payload, in bytes: below the first, commits are soon refused; above the other, it exceeds the
// server's own advice.
const (
	smallPayload = 256 << 10
	largePayload = 8 << 20
)

func (j *judge) payload() {
	least, most := int64(0), int64(0)
	for _, s := range j.Servers {
		if s.MaxPayload > 0 {
			if least == 0 || s.MaxPayload < least {
				least = s.MaxPayload
			}
			most = max(most, s.MaxPayload)
		}
	}
	switch {
	case least == 0:
	case least != most:
		j.bad(Failure, CheckPayload, fmt.Sprintf("max_payload is between %s and %s", display.Bytes(least), display.Bytes(most)),
			"A commit that one server takes would be refused by another, after a reconnect.", "Give all servers the same max_payload.")
	case least < smallPayload:
		j.bad(Warning, CheckPayload, "max_payload is "+display.Bytes(least),
			fmt.Sprintf("What one handler writes and sends takes at most half of it, %s. More ends the event as failed.", display.Bytes(least/2)), "Set max_payload to 1MB.")
	case most > largePayload:
		j.bad(Warning, CheckPayload, "max_payload is "+display.Bytes(most),
			"Messages of that size hold up everything behind them; NATS advises 8 MB at most.", "Keep large things outside, and set max_payload to 1MB.")
	default:
		j.ok(CheckPayload, "max_payload is %s: a commit takes at most half of it", display.Bytes(least))
	}
}

func (j *judge) jetStream() {
	if j.JetStream != nil {
		j.bad(Failure, CheckJetStream, "JetStream cannot be used: "+j.JetStream.Error(),
			"Settle keeps everything in JetStream.", "Start nats-server with JetStream, and enable it for the account.")
		return
	}
	for _, s := range j.Servers {
		if !s.JetStream {
			j.bad(Warning, CheckJetStream, s.Name+" has no JetStream", "It carries messages, and stores none.", "That is normal for a leaf node. A member of the cluster should store.")
		}
	}
}

func (j *judge) cluster() {
	n := len(j.Servers)
	if j.Cluster == "" {
		j.ok(CheckCluster, "one server, no cluster")
		return
	}
	seen := fmt.Sprintf("cluster %s: %d servers seen", j.Cluster, n)
	switch {
	case n+len(j.Unreachable) < 3:
		j.bad(Warning, CheckCluster, seen, "Three replicas need three servers. With fewer, nothing can be created, and the next server that stops stops everything.",
			"Start the others. If they run, give the URL of each: --nats with commas.")
	case n < 3:
		j.bad(Warning, CheckCluster, fmt.Sprintf("%s, %d do not answer", seen, len(j.Unreachable)),
			"The next server that stops stops everything.", "Start the others.")
	default:
		j.ok(CheckCluster, "%s", seen)
	}
}

// storage levels, in percent of a limit.
const (
	fillWarning = 80
	fillFailure = 95
)

func (j *judge) storage() {
	j.fill("the account", j.Storage.Used, j.Storage.Limit, "Raise the account's limit, or free what is not needed.")
	for _, s := range j.Servers {
		if s.Disk != nil {
			j.fill("server "+s.Name, s.Disk.Used, s.Disk.Limit, "Raise max_file_store of the server, or give it a larger disk.")
		}
	}
	for i := range j.Streams {
		s := &j.Streams[i]
		if limit := s.MaxMessages; limit > 0 {
			percent := int64(s.Messages) * 100 / limit
			j.filled(fmt.Sprintf("%s holds %d of %s (%d %%)", s.Name, s.Messages, display.Count(int(limit), "message"), percent), percent, "Take the limit away: see streams.")
		}
		j.fill(s.Name, s.Bytes, s.Limit, "Raise the limit with `nats stream edit "+s.Name+" --max-bytes`, or see why events wait so long.")
	}
}

func (j *judge) fill(what string, used, limit int64, do string) {
	if limit <= 0 {
		if what == "the account" {
			j.ok(CheckStorage, "%s holds %s and has no limit of its own", what, display.Bytes(used))
		}
		return
	}
	percent := used * 100 / limit
	j.filled(fmt.Sprintf("%s holds %s of %s (%d %%)", what, display.Bytes(used), display.Bytes(limit), percent), percent, do)
}

// filled judges something that is filled to a percentage of its limit.
func (j *judge) filled(text string, percent int64, do string) {
	switch {
	case percent >= fillFailure:
		j.bad(Failure, CheckStorage, text, "When it is full, events are refused, and spaces stop at their next commit.", do)
	case percent >= fillWarning:
		j.bad(Warning, CheckStorage, text, "When it is full, events are refused, and spaces stop at their next commit. Nothing is lost by that.", do)
	default:
		j.ok(CheckStorage, "%s", text)
	}
}

// distinct values, sorted, without the empty one.
func distinct[T any](of []T, value func(T) string) (all []string) {
	for _, v := range of {
		if s := value(v); s != "" {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
