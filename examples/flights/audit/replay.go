package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Write is one change of a document, in the log as ["document","path",value], or
// without the value for a deletion. The path is a JSON Pointer (RFC 6901).
type Write struct {
	Doc    string
	Path   []string
	Value  any
	Delete bool
}

// UnmarshalJSON reads the form above.
func (w *Write) UnmarshalJSON(data []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != 2 && len(parts) != 3 {
		return fmt.Errorf("a write of %d parts: %s", len(parts), data)
	}
	var pointer string
	if err := errors.Join(json.Unmarshal(parts[0], &w.Doc), json.Unmarshal(parts[1], &pointer)); err != nil {
		return err
	}
	if pointer != "" {
		w.Path = strings.Split(pointer, "/")[1:]
		for i, step := range w.Path {
			w.Path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		}
	}
	w.Delete = len(parts) == 2
	if w.Delete {
		return nil
	}
	return json.Unmarshal(parts[2], &w.Value)
}

// replay computes the documents from the log alone.
func replay(commits []Commit) (map[string]map[string]any, error) {
	docs := map[string]map[string]any{}
	for _, c := range commits {
		for _, tx := range c.Txs {
			for _, w := range tx.Writes {
				if docs[c.Space] == nil {
					docs[c.Space] = map[string]any{}
				}
				v, err := w.apply(docs[c.Space][w.Doc], w.Path)
				if err != nil {
					return nil, fmt.Errorf("log of %s, sequence %d, document %s: %w", c.Space, c.Seq, w.Doc, err)
				}
				if docs[c.Space][w.Doc] = v; v == nil && w.Delete {
					delete(docs[c.Space], w.Doc)
				}
			}
		}
	}
	return docs, nil
}

// apply returns at with the write made to it, at what is left of its path.
func (w *Write) apply(at any, path []string) (any, error) {
	if len(path) == 0 {
		return w.Value, nil // nil for a deletion
	}
	last := len(path) == 1
	switch at := at.(type) {
	case nil:
		return w.apply(map[string]any{}, path)
	case map[string]any:
		at = maps.Clone(at) // values in a commit are not modified
		if last && w.Delete {
			delete(at, path[0])
			return at, nil
		}
		v, err := w.apply(at[path[0]], path[1:])
		at[path[0]] = v
		return at, err
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(at) || last && w.Delete {
			return nil, fmt.Errorf("no element %q in an array of %d", path[0], len(at))
		}
		if at = slices.Clone(at); i == len(at) {
			at = append(at, nil)
		}
		v, err := w.apply(at[i], path[1:])
		at[i] = v
		return at, err
	}
	return nil, fmt.Errorf("%q leads into %v", path[0], at)
}
