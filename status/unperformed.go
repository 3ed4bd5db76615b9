package status

import (
	"fmt"
	"time"
)

// Unperformed is an action whose tasks a worker offers to performers, and none takes them.
type Unperformed struct {
	Action string `json:"action"`
	// Queue is the queue of the tasks, "" for none.
	Queue string `json:"queue,omitzero"`
	// Since and Last are the first and the last offer of a task, since one was taken, that no performer has taken. While tasks wait, one is
	// offered every few seconds.
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Claimed is when a performer has taken a task from this worker for the last time, zero if none has since the worker was started.
	Claimed time.Time `json:"claimed,omitzero"`
	// Silent is set if a performer is connected, and none has answered within three seconds. Otherwise none is connected.
	Silent bool `json:"silent,omitzero"`
	// Space is the space of the task that was offered last, and Tasks the number of its tasks of the action that have not ended.
	Space string `json:"space"`
	Tasks int    `json:"tasks"`
}

// Reason is why no task is taken, in a clause.
func (u *Unperformed) Reason() string {
	of := u.Action
	if u.Queue != "" {
		of += ", queue " + u.Queue
	}
	if u.Silent {
		return fmt.Sprintf("a performer of %s is connected, and none answers", of)
	}
	return "no performer of " + of + " is connected"
}

// Advice is the command that starts a performer, with what stands in place of the command of the operator if the tasks are HTTP requests.
func (u *Unperformed) Advice() string {
	queue := ""
	if u.Queue != "" {
		queue = " --queue " + u.Queue
	}
	return "settle perform " + u.Action + queue + " -- COMMAND (or: --http URL)"
}
