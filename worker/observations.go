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

// Observations (DESIGN 8.1) are saved with a checkpoint, one item per node, and taken up
// when the space is loaded: a node of which nothing that it read has changed does not run
// again. They spare work and decide nothing, so one that is lost, late or not readable
// costs a run.
//
// They hold only for the code that made them. A node may name its version; what a node
// without one has seen holds for the program that was running, to the byte.

// noted are the observations that are to go with the next checkpoint, by key. Those that
// could not be saved wait here.
type noted map[string]model.StateDoc

// take notes what has changed in the core since the last time.
func (o noted) take(core *space.Space, build string) error {
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
			continue // there is no telling for what code it would hold
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

// lasting reports whether a node outlives this process. What stands for somebody who watches
// does not, and has an id that is no name.
func lasting(node string) bool { return model.CheckName("node", node) == nil }

// drain hands over what is noted, in order of keys.
func (o noted) drain() []model.StateDoc {
	out := make([]model.StateDoc, 0, len(o))
	for _, key := range slices.Sorted(maps.Keys(o)) {
		out = append(out, o[key])
	}
	clear(o)
	return out
}

// keep takes items back that were not saved, unless there are newer ones by now.
func (o noted) keep(docs []model.StateDoc) {
	for i := range docs {
		if newer, ok := o[docs[i].Doc]; !ok || newer.Seq < docs[i].Seq {
			o[docs[i].Doc] = docs[i]
		}
	}
}

// observations reads those that were saved by this program.
func observations(st model.SpaceState, build string) []space.Observation {
	out := make([]space.Observation, 0, len(st.Observations))
	for i := range st.Observations {
		var one space.Observation
		if json.Unmarshal(st.Observations[i].Data, &one) != nil {
			continue // deleted, or of another time: the node runs
		}
		if one.Version == build {
			one.Version = ""
		}
		out = append(out, one)
	}
	return out
}

// executable tells this program from every other: the hash of its file. It is "", and
// nodes without a version are not observed, if that cannot be read.
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
