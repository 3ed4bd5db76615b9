package main

import (
	"fmt"

	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/runs"
)

// childLine is a child as `settle workflow status --json` prints it.
type childLine struct {
	Space    string `json:"space"`
	Run      string `json:"run"`
	Workflow string `json:"workflow"`
	State    string `json:"state"`
}

func childLines(s *flow.Status) (list []childLine) {
	for _, c := range s.Children {
		list = append(list, childLine{Space: c.Space, Run: c.Run, Workflow: c.Workflow, State: string(c.State)})
	}
	return list
}

// parentText returns the parent of a run as SPACE/RUN, "" if it has none.
func parentText(s *flow.Status) string {
	if s.Parent == nil {
		return ""
	}
	return s.Parent.String()
}

// childMark marks a child in a list of runs.
func childMark(s *flow.Status) string {
	if s.Parent == nil {
		return ""
	}
	return "child of " + s.Parent.String()
}

// familyLines names the parent and the children of a run: all that have not ended, and the last of the others.
func familyLines(s *flow.Status) (lines []string) {
	if s.Parent != nil {
		lines = append(lines, fmt.Sprintf("  child of run %s in space %s", s.Parent.Run, s.Parent.Space))
	}
	var open, ended []runs.Child
	for _, c := range s.Children {
		if c.State == flow.Running {
			open = append(open, c)
		} else {
			ended = append(ended, c)
		}
	}
	for _, c := range append(ended[max(len(ended)-maxWaiting, 0):], open[:min(len(open), maxWaiting)]...) {
		lines = append(lines, fmt.Sprintf("  child %s in space %s: workflow %s, %s", c.Run, c.Space, c.Workflow, c.State))
	}
	if more := max(len(ended)-maxWaiting, 0) + max(len(open)-maxWaiting, 0); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more children", more))
	}
	return lines
}
