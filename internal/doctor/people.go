package doctor

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/bus/roles"
	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
)

// coordinatorService is the service name of coordinators.
const coordinatorService = history.ServiceName

func (j *judge) workers() {
	if j.MembersUnseen != nil {
		j.bad(Warning, CheckWorkers, "the workers' bucket could not be read: "+j.MembersUnseen.Error(), "Whether a worker runs is not known.", readAdvice(j.MembersUnseen))
		return
	}
	var there, gone, frozen []string
	for _, m := range j.Members {
		switch {
		case m.Role != "" && m.Role != model.RoleOrdered:
		case m.Answers:
			there = append(there, m.ID)
		case m.Unknown != nil:
			frozen = append(frozen, m.ID)
		case !m.Left:
			gone = append(gone, m.ID)
		}
	}
	if len(there) == 0 {
		text := "no worker answers"
		for _, m := range j.Members {
			if m.Unknown != nil {
				text += ": " + m.Unknown.Error()
				break
			}
		}
		j.bad(Failure, CheckWorkers, text, "Events are stored and none is handled.", "Start a worker.")
		return
	}
	j.ok(CheckWorkers, "%s: %s", display.Count(len(there), "worker"), strings.Join(there, ", "))
	j.programs()
	j.hanging(frozen)
	if len(gone) > 0 {
		j.ok(CheckWorkers, "%d that have ended without leaving, as when they are killed: %s", len(gone), clip(gone))
	}
}

// hanging reports the workers that do not answer, and the present owners of their partitions.
func (j *judge) hanging(frozen []string) {
	became := map[string]string{}
	if j.fleet != nil {
		for _, h := range j.fleet.Hanging() {
			became[h.Worker] = h.String()
		}
	}
	for _, id := range frozen[:min(len(frozen), maxNamed)] {
		text := "listens and does not answer: " + id
		if became[id] != "" {
			text += "; " + became[id]
		}
		j.bad(Warning, CheckWorkers, text,
			"The process hangs, or its machine is cut off. Others take its partitions over after the member TTL (15 s by default); until then its spaces stand still.",
			"Examine the process, and end it if it does not recover: nothing is lost.")
	}
	if more := len(frozen) - maxNamed; more > 0 {
		j.bad(Warning, CheckWorkers, fmt.Sprintf("%d more listen and do not answer", more), "See above.", "See above; `settle fleet` names all.")
	}
}

// programs warns of workers that host different programs.
func (j *judge) programs() {
	by := map[string][]string{}
	for _, m := range j.Members {
		if m.Answers && m.Role == "" && m.Program != "" {
			by[m.Program] = append(by[m.Program], m.ID)
		}
	}
	if len(by) < 2 {
		return
	}
	var said []string
	for _, p := range slices.Sorted(maps.Keys(by)) {
		said = append(said, p+" ("+clip(by[p])+")")
	}
	j.bad(Warning, CheckWorkers, "of different programs: "+strings.Join(said, ", "),
		"A space is hosted by whichever worker has its partition. Events that the program there has no handler for are refused for good.",
		"Give each program a deployment (--prefix) of its own, or all workers the same program.")
}

func clip(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " ..."
	}
	return strings.Join(names, ", ")
}

// manyUnread is how many unread log entries of the coordinators are not reported:
// they save their position once a second.
const manyUnread = 10_000

func (j *judge) coordinators() {
	if j.ServicesUnseen != nil {
		j.bad(Warning, CheckCoordinator, "could not be asked: "+j.ServicesUnseen.Error(), "Whether a coordinator runs is not known.", "Use a user that may publish to $SRV.>.")
	} else {
		j.present()
		j.frozenCoordinators()
	}
	behind := uint64(0)
	for _, r := range j.Reaches {
		behind += r.Behind
	}
	if behind > manyUnread {
		j.bad(Warning, CheckCoordinator, fmt.Sprintf("%d log entries are not read yet", behind),
			"Events between spaces and dead letters arrive late by that much.", "Wait if the number decreases. Otherwise see the coordinators' logs.")
	}
}

// frozenCoordinators warns of coordinators that are connected and do not answer.
func (j *judge) frozenCoordinators() {
	if j.fleet == nil {
		return
	}
	var frozen []string
	for i := range j.fleet.Coordinators {
		if m := &j.fleet.Coordinators[i]; m.State == fleet.Silent {
			frozen = append(frozen, m.ID)
		}
	}
	if len(frozen) > 0 {
		j.bad(Warning, CheckCoordinator, "listens and does not answer: "+clip(frozen),
			"The process hangs, or its machine is cut off. Each coordinator reads the whole log, so those that answer do its work.",
			"Examine the process, and end it if it does not recover: nothing is lost.")
	}
}

func (j *judge) present() {
	n := 0
	alive := map[string]int{}
	for _, s := range j.Services {
		if s.Name == coordinatorService {
			n++
		}
		for _, e := range s.Endpoints {
			if id, yes := strings.CutPrefix(e, coordinator.Endpoint("")); yes {
				alive[id]++
			}
		}
	}
	switch n {
	case 0:
		j.bad(Failure, CheckCoordinator, "no coordinator answers", "Events that spaces send to each other wait in the log, and dead letters are not written. Nothing is lost.", "Start one.")
	case 1:
		j.ok(CheckCoordinator, "one: when it ends, events between spaces wait until another is started")
	default:
		j.ok(CheckCoordinator, "%d", n)
	}
	for _, id := range slices.Sorted(maps.Keys(alive)) {
		if alive[id] > 1 {
			j.bad(Warning, CheckCoordinator, fmt.Sprintf("%d processes are called %s", alive[id], id),
				"They do no harm to each other, but `settle fleet` shows them as one.", "Give each an --id of its own.")
		}
	}
	versions := distinct(j.Services, func(s survey.ServiceFacts) string { return s.Version })
	for _, m := range j.Members {
		if m.Answers && m.Version != "" {
			versions = append(versions, m.Version)
		}
	}
	if v := distinct(versions, strings.Clone); len(v) > 1 {
		j.bad(Warning, CheckVersions, "processes of different versions: "+strings.Join(v, ", "),
			"This is normal during an upgrade.", "Finish the upgrade.")
	}
}

// The number and the age from which open dead letters are reported.
const (
	deadWarning = 100
	deadFailure = 10_000
	deadOld     = 24 * time.Hour
)

func (j *judge) dead() {
	for i := range j.Streams {
		s := &j.Streams[i]
		switch {
		case s.Component != "dead" || s.Missing || s.Unseen != nil:
		case s.Dead == nil:
			j.bad(Warning, CheckDead, "could not be counted", "It is not known whether events have failed.", "Use a user that may read: `settle permissions`.")
		case s.Dead.Letters == 0:
			j.ok(CheckDead, "none")
		default:
			j.openDead(s.Dead)
		}
	}
}

func (j *judge) openDead(d *survey.DeadFacts) {
	text := fmt.Sprintf("%s, ever; %d open", display.Count(d.Letters, "event"), d.Open)
	age := time.Duration(0)
	if !d.OldestOpen.IsZero() {
		age = j.Now.Sub(d.OldestOpen).Round(time.Minute)
		text += fmt.Sprintf(", the oldest for %v", age)
	}
	if d.Stream != "" {
		text += fmt.Sprintf("; %d of these of stream %s", d.OfStream, d.Stream)
		text += firstsOf(d)
	}
	level := OK
	switch {
	case d.Open >= deadFailure:
		level = Failure
	case d.Open >= deadWarning, d.Open > 0 && age >= deadOld:
		level = Warning
	}
	if level == OK {
		j.ok(CheckDead, "%s: `settle dead --open` lists the open ones", text)
		return
	}
	j.bad(level, CheckDead, text, "What these events should have done is not done, and no operator has looked at them.",
		"`settle dead --open` says why. When the cause is repaired: `settle redrive --all`; else `settle dismiss --all`, with --error, --stream or --older for some of them.")
}

// firstsOf returns why the first letter of each of a few streams exists, beginning with the stream of most letters.
func firstsOf(d *survey.DeadFacts) (text string) {
	for i := range d.Firsts {
		f := &d.Firsts[i]
		why := fmt.Sprintf("the first because: %s (event %s of space %s)", display.FirstLine(f.Error), f.Event, f.Space)
		if f.Stream == d.Stream {
			text = ", " + why + text
		} else {
			text += "; of stream " + f.Stream + ", " + why
		}
	}
	return text
}

// BackupAge is the default for how old the newest backup may be, and how old a deployment without a
// backup.
const BackupAge = 7 * 24 * time.Hour

// backup judges the age of the newest backup. A deployment that is younger than a backup may be
// needs none yet.
func (j *judge) backup() {
	const why = "If the disks are lost, or data is deleted by mistake, what was stored since the newest backup is gone."
	const do = "`settle backup DIR`, regularly. If backups are made otherwise, --backup-age 0 says nothing of them."
	switch age := j.age(); {
	case j.oldest <= 0:
	case j.BackupUnseen != nil:
		j.bad(Warning, CheckBackup, "it is not known when the newest was made: "+j.BackupUnseen.Error(), why, do)
	case j.Backup == nil && age >= j.oldest:
		j.bad(Warning, CheckBackup, fmt.Sprintf("none was ever made with `settle backup`, and the deployment is %v old", age), why, do)
	case j.Backup == nil:
		j.ok(CheckBackup, "none was ever made: `settle backup DIR`")
	default:
		text := fmt.Sprintf("the newest was made %v ago, as of %s", age, j.Backup.AsOf.UTC().Format(time.RFC3339))
		if age >= j.oldest {
			j.bad(Warning, CheckBackup, text, why, do)
			return
		}
		j.ok(CheckBackup, "%s", text)
	}
}

// age returns the age of the newest backup or, if there is none, of the deployment; 0 if it is not known.
func (j *judge) age() time.Duration {
	since := j.Created
	if j.Backup != nil {
		since = j.Backup.Made()
	}
	if since.IsZero() {
		return 0
	}
	return max(0, j.Now.Sub(since)).Round(time.Second)
}

// denied warns of processes whose user lacks permissions. Denied requests are retried, so the symptom looks
// like slowness.
func (j *judge) denied() {
	if j.fleet == nil {
		return
	}
	for _, m := range slices.Concat(j.fleet.Workers, j.fleet.Coordinators) {
		if what := m.Denied(); what != "" {
			j.bad(Warning, CheckPermissions, m.Kind()+" "+m.ID+" was denied within the last ten minutes: "+what,
				"What the "+m.Kind()+" needs that for waits.", "Give its user the permissions of the role "+m.Kind()+": `settle permissions`.")
		}
	}
}

// isDevServer reports whether the deployment is that of `settle dev` on this machine: a server in its process, at a loopback address.
func (j *judge) isDevServer() bool {
	if len(j.Servers) != 1 {
		return false
	}
	s := &j.Servers[0]
	at, err := url.Parse(s.URL)
	return err == nil && devserver.IsName(s.Name) && s.Disk != nil && s.Disk.ByProcess && net.ParseIP(at.Hostname()).IsLoopback()
}

func (j *judge) permissions() {
	j.denied()
	u := j.User
	who := "user " + u.User
	if u.User == "" {
		who = "a client without a user"
	}
	switch {
	case u.Unknown != nil:
		j.bad(Warning, CheckPermissions, "not known: "+u.Unknown.Error(), "The permissions of this user cannot be compared with the required ones.", "Allow it to publish to $SYS.REQ.USER.INFO.")
	case u.Unlimited && u.User == "" && j.isDevServer():
		j.ok(CheckPermissions, "%s may do everything: it is the server of `settle dev`, which programs of this machine only reach", who)
	case u.Unlimited && (u.Account == "$G" || u.User == ""):
		j.bad(Warning, CheckPermissions, "connected as "+who+", with all permissions",
			"Every client that reaches the server can read and write everything in it, past all rules of Settle.", "Acceptable on one machine. Otherwise give each role a user: deploy/nats has the permissions.")
	case u.Unlimited:
		j.ok(CheckPermissions, "%s of account %s may do everything", who, u.Account)
	case len(u.Roles) == 0:
		j.bad(Warning, CheckPermissions, fmt.Sprintf("%s of account %s has the rights of no role; the role %s needs besides: %s", who, u.Account, roles.Backup, strings.Join(u.Lacks[roles.Backup], ", ")),
			"Some commands will wait for answers that never come.", "Give it the permissions of a role: `settle permissions`.")
	default:
		roles := slices.Clone(u.Roles)
		j.ok(CheckPermissions, "%s of account %s has the rights of: %s", who, u.Account, strings.Join(roles, ", "))
	}
}
