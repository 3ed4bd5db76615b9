package space

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/replica"
)

// save merges a checkpoint into the saved state.
func (s *stage) save(space string, c replica.Checkpoint) {
	docs := map[string]model.StateDoc{}
	for _, d := range slices.Concat(s.saved[space].Docs, s.saved[space].Pieces, s.saved[space].Later, c.Docs) {
		docs[d.Doc] = d
	}
	next := model.SpaceState{Mark: c.Mark}
	for _, id := range slices.Sorted(maps.Keys(docs)) {
		list := next.ListOf(id)
		*list = append(*list, docs[id])
	}
	s.saved[space] = next
}

func (s *stage) cmdGraph(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		var rows [][]string
		for _, n := range a.core.Nodes() {
			row := []string{n.ID, n.Kind.String(), n.Status.String(), demandOf(n.Live), "reads " + names(n.Reads)}
			if n.Parent != "" {
				row = append(row, "made by "+n.Parent)
			}
			if len(n.Causes) > 0 {
				row = append(row, "because of "+names(n.Causes))
			}
			if n.Until > s.now {
				row = append(row, fmt.Sprintf("gated until %s", n.Until))
			}
			rows = append(rows, row)
		}
		for _, line := range align(rows) {
			s.tell(a, 1, "%s", line)
		}
	}
	return err
}

func demandOf(live bool) string {
	if live {
		return "live"
	}
	return "dormant"
}

func names(list []string) string {
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// align pads cells so that columns line up.
func align(rows [][]string) []string {
	var width []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len(cell))
		}
	}
	var lines []string
	for _, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			fmt.Fprintf(&b, "%-*s  ", width[i], cell)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// cmdValues prints documents as the runtimes see them, including speculative writes.
func (s *stage) cmdValues(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		var parts []string
		for id := range a.core.graph.docs { // any order: sorted below
			if v := a.core.Value(id); !v.IsAbsent() {
				parts = append(parts, id+"="+show(v))
			}
		}
		slices.Sort(parts)
		s.tell(a, 1, "%s", names(parts))
	}
	return err
}

// cmdLog prints the log of a space with the authors of commits.
func (s *stage) cmdLog(d *datadriven.TestData) error {
	for _, e := range s.logs[arg(d, 0)] {
		c := s.commit(e)
		s.tellBus("%d %s: %s", e.Seq, commitName(c), contents(c))
		for _, tx := range c.Txs {
			for _, w := range tx.Writes {
				s.tellBus("    %s%s = %s", w.Doc, w.Path, show(w.Value))
			}
			for _, send := range tx.Sends {
				s.tellBus("    send %s to %s/%s%s", send.ID, send.To, send.Stream, waitsUntil(&send))
			}
		}
	}
	return nil
}

func (s *stage) cmdReceipts(d *datadriven.TestData) error {
	for _, rc := range s.allReceipts(arg(d, 0)) {
		s.tellBus("%s %s", rc.Event, ending(rc))
	}
	return nil
}

// cmdRuns prints how often each node has run, in total and since the last call.
func (s *stage) cmdRuns(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		var parts []string
		for _, n := range a.core.Nodes() {
			parts = append(parts, fmt.Sprintf("%s %d (+%d)", n.ID, n.Runs, n.Runs-a.runs[n.ID]))
			a.runs[n.ID] = n.Runs
		}
		s.tell(a, 1, "%s", strings.Join(parts, "  "))
	}
	return err
}

func (s *stage) cmdStats(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		st := a.core.Stats()
		line := fmt.Sprintf("handled %d  failed %d  refused %d  parked %d  refused appends %d  deferred %d  node errors %d",
			st.Handled, st.Failed, st.Refusals, st.Parked, st.Refused, st.Deferred, st.NodeErrors)
		if st.Echoes > 0 {
			line += fmt.Sprintf("  echoes %d", st.Echoes)
		}
		if st.OutsideWrites > 0 {
			line += fmt.Sprintf("  outside writes %d", st.OutsideWrites)
		}
		s.tell(a, 1, "%s", line)
	}
	return err
}
