package history

import "github.com/settlehq/settle/model"

// partial is a document as far as the writes to it that have been read determine it. The log before them is not read, or was purged.
type partial struct {
	// value is the value if it is known; it may be absent. Otherwise, parts below it may be known.
	known bool
	value model.Value
	parts map[string]*partial
}

// set applies a write.
func (p *partial) set(w *model.Write) {
	at := p
	for i, step := range w.Path {
		if at.known {
			v, err := model.Write{Path: w.Path[i:], Value: w.Value, Delete: w.Delete}.Apply(at.value)
			at.value, at.known = v, err == nil // a write that is in a log always applies to what was before it
			return
		}
		next := at.parts[step]
		if next == nil {
			if at.parts == nil {
				at.parts = map[string]*partial{}
			}
			next = &partial{}
			at.parts[step] = next
		}
		at = next
	}
	*at = partial{known: true, value: w.Value}
	if w.Delete {
		at.value = model.Value{}
	}
}

// at returns the value at a path, if it is known.
func (p *partial) at(path model.Path) (v model.Value, known bool) {
	for i, step := range path {
		if p.known {
			return p.value.At(path[i:]), true
		}
		if p = p.parts[step]; p == nil {
			return model.Value{}, false
		}
	}
	return p.value, p.known
}
