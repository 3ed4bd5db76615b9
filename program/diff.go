package program

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/settlehq/settle/program/star"
)

// Diff lists the nodes of a program that run again under another version of it: those whose
// fingerprints differ. Other nodes keep what they have derived.
type Diff struct {
	Changed []string `json:"changed,omitzero"`
	New     []string `json:"new,omitzero"`
	Gone    []string `json:"gone,omitzero"`
	Same    int      `json:"same"`
	// StreamsGone are streams that lose their handler. Their events will be refused.
	StreamsGone []string `json:"streams_gone,omitzero"`
}

// WithStreams adds the difference of the streams.
func (d Diff) WithStreams(before, after []string) Diff {
	d.StreamsGone = nil
	for _, s := range before {
		if !slices.Contains(after, s) {
			d.StreamsGone = append(d.StreamsGone, s)
		}
	}
	return d
}

// Compare compares the nodes of two versions.
func Compare(before, after []star.Node) Diff {
	var d Diff
	old := map[string]string{}
	for _, n := range before {
		old[n.ID] = n.Fingerprint
	}
	for _, n := range after {
		was, there := old[n.ID]
		delete(old, n.ID)
		switch {
		case !there:
			d.New = append(d.New, n.ID)
		case was != n.Fingerprint:
			d.Changed = append(d.Changed, n.ID)
		default:
			d.Same++
		}
	}
	for _, n := range before {
		if _, left := old[n.ID]; left {
			d.Gone = append(d.Gone, n.ID)
		}
	}
	return d
}

// Lists iterates over the lists of nodes of the diff, by the kind of change.
func (d *Diff) Lists() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		_ = (len(d.Changed) == 0 || yield("changed", d.Changed)) &&
			(len(d.New) == 0 || yield("new", d.New)) &&
			(len(d.Gone) == 0 || yield("gone", d.Gone))
	}
}

// String formats the diff as one line: 2 of 12 nodes have new code and run again; 10 unchanged.
func (d Diff) String() string {
	total := len(d.Changed) + len(d.New) + d.Same
	var parts []string
	switch len(d.Changed) {
	case 0:
	case 1:
		parts = append(parts, fmt.Sprintf("1 of %d nodes has new code and runs again", total))
	default:
		parts = append(parts, fmt.Sprintf("%d of %d nodes have new code and run again", len(d.Changed), total))
	}
	if len(d.New) > 0 {
		parts = append(parts, fmt.Sprintf("%d new", len(d.New)))
	}
	if len(d.Gone) > 0 {
		parts = append(parts, fmt.Sprintf("%d gone", len(d.Gone)))
	}
	if len(parts) == 0 {
		parts = append(parts, fmt.Sprintf("no node has new code (%d)", d.Same))
	} else {
		parts = append(parts, fmt.Sprintf("%d unchanged", d.Same))
	}
	switch n := len(d.StreamsGone); n {
	case 0:
	case 1:
		parts = append(parts, fmt.Sprintf("1 stream gone: %s; its events will be refused", d.StreamsGone[0]))
	default:
		parts = append(parts, fmt.Sprintf("%d streams gone: %s; their events will be refused", n, strings.Join(d.StreamsGone, ", ")))
	}
	return strings.Join(parts, "; ")
}
