package worker_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/internal/worldtest"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker"
)

// asked is a question about a document of another space, which the test answers.
type asked struct {
	ctx    context.Context
	doc    model.DocumentRef
	answer func(exists bool, err error)
}

// asker answers no question of a worker about documents that the log does not have; the test does.
type asker chan asked

func (q asker) computed(ctx context.Context, name, document string) (exists bool, err error) {
	done := make(chan struct{})
	q <- asked{ctx, model.DocumentRef{Space: name, Document: document}, func(e bool, failed error) { exists, err = e, failed; close(done) }}
	select {
	case <-done:
		return exists, err
	case <-ctx.Done():
		return false, nil
	}
}

const none = `"none"`

// peek is a world in which the document look of "here" is n of "there", "none" if that is absent; it is watched, and the question about n was asked.
func peek(t *testing.T) (a *abroad, look *watched, q asker, first asked) {
	t.Helper()
	a, q = newAbroad(t), make(asker, 100)
	p := book(t)
	err := p.Add(space.NodeSpec{ID: "look", Kind: space.Computation, Output: "look", Run: func(tx *space.Tx) (model.Value, error) {
		if v := tx.GetFrom(a.there, "n"); !v.IsAbsent() {
			return v, nil
		}
		return model.String("none"), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.process(worker.Config{ID: "w1", Programs: worldtest.Always(p), Computed: q.computed}, nil)
	look = a.watch(a.here, "look")
	a.Pass(time.Second)
	select {
	case first = <-q:
	default:
		t.Fatal("the owner was not asked")
	}
	if want := (model.DocumentRef{Space: a.there, Document: "n"}); first.doc != want {
		t.Errorf("asked about %v, want %v", first.doc, want)
	}
	look.want(t, "before there is an answer") // absent, as nothing derived look so far
	return a, look, q, first
}

// want checks what a watch of a document that did not exist at first has delivered.
func (v *watched) want(t *testing.T, when string, want ...string) {
	t.Helper()
	if values, _ := v.seen(); !slices.Equal(values, append([]string{"absent"}, want...)) {
		t.Errorf("%s the watcher has seen %v, want %v after the absent one", when, values, want)
	}
}

// A document of another space that the log does not have is not read as absent before its owner has answered.
func TestMirror_AnAbsenceIsHeldBackUntilTheOwnerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, look, _, first := peek(t)
		first.answer(false, nil)
		a.Pass(time.Second)
		look.want(t, "after the answer that there is none", none)
		a.Send(a.there, "add", "e1")
		a.Pass(time.Second)
		look.want(t, "after the first event", none, "1")
	})
}

// What arrives from the log meanwhile ends the question, and its answer counts no more.
func TestMirror_AValueEndsTheQuestionAboutAnAbsence(t *testing.T) {
	for name, answered := range map[string]bool{"answered": true, "not answered": false} { // any order: each on its own
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, look, q, first := peek(t)
				if answered {
					first.answer(true, nil)
					a.Pass(time.Second)
					look.want(t, "after the answer that there is a value")
				}
				a.Send(a.there, "add", "e1")
				a.Pass(time.Minute)
				look.want(t, "after the first event", "1")
				if first.ctx.Err() == nil || len(q) > 0 {
					t.Errorf("the question has not ended, or there are %d others", len(q))
				}
			})
		})
	}
}

// An owner that does not answer, or a log that does not have what it should, delays the reader by five seconds: two spaces that derive from each other would wait for
// each other otherwise.
func TestMirror_AnAbsenceIsHeldBackForALimitedTime(t *testing.T) {
	for name, answered := range map[string]bool{"answered": true, "not answered": false} { // any order: each on its own
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, look, _, first := peek(t)
				if answered {
					first.answer(true, nil)
				}
				a.Pass(3900 * time.Millisecond)
				look.want(t, "after 4.9 s")
				a.Pass(time.Second)
				look.want(t, "after 5.9 s", none)
			})
		})
	}
}

// A process that leaves commits nothing that follows from an absence of which it does not know.
func TestMirror_AnAbsenceIsNotReadByAProcessThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, look, _, first := peek(t)
		first.answer(false, model.ErrStopped)
		a.Pass(time.Minute)
		look.want(t, "after the answer")
		a.Send(a.there, "add", "e1")
		a.Pass(time.Second)
		look.want(t, "after the first event", "1")
	})
}
