package replica

import (
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// office is a replica of an owner, and what it has saved.
type office struct {
	*testing.T
	*Replica
}

func newOffice(t *testing.T) *office {
	o := &office{T: t, Replica: New(home)}
	o.apply(&model.Commit{Version: model.CommitVersion, Space: home, Runtime: "w1", Takeover: true})
	return o
}

func (o *office) apply(c *model.Commit) {
	o.Helper()
	if _, err := o.Apply(o.Seq+1, c); err != nil {
		o.Fatal(err)
	}
}

var taskDoc = model.TaskDoc("work", "k")

// adopt is a commit of the owner that gives the document of the task a value, absent to delete it.
func (o *office) adopt(v model.Value) {
	o.Adopt(o.Seq+1, &model.Commit{}, map[string]model.Value{taskDoc: v})
}

// foreign is a commit of another runtime.
func (o *office) foreign(v model.Value) {
	o.Helper()
	o.apply(&model.Commit{Txs: []model.Tx{{Writes: []model.Write{{Doc: taskDoc, Value: v, Delete: v.IsAbsent()}}}}})
}

// saved returns what a checkpoint has of the task: "value", "marker" or nothing.
func (o *office) saved() string {
	o.Helper()
	c, err := o.Checkpoint()
	if err != nil {
		o.Fatal(err)
	}
	var list []string
	for i := range c.Docs {
		if c.Docs[i].Doc == taskDoc {
			list = append(list, map[bool]string{true: "value", false: "marker"}[c.Docs[i].Data != nil])
		}
	}
	return strings.Join(list, " ")
}

var gone = model.Value{}

// A task that the owner has begun and ended between two checkpoints was never saved: nothing is saved of its end.
func TestTaskDocs_OneBetweenTwoCheckpointsIsNotSaved(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.adopt(model.Int(1))
	o.adopt(model.Int(2))
	o.adopt(gone)
	if got := o.saved(); got != "" || len(o.docs) != 0 {
		t.Errorf("saved %q, known %v", got, o.docs)
	}
	o.adopt(gone) // begun and ended in one commit
	if got := o.saved(); got != "" || len(o.docs) != 0 {
		t.Errorf("saved %q, known %v", got, o.docs)
	}
}

// What was saved is deleted in the saved state, and forgotten when that is saved.
func TestTaskDocs_OneThatWasSavedHasAMarkerAndIsForgotten(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.adopt(model.Int(1))
	if got := o.saved(); got != "value" {
		t.Errorf("saved %q", got)
	}
	before := o.Seq
	o.adopt(gone)
	if got := o.saved(); got != "marker" {
		t.Errorf("saved %q", got)
	}
	o.MarkStored(model.MarkPosition{Seq: before, Rev: 5})
	if len(o.docs) != 1 {
		t.Error("it is forgotten before its mark is saved")
	}
	o.MarkStored(model.MarkPosition{Seq: o.Seq, Rev: 6})
	if len(o.docs) != 0 || len(o.tasks.deleted) != 0 {
		t.Errorf("it is known: %v", o.docs)
	}
}

// A checkpoint that could not be saved loses no marker.
func TestTaskDocs_AMarkerThatCouldNotBeSavedIsInTheNextCheckpoint(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.adopt(model.Int(1))
	o.saved()
	o.adopt(gone)
	c, err := o.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	o.MarkUnsaved(c)
	o.MarkStored(model.MarkPosition{Seq: o.Seq, Rev: 6}) // of another one
	if got := o.saved(); got != "marker" {
		t.Errorf("saved %q", got)
	}
}

// An earlier owner may have saved a task, or be about to: its end is saved, however soon it comes.
func TestTaskDocs_OneOfAnotherOwnerHasAMarker(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(o *office){ // any order: each on its own
		"another runtime has begun it": func(o *office) { o.foreign(model.Int(1)) },
		"another owner was there in between": func(o *office) {
			o.adopt(model.Int(1))
			o.apply(&model.Commit{Runtime: "w2", Takeover: true})
			o.apply(&model.Commit{Runtime: "w1", Takeover: true})
		},
		"it was loaded": func(o *office) {
			r, err := Load(home, model.SpaceState{Docs: []model.StateDoc{{Doc: taskDoc, Data: []byte("1"), Seq: 1, Rev: 1}}})
			if err != nil {
				o.Fatal(err)
			}
			o.Replica = r
		},
	} {
		for _, own := range []bool{true, false} {
			o := newOffice(t)
			begin(o)
			if own {
				o.adopt(gone)
			} else {
				o.Seq = max(o.Seq, 1)
				o.foreign(gone)
			}
			if got := o.saved(); got != "marker" {
				t.Errorf("%s, own end %v: saved %q", name, own, got)
			}
		}
	}
}

// The changes are returned once; at first, all tasks that exist.
func TestTaskDocs_ChangesAreToldOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.adopt(model.Int(1))
	want := func(docs ...string) {
		t.Helper()
		if got := o.TaskDocs(); !slices.Equal(got, docs) {
			t.Errorf("told %q, want %q", got, docs)
		}
	}
	want(taskDoc)
	want()
	o.adopt(model.Int(2))
	c := o.Clone()
	o.adopt(model.Int(3))
	want(taskDoc)
	o.adopt(gone)
	want(taskDoc)
	o.adopt(gone)
	want()
	if got := c.TaskDocs(); !slices.Equal(got, []string{taskDoc}) {
		t.Errorf("the copy tells %q", got)
	}
}
