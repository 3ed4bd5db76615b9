package worker

import (
	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Observations are saved with a checkpoint, one item per node, and restored when the space is loaded: a node
// none of whose inputs has changed does not run again. They only save work, so an observation that is lost,
// late or unreadable merely costs a run.
//
// An observation is valid only for the code that made it. A node may name its version; the observations of a
// node without one are valid for exactly the same executable.

// Observed returns, as items of the saved state, what the nodes have observed since the last call.
func (c *core) Observed() (items []model.StateDoc, err error) {
	observed, gone := c.Observations()
	for _, id := range gone {
		if lasting(id) {
			items = append(items, model.StateDoc{Doc: model.StateKeyOfNode(id), Seq: c.Seq()})
		}
	}
	build := c.build()
	for i := range observed {
		one := &observed[i]
		if !lasting(one.Node) {
			continue
		}
		if one.Version == "" {
			one.Version = build
		}
		if one.Version == "" {
			continue // the code for which it would be valid is unknown
		}
		data, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		items = append(items, model.StateDoc{Doc: model.StateKeyOfNode(one.Node), Data: data, Seq: one.Basis})
	}
	return items, nil
}

// lasting reports whether a node outlives this process. A node that stands for a watch
// does not, and its id is not a valid name.
func lasting(node string) bool { return model.CheckName("node", node) == nil }

// observations returns the saved observations that are valid for this program.
func observations(st model.SpaceState, build string) []space.Observation {
	out := make([]space.Observation, 0, len(st.Observations))
	for i := range st.Observations {
		var one space.Observation
		if json.Unmarshal(st.Observations[i].Data, &one) != nil {
			continue // deleted, or of another version: the node runs
		}
		if one.Version == build {
			one.Version = ""
		}
		out = append(out, one)
	}
	return out
}
