package model

import "slices"

// MaxTrail is the number of documents that a trail names.
const MaxTrail = 16

// Trail tells through which documents of other spaces a change has come: a computation read one of them in another space, its output was
// read in a third, and so on. Where that leads back to a space, it is a circle, which no single space can see (docs/adr/0068).
type Trail struct {
	// Docs are the documents, "SPACE/DOCUMENT", in the order in which the change came through them, each once; at most MaxTrail, the latest.
	Docs []string `json:"d"`
	// Steps counts the documents through which the change came again: it grows for as long as a circle turns. Each document beyond MaxTrail
	// counts as well, because it may belong to a longer circle. It is 0 otherwise.
	Steps uint64 `json:"n,omitzero"`
}

// Through returns the trail of a change that has come on through a document of a space. t may be nil, for a change that began there.
func (t *Trail) Through(space, doc string) *Trail {
	name := space + "/" + doc
	if t == nil {
		return &Trail{Docs: []string{name}}
	}
	out := &Trail{Docs: t.Docs, Steps: t.Steps}
	i := slices.Index(out.Docs, name)
	if i >= 0 {
		out.Docs = out.Docs[i+1:]
	}
	if i >= 0 || len(out.Docs) == MaxTrail {
		out.Steps = min(out.Steps+1, MaxNumber)
	}
	out.Docs = append(slices.Clone(out.Docs[max(0, len(out.Docs)-MaxTrail+1):]), name)
	return out
}

// Further returns the one of two trails that has turned for longer; of equal ones the longer, and then t. Either may be nil.
func (t *Trail) Further(o *Trail) *Trail {
	switch {
	case o == nil:
		return t
	case t == nil || o.Steps > t.Steps || o.Steps == t.Steps && len(o.Docs) > len(t.Docs):
		return o
	}
	return t
}

func (t *Trail) check(b *bounds) {
	if t == nil {
		return
	}
	b.number("n", t.Steps)
	if len(t.Docs) > MaxTrail {
		b.fail("d", len(t.Docs), "a trail has at most %d documents", MaxTrail)
		return
	}
	for _, d := range t.Docs {
		b.line("d", d, 2*MaxNameLen+1)
	}
}

// TrailOf returns the trail of a document as a commit leaves it: that of the last transaction that writes it, nil if it has none.
func (c *Commit) TrailOf(doc string) *Trail {
	for i := len(c.Txs) - 1; i >= 0; i-- {
		for j := range c.Txs[i].Writes {
			if c.Txs[i].Writes[j].Doc == doc {
				return c.Txs[i].Via
			}
		}
	}
	return nil
}
