package worker

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Observations are saved with a checkpoint, one item per node, and restored
// when the space is loaded: a node none of whose inputs has changed does not run
// again. They only save work, so an observation that is lost, late or unreadable
// costs a run.
//
// They are valid only for the code that made them. A node may name its version; the observations of a node
// without one are valid for exactly the same executable.

// noted are the observations for the next checkpoint, by key. Those that
// could not be saved stay here.
type noted map[string]model.StateDoc

// observedCore is what the nodes of a space have observed, as its core has it.
type observedCore interface {
	Observations() (observed []space.Observation, gone []string)
	Seq() uint64
}

// take records the changes in the core since the last call.
func (o noted) take(core observedCore, build string) error {
	observed, gone := core.Observations()
	for _, id := range gone {
		if !lasting(id) {
			continue
		}
		key := model.StateKeyOfNode(id)
		o[key] = model.StateDoc{Doc: key, Seq: core.Seq()}
	}
	for i := range observed {
		one := &observed[i]
		if !lasting(one.Node) {
			continue
		}
		if one.Version == "" {
			one.Version = build
		}
		if one.Version == "" {
			continue // the code that it is valid for is unknown
		}
		data, err := json.Marshal(one)
		if err != nil {
			return err
		}
		key := model.StateKeyOfNode(one.Node)
		o[key] = model.StateDoc{Doc: key, Data: data, Seq: one.Basis}
	}
	return nil
}

// lasting reports whether a node outlives this process. A node that stands for a watch
// does not, and its id is not a valid name.
func lasting(node string) bool { return model.CheckName("node", node) == nil }

// drain returns and clears the recorded observations, in order of keys.
func (o noted) drain() []model.StateDoc {
	out := make([]model.StateDoc, 0, len(o))
	for _, key := range slices.Sorted(maps.Keys(o)) {
		out = append(out, o[key])
	}
	clear(o)
	return out
}

// keep returns items that were not saved to the record, unless there are newer ones by now.
func (o noted) keep(docs []model.StateDoc) {
	for i := range docs {
		if newer, ok := o[docs[i].Doc]; !ok || newer.Seq < docs[i].Seq {
			o[docs[i].Doc] = docs[i]
		}
	}
}

// observations returns the observations that this program has saved.
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

// executable identifies this program by the hash of its file. It is "", and
// nodes without a version are not observed, if the file cannot be read.
var executable = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return "exe:" + hex.EncodeToString(h.Sum(nil)[:16])
})
