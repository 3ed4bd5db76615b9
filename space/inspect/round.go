package inspect

// WayRound returns a shortest way from a node through nodes that read each other back to it: the node, the place that it writes, the node that
// reads that, and so on, the last being a place that the first node reads. It is nil if there is none.
func (s *Snapshot) WayRound(id string) []string {
	type step struct {
		edge Edge
		back int
	}
	steps, seen := []step{{edge: Edge{Node: id}, back: -1}}, map[string]bool{}
	for i := 0; i < len(steps); i++ {
		for _, e := range s.Readers(steps[i].edge.Node) {
			if e.Envelope || seen[e.Node] {
				continue
			}
			seen[e.Node] = true
			steps = append(steps, step{e, i})
			if e.Node != id {
				continue
			}
			var way []string
			for at := len(steps) - 1; steps[at].back >= 0; at = steps[at].back {
				way = append([]string{steps[steps[at].back].edge.Node, steps[at].edge.Address}, way...)
			}
			return way
		}
	}
	return nil
}

// NonConverging reports whether an episode of passes that defer nodes is under way.
func (r *Recorder) NonConverging() bool { return r.deferring }
