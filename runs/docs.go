package runs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/settlehq/settle/model"
)

// Documents of a space with runs.
const (
	// Index lists the runs of a space: {RUN: {"workflow": NAME, "state": STATE, "at": MS, "ended": MS, "bytes": N}}.
	// The bytes are those of the steps that are kept of a run that has ended. Runs that others have started have
	// {"parent": "SPACE/RUN"}, too.
	Index = "runs"
	// Schedules has the schedules of a space, by name: {NAME: {"workflow": NAME, "state": STATE, "next": MS, ...}}, see
	// package schedule.
	Schedules = "schedules"
	// conditionsIndex lists the conditions that the runs of a space wait for, see conditions.go.
	conditionsIndex = "runs_conditions"
	// load has what the tasks of all runs need, and the bytes of the steps of those that have ended:
	// {"bytes": {ACTION: N}, "waiting": {RUN: true}, "kept": N}.
	load = "runs_load"
)

// maxRunID is the largest length of the ID of a run.
const maxRunID = 40

// CheckID returns an error for an invalid ID of a run.
func CheckID(id string) error {
	if err := model.CheckName("run", id); err != nil {
		return err
	}
	if len(id) > maxRunID {
		return fmt.Errorf("run %q: the ID has %d characters; at most %d are possible", id, len(id), maxRunID)
	}
	return nil
}

// ScheduleDoc returns the name of the document with what a schedule has besides its entry in Schedules: {"args": {...},
// "runs": {"running": [ID, ...], "waiting": [...]}}.
func ScheduleDoc(schedule string) string { return "schedule_" + schedule }

// Doc returns the name of the document of a run.
func Doc(id string) string { return "run_" + id }

func pageDoc(id string, page int) string { return "runlog_" + id + "_" + strconv.Itoa(page) }
func childrenDoc(id string) string       { return "runchildren_" + id }
func snapshotDoc(id string) string       { return "runstate_" + id }
func graphDoc(version string) string     { return "workflow_" + version }
func timerOfSchedule(name string) string { return "schedule_" + name }
func timerOf(id string) string           { return "run_" + id }

// internalDocs matches the documents of runs that are of use to package runs only: their steps, snapshots, children and conditions, the graphs, and what
// all of a space share.
var internalDocs = regexp.MustCompile(`^(run(log_.+_[0-9]+|state_.+|children_.+|waits_.+)|runs_(conditions|load|attributes_[0-9]+)|workflow_[0-9a-f]{16})$`)

// IsInternal reports whether a document has a name that only package runs makes use of, or is a pending call. An application may have documents of such
// names only in a program without workflows.
func IsInternal(doc string) bool { return internalDocs.MatchString(doc) || model.IsTaskDoc(doc) }

// State is the state of a run.
type State string

// States of a run.
const (
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// head is the position of a run: the number of its records, and a hash of them.
type head struct {
	n    int
	hash string
}

func (h head) String() string { return strconv.Itoa(h.n) + ":" + h.hash }

func parseHead(text string) (h head, err error) {
	n, hash, _ := strings.Cut(text, ":")
	h.hash = hash
	if h.n, err = strconv.Atoi(n); err != nil || h.n < 0 {
		return h, fmt.Errorf("%q is no position of a run", text)
	}
	return h, nil
}
