package main

import "fmt"

// cell is a value that a body can read.
type cell interface {
	get() float64
}

// source is a cell that can be set. Outside of a batch, set is one update: when it returns, every effect that
// depends on it has run.
type source interface {
	cell
	set(v float64)
}

// engine is a reactive library under measurement. Bodies count their own runs, so that all engines are counted
// in the same way. Every body declares the cells that it may read; an engine that tracks reads by itself
// ignores that.
type engine interface {
	source(v float64) source
	computed(body func() float64, reads ...cell) cell
	effect(body func(), reads ...cell)
	// start is called once, when the graph is complete. Every effect must have run when it returns.
	start()
	// batch makes one update of all sets in fn.
	batch(fn func())
	// close releases what the garbage collector cannot.
	close()
}

// contender is an engine with its name and its limitations.
type contender struct {
	name string
	what string
	make func() engine
	// extra engines are measured only on request.
	extra bool
	// cannot has the reason why this engine is left out, by shape or group of shapes.
	cannot map[string]string
	// differs has the reason why the run counts of this engine may differ from the contract, by shape; "" is
	// for all shapes.
	differs map[string]string
}

func (c *contender) skips(s *shape) string {
	if why := c.cannot[s.name]; why != "" {
		return why
	}
	return c.cannot[s.group]
}

func (c *contender) excuse(s *shape) string {
	if why := c.differs[s.name]; why != "" {
		return why
	}
	if why := c.differs[s.group]; why != "" {
		return why
	}
	return c.differs[""]
}

var contenders = []*contender{
	{
		name: "settle", what: "package space, in memory", make: newSettle,
		differs: settleDiffers,
	},
	{
		name: "settle-json", what: "the same with documents that are objects, read by path", make: newSettleJSON, extra: true,
		differs: settleDiffers,
	},
	{
		name: "settle+log", what: "package space, every change encoded into commits", make: newSettleLog,
		differs: settleDiffers,
	},
	{name: "floor", what: "package floor: push-pull over float64, nothing else", make: newFloor},
	{name: "alien", what: "package alien: a library by the algorithm of alien-signals", make: newAlien},
	{
		name: "go-incr", what: "github.com/wcharczuk/go-incr v1.4.7 by its expert interface", make: newIncr,
		differs: incrDiffers,
	},
	{
		name: "go-incr-api", what: "the same by Stabilize, as its README shows it", make: newIncrAPI, extra: true,
		differs: incrDiffers,
	},
	{
		name: "sig", what: "github.com/AnatoleLucet/sig v0.1.0", make: newSig,
		cannot: map[string]string{
			"cellx2500": "has a heap of 2000 levels",
			"dynamic":   "takes ten times as long as all the others together",
			"random":    "can miss a change where what is read depends on values",
		},
		differs: map[string]string{
			"triangle": eager, "unstable": eager, "mol": eager,
		},
	},
	{
		name: "coregx", what: "github.com/coregx/signals v0.1.0", make: newCoregx,
		cannot: map[string]string{
			"mol":       noBatch,
			"cellx1000": noBatch,
			"cellx2500": noBatch,
			"dynamic":   "runs once for every path from the source, of which there are too many",
			"create":    "starts a goroutine for every input of every node",
		},
		differs: map[string]string{"": "eager: runs once for every path from the source, without cutoff"},
	},
}

const (
	eager    = "eager: also runs nodes without readers"
	upstream = "runs from the sources on: what a node has read so far is up to date before the node finds that it does not read it any more"
	waits    = "a run that meets a document of another space before it is there waits, and runs again"
	noBatch  = "has no batches"
	static   = "its inputs are fixed, so that what could be read is computed whether it is read or not"
)

var settleDiffers = map[string]string{
	"unstable": upstream, "mol": upstream, "dynamic": upstream, "create": waits,
}

var incrDiffers = map[string]string{
	"unstable": static, "mol": static,
	"6-10x10-dyn25-lazy80": static, "4-1000x12-dyn5": static, "6-100x15-dyn50": static,
}

func contenderNamed(name string) (*contender, error) {
	for _, c := range contenders {
		if c.name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("there is no engine %q", name)
}
