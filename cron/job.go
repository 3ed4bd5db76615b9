package cron

import "time"

// Tick is the payload of the events of a job. A program that declares jobs has a stream of ticks:
//
//	var closeBooks = settle.NewStream[cron.Tick]("close-books")
type Tick struct {
	// Cron is the name of the job, At the time that the expression yields.
	Cron string    `json:"cron"`
	At   time.Time `json:"at"`
	// Missed counts the other ticks that the event stands for: those after At that had passed when it was handled or, with EveryMissed, those before
	// At that were beyond its limit.
	Missed int `json:"missed"`
}

// Option configures a job: SkipMissed, EveryMissed.
type Option func(*Job)

// Job is what the options of a job set. By default one event stands for all ticks that were missed while no
// worker served the space, and carries their number.
type Job struct {
	// Skip drops ticks that are late by more than Grace; 0 means one minute.
	Skip  bool
	Grace time.Duration
	// Every handles each missed tick, up to Limit of them in a row; 0 means 1000.
	Every bool
	Limit int
}

// SkipMissed drops the ticks of a job that were missed while no worker served the space, if they are late by
// more than grace; 0 means one minute.
func SkipMissed(grace time.Duration) Option {
	return func(j *Job) { j.Skip, j.Every, j.Grace = true, false, grace }
}

// EveryMissed handles each missed tick of a job, in order, up to a number of them in a row; 0 means 1000.
// Older ones are skipped, and reported to OnError.
func EveryMissed(limit int) Option {
	return func(j *Job) { j.Every, j.Skip, j.Limit = true, false, limit }
}
