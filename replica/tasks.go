package replica

import (
	"maps"
	"slices"

	"github.com/settlehq/settle/model"
)

// taskDocs follows the documents that hold one task each (model.TaskDoc). There may be a hundred thousand, each lives
// for a moment only, and none is used again. So those that exist are listed here, and nothing is kept of the others: neither
// in memory nor, of those that began and ended between two checkpoints, in the saved state.
type taskDocs struct {
	// there are those that exist.
	there map[string]bool
	// changed are those that changed since the last call of TaskDocs; nil before the first.
	changed map[string]bool
	// fresh are those that the owner has created since the last checkpoint. No process can have saved them: the log had
	// none of it when an earlier owner was deposed, and this one saves what its checkpoints have.
	fresh map[string]bool
	// deleted have markers in checkpoints; see forgetTasks.
	deleted []string
}

func newTaskDocs() taskDocs {
	return taskDocs{there: map[string]bool{}, fresh: map[string]bool{}}
}

func (t *taskDocs) clone() taskDocs {
	return taskDocs{there: maps.Clone(t.there), changed: maps.Clone(t.changed), fresh: maps.Clone(t.fresh), deleted: slices.Clone(t.deleted)}
}

// TaskDocs returns the documents of single tasks that have changed since the last call, sorted; at first, all that exist.
func (r *Replica) TaskDocs() []string {
	t := &r.tasks
	if t.changed == nil {
		t.changed = map[string]bool{}
		return slices.Sorted(maps.Keys(t.there))
	}
	if len(t.changed) == 0 {
		return nil
	}
	ids := slices.Sorted(maps.Keys(t.changed))
	clear(t.changed)
	return ids
}

// setTask records a change of the document of a task. It returns true if nothing is to be stored of it.
func (r *Replica) setTask(id string, d Doc, own bool) (forget bool) {
	t := &r.tasks
	_, known := r.docs[id]
	if t.changed != nil && (known || !d.Value.IsAbsent()) {
		t.changed[id] = true
	}
	if !d.Value.IsAbsent() {
		if own && !known {
			t.fresh[id] = true
		}
		t.there[id] = true
		return false
	}
	delete(t.there, id)
	if own && !known { // it was created and deleted in one commit
		return true
	}
	if !t.fresh[id] {
		return false
	}
	delete(t.fresh, id)
	delete(r.docs, id)
	delete(r.dirty, id)
	return true
}

// load records the document of a task as it was saved.
func (t *taskDocs) load(id string, d Doc) {
	switch {
	case !model.IsTaskDoc(id):
	case d.Value.IsAbsent():
		t.deleted = append(t.deleted, id)
	default:
		t.there[id] = true
	}
}

// save records that a document is part of a checkpoint.
func (t *taskDocs) save(id string, d Doc) {
	if d.Value.IsAbsent() && model.IsTaskDoc(id) {
		t.deleted = append(t.deleted, id)
	}
}

// forgetTasks drops the records of deleted tasks that a saved mark covers. They are needed while the log is applied to an
// older mark.
func (r *Replica) forgetTasks(mark uint64) {
	kept := r.tasks.deleted[:0]
	for _, id := range r.tasks.deleted {
		switch d, known := r.docs[id]; {
		case !known || !d.Value.IsAbsent():
		case d.Seq > mark || r.dirty[id]:
			kept = append(kept, id)
		default:
			delete(r.docs, id)
		}
	}
	clear(r.tasks.deleted[len(kept):])
	r.tasks.deleted = kept
}
