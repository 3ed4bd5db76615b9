package host

import (
	"maps"
	"slices"
	"strings"

	"github.com/settlehq/settle/model"
)

// watcherOf returns the beginning of the names under which the host of a space observes documents of other spaces.
func watcherOf(worker, space, nonce string) string { return worker + "/" + space + "/" + nonce }

// readerOf returns the space whose host observes a document under a name, "" if the name is that of another observer.
func readerOf(watcher string) string {
	before, nonce, _ := cutLast(watcher, "/")
	_, space, is := cutLast(before, "/")
	if !is || strings.Contains(nonce, "-live-") || model.CheckName("space", space) != nil {
		return ""
	}
	return space
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Readers returns the spaces that read one of the documents of a space that this worker serves, sorted.
func (w *Worker) Readers(space string, docs []string) []string {
	w.mu.Lock()
	p := w.partitions[model.PartitionOf(space, w.bus.Partitions())]
	w.mu.Unlock()
	if p == nil {
		return nil
	}
	found := map[string]bool{}
	p.mu.Lock()
	for k := range p.leases.of[space] { // any order: sorted below
		if slices.Contains(docs, k.doc) {
			found[readerOf(k.watcher)] = true
		}
	}
	p.mu.Unlock()
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}
