package host

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
)

// noted are the observations for the next checkpoint, by key. Those that
// could not be saved stay here.
type noted map[string]model.StateDoc

// observedCore provides the observations of a space's nodes.
type observedCore interface {
	// Unsaved reports whether there is anything that Observed would return.
	Unsaved() bool
	// Observed returns, as items of the saved state, what has changed since the last call.
	Observed() ([]model.StateDoc, error)
}

// drain returns and clears the recorded observations, in order of keys.
func (o noted) drain() []model.StateDoc {
	if len(o) == 0 {
		return nil
	}
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
