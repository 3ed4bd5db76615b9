package inspect

import "slices"

// History is what a space has recorded, as far as that was switched on (see Recorder), and the signs that it does not come
// to rest. It is not to be changed.
type History struct {
	// Runs are the runs and Triggers the reasons to run, the latest thousand of each, oldest first; nil if none are kept.
	Runs     []RunEntry
	Triggers []TriggerEntry
	// Markers are the latest signs that the space does not come to rest, oldest first, and NonSettling reports
	// that its last pass had to defer something.
	Markers     []Marker
	NonSettling bool

	// edges are the causal edges of a recording that is under way, found the circles of the last one.
	recording bool
	edges     []causalEdge
	found     [][]string
}

// Circles lists the causal circles of the recording under way or, if there is none, of the
// last one. There can be more circles than nodes, so not all of them are listed, but each
// node that lies on one lies on one that is.
func (h *History) Circles() []Circle {
	found := h.found
	if h.recording {
		found = newCausalGraph(slices.Clone(h.edges)).circles()
	}
	var out []Circle
	for _, spelled := range found {
		var c Circle
		for step := range slices.Chunk(spelled, 2) {
			c = append(c, CausalStep{step[0], step[1]})
		}
		out = append(out, c)
	}
	return out
}
