package console

import (
	"html/template"
	"time"
)

// operations has what the pages about events, workflows, programs and the fleet keep between requests.
type operations struct {
	// without are spaces that had no runs, or no schedules, when they were read last.
	without      lately
	frozen       frozenSets
	jobs         jobs
	undo         time.Duration // how long a job waits before it begins
	dead         deadCache
	compilations compilations
	doctor       doctorCache
	takes        takes
	stalls       stalls
}

// operatingPages are the pages about events, workflows, programs and processes, in the order of the navigation.
func operatingPages() []page {
	return []page{
		workflowsPage(), schedulesPage(), runPage(),
		eventPage(), deadPage(), jobPage(),
		programsPage(), programPage(), sourcePage(),
		fleetPage(), doctorPage(), settingsPage(), auditPage(),
	}
}

// operatingActions are their actions.
func operatingActions() []action {
	var all []action
	for _, list := range [][]action{runActions(), scheduleActions(), eventActions(), deadActions(), programActions(), fleetActions()} {
		all = append(all, list...)
	}
	return all
}

// operatingFuncs are functions of their templates.
func operatingFuncs() template.FuncMap {
	return template.FuncMap{
		"runURL": runURL, "runState": runState, "programURL": programURL, "sourceURL": sourceURL, "deadState": deadState, "eventState": eventState,
		"ticks": ticks,
		"half":  func(n int) int { return n / 2 },
	}
}
