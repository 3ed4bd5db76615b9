package host

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// firstOf returns the beginning of a mirror whose questions computed answers, and the values that it has passed on, which are read when nothing runs.
func firstOf(t *testing.T, computed func(ctx context.Context, space, document string) (bool, error)) (f *firstValue, passed *[]string) {
	t.Helper()
	passed = new([]string)
	l := &loop{cfg: &Config{Computed: computed}, beside: func(f func()) { go f() }}
	return &firstValue{loop: l, ref: Ref{Space: "there", Doc: "n"}, ctx: t.Context(), deliver: func(_ Ref, m mirrored) {
		*passed = append(*passed, m.value.String())
	}}, passed
}

// What arrives when the time of a question is just over comes last: the absence is not passed on after it.
func TestMirror_AnAbsenceIsNotPassedOnAfterAValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returns := make(chan struct{})
		f, passed := firstOf(t, func(ctx context.Context, _, _ string) (bool, error) {
			<-ctx.Done()
			<-returns
			return false, nil
		})
		f.take(history.Change{})
		time.Sleep(computing + time.Second)
		f.take(history.Change{Value: model.Int(7), Revision: 1})
		close(returns)
		synctest.Wait()
		if want := []string{"7"}; !slices.Equal(*passed, want) {
			t.Errorf("passed on: %v, want %v", *passed, want)
		}
	})
}

// A store that has gone back may have lost what was computed: the owner is asked again. A document that was deleted is absent at once.
func TestMirror_AnAbsenceIsHeldBackAgainWhenTheStoreHasGoneBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		f, passed := firstOf(t, func(ctx context.Context, _, _ string) (bool, error) {
			n++
			<-ctx.Done()
			return false, nil
		})
		f.take(history.Change{Value: model.Int(7), Revision: 5})
		f.take(history.Change{Revision: 6})
		f.take(history.Change{Value: model.Int(8), Revision: 7})
		f.take(history.Change{Rewound: true})
		synctest.Wait()
		if want := []string{"7", "absent", "8"}; n != 1 || !slices.Equal(*passed, want) {
			t.Errorf("passed on: %v after %d questions, want %v after 1", *passed, n, want)
		}
		f.take(history.Change{Value: model.Int(7), Revision: 5})
		time.Sleep(2 * computing)
		if want := []string{"7", "absent", "8", "7"}; !slices.Equal(*passed, want) {
			t.Errorf("at the end passed on: %v, want %v", *passed, want)
		}
	})
}
