package history_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/receipts"
)

func TestDeadLetters_AreTheFailedAndRefusedEventsOnceEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		first, second := w.Coordinator(), w.Coordinator()
		w.send("a", "good", nil)
		w.send("a", "bad", ends("fail"))
		w.send("b", "worse", ends("panic"))
		w.send("a", "follow", script(to("a", ends("fail")), to("b", ends("fail"))))
		w.Send("a", "unknown", "unhandled", `{"n":1}`)
		w.Send("a", "do", "unreadable", "{ not JSON")
		w.rest()
		tree := w.tree(history.TreeQuery{Event: "follow"})
		want := []string{
			`a do ` + tree.Root.Caused[0].Event + ` failed {"end":"fail"}`,
			`a do bad failed {"end":"fail"}`,
			`a do unreadable refused { not JSON`,
			`a unknown unhandled refused {"n":1}`,
			`b do ` + tree.Root.Caused[1].Event + ` failed {"end":"fail"}`,
			`b do worse failed {"end":"panic"}`,
		}
		if got := w.letters(); !slices.Equal(got, want) {
			t.Errorf("the dead letters are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if first.DeadLetters() != 6 || second.DeadLetters() != 6 {
			t.Errorf("%d and %d were buried", first.DeadLetters(), second.DeadLetters())
		}
		found, err := history.DeadLetters(t.Context(), w.Client, "b", 0, 1) // the oldest
		if err != nil || len(found) != 1 || found[0].Event != "worse" || found[0].Commit == 0 || found[0].Lane == 0 ||
			found[0].Ended.IsZero() || found[0].Error != "handler of do panicked: it must panic" {
			t.Errorf("of space b: %+v, %v", found, err)
		}
	})
}

func TestDeadLetters_APayloadThatIsTooLargeForALetterStaysInTheLane(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		payload := `{"end":"until-repaired","x":"` + strings.Repeat("x", w.Server.MaxPayload()-60) + `"}`
		w.Send("a", "do", "large", payload)
		w.rest()
		if found := w.dead(""); len(found) != 1 || found[0].Lost == "" || found[0].Bytes() != nil {
			t.Fatalf("the letter is %+v", found)
		}
		w.Send("a", "repair", "m1")
		w.redrive("a", "large", "large:r1", false)
		w.rest()
		w.wantShape(history.TreeQuery{Event: "large"}, "a:failed(redrive a:handled)")
		if m, _ := w.Server.FindEvent("a", "do", "large:r1"); string(m.Payload) != payload {
			t.Errorf("the event was sent again with %d bytes", len(m.Payload))
		}
	})
}

// redrive redrives an event, and checks the new id and whether it is a duplicate.
func (w *world) redrive(space, id, want string, again bool) {
	w.Helper()
	r, result, err := history.Redrive(context.Background(), w.Client, space, "", id)
	if err != nil || r.Event != want || result.Duplicate != again {
		w.Errorf("redrive %s: %+v, %+v, %v; want %s, duplicate %t", id, r, result, err, want, again)
	}
}

func TestRedrive_IsOneEventAndItsEndIsShown(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "e1", ends("until-repaired"))
		w.rest()
		view := func() string {
			var list []string
			for _, d := range w.dead("a") {
				text := d.Event
				if r := d.Redriven; r != nil {
					text += fmt.Sprintf(" -> %s %s %s", r.Event, r.State, r.Error)
				}
				list = append(list, strings.TrimSpace(text))
			}
			return strings.Join(list, ", ")
		}
		if got := view(); got != "e1" {
			t.Errorf("the dead letters are %s", got)
		}
		w.redrive("a", "e1", "e1:r1", false)
		w.redrive("a", "e1", "e1:r1", true)
		w.rest()
		w.redrive("a", "e1", "e1:r1", true) // it failed again, so that one must be redriven
		if got, want := view(), "e1 -> e1:r1 failed not repaired, e1:r1"; got != want {
			t.Errorf("the dead letters are %s, want %s", got, want)
		}
		w.Send("a", "repair", "m1")
		w.redrive("a", "e1:r1", "e1:r2", false)
		w.rest()
		if got, want := view(), "e1 -> e1:r1 failed not repaired, e1:r1 -> e1:r2 handled"; got != want {
			t.Errorf("the dead letters are %s, want %s", got, want)
		}
		tree := w.wantShape(history.TreeQuery{Event: "e1"}, "a:failed(redrive a:failed(redrive a:handled))")
		of := w.tree(history.TreeQuery{Event: "e1:r2"})
		if want := []history.EventRef{tree.Root.Caused[0].EventRef, tree.Root.EventRef}; !slices.Equal(of.CausedBy, want) {
			t.Errorf("the event was caused by %v, want %v", of.CausedBy, want)
		}
		if n := len(w.Server.ReadLane("a", 0, 100)); n != 4 {
			t.Errorf("%d events were sent, want e1, r1, the repair and r2", n)
		}
	})
}

func TestRedrive_OfAReleasedEventAndOfAFollowUpHandlesThemWhereTheyWere(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "e1", script(to("b", ends("until-repaired")), to("a", ends("until-repaired"))))
		w.rest()
		for _, name := range []string{"a", "b"} {
			w.Send(name, "repair", "m1")
			found := w.dead(name)
			if len(found) != 1 {
				t.Fatalf("dead letters of %s: %+v", name, found)
			}
			w.redrive(name, found[0].Event, found[0].Event+":r1", false)
		}
		w.rest()
		w.wantShape(history.TreeQuery{Event: "e1"}, "a:handled(b:failed(redrive b:handled) a:failed(redrive a:handled))")
	})
}

func TestRedrive_AnEventWithoutALetterIsAnError(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "good", nil)
		w.Send("a", "unknown", "twice")
		w.Send("a", "unhandled", "twice")
		w.rest()
		var none *history.NoLetterError
		if _, _, err := history.Redrive(t.Context(), w.Client, "a", "", "good"); !errors.As(err, &none) || !strings.Contains(err.Error(), "settle tree good") {
			t.Errorf("redrive: %v", err)
		}
		var several *history.AmbiguousError
		if _, _, err := history.Redrive(t.Context(), w.Client, "a", "", "twice"); !errors.As(err, &several) || !strings.Contains(err.Error(), "select one by the stream") {
			t.Errorf("redrive: %v", err)
		}
		if r, _, err := history.Redrive(t.Context(), w.Client, "a", "unhandled", "twice"); err != nil || r.Stream != "unhandled" {
			t.Errorf("redrive: %v, %v", r, err)
		}
		var name *model.NameError
		if _, _, err := history.Redrive(t.Context(), w.Client, "a.b", "", "twice"); !errors.As(err, &name) {
			t.Errorf("redrive: %v", err)
		}
	})
}

// A dismissed letter stays where it was, with the first reason given, and can still be redriven.
func TestDismiss_KeepsTheLetterWithItsReasonAndAllowsARedrive(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "e1", ends("until-repaired"))
		w.rest()
		for i, reason := range []string{"a duplicate", "another reason"} {
			if r, again, err := history.Dismiss(t.Context(), w.Client, "a", "", "e1", reason); err != nil || r.Event != "e1" || again != (i > 0) {
				t.Errorf("dismiss: %v, %t, %v", r, again, err)
			}
		}
		letter := func() history.Dead {
			found := w.dead("a")
			if len(found) != 1 {
				t.Fatalf("the letters are %+v", found)
			}
			return found[0]
		}
		if d := letter(); d.Redriven != nil || d.Dismissed == nil || d.Dismissed.Reason != "a duplicate" {
			t.Errorf("the letter is %+v", d)
		}
		w.Send("a", "repair", "m1")
		w.redrive("a", "e1", "e1:r1", false)
		w.rest()
		if d := letter(); d.Redriven == nil || d.Redriven.State != "handled" || d.Dismissed == nil {
			t.Errorf("the letter is %+v", d)
		}
	})
}

// Two letters may have the same id. What was done about one does not apply to the other.
func TestDismiss_IsAboutTheLetterOfOneStream(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.Send("a", "unknown", "twice")
		w.Send("a", "unhandled", "twice")
		w.rest()
		if r, _, err := history.Dismiss(t.Context(), w.Client, "a", "unhandled", "twice", ""); err != nil || r.Stream != "unhandled" {
			t.Errorf("dismiss: %v, %v", r, err)
		}
		found := w.dead("a")
		if len(found) != 2 {
			t.Fatalf("the letters are %+v", found)
		}
		for _, d := range found {
			if (d.Dismissed != nil) != (d.Stream == "unhandled") {
				t.Errorf("the letter of stream %s is dismissed: %+v", d.Stream, d.Dismissed)
			}
		}
	})
}

// Any NATS client can put an event into a lane whose id leaves no room for the id of a note.
func TestDeadLetters_ALongestIDHidesNothing(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		const longest = model.MaxEventIDLen + 20
		ids := []string{"short", strings.Repeat("x", longest-4), strings.Repeat("y", longest), model.EventIDOf("alice", strings.Repeat("y", longest))}
		for _, id := range ids {
			w.Send("a", "unknown", id)
		}
		w.rest()
		if n := len(w.dead("")); n != len(ids) {
			t.Errorf("%d letters of %d", n, len(ids))
		}
	})
}

func TestDismiss_RefusesAMissingLetterAndALongReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var none *history.NoLetterError
		if _, _, err := history.Dismiss(t.Context(), w.Client, "a", "", "good", ""); !errors.As(err, &none) {
			t.Errorf("dismiss: %v", err)
		}
		var name *model.NameError
		if _, _, err := history.Dismiss(t.Context(), w.Client, "a.b", "", "good", ""); !errors.As(err, &name) {
			t.Errorf("dismiss: %v", err)
		}
		if _, _, err := history.Dismiss(t.Context(), w.Client, "a", "", "good", strings.Repeat("x", 501)); err == nil || !strings.Contains(err.Error(), "at most 500") {
			t.Errorf("dismiss: %v", err)
		}
	})
}

// Every kind of event that cannot be handled is in a lane. Later events are handled in order, and all of the
// bad ones are visible afterwards.
func TestPoison_NeverWedgesALaneAndNeverDisappears(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			deployed(t, func(t *testing.T, w *world) {
				rng := rand.New(rand.NewPCG(seed, 3))
				var want, bad []string
				for i := range 150 {
					id := fmt.Sprint("e", i)
					switch kind := rng.IntN(8); kind {
					case 0, 1, 2:
						w.send("a", id, nil)
						want = append(want, id+" handled")
						continue
					case 3:
						w.Send("a", "unknown", id)
						want = append(want, id+" refused")
					case 4:
						w.Send("a", "do", id, "{")
						want = append(want, id+" refused")
					default:
						w.send("a", id, ends([]string{"fail", "panic", "transient"}[kind-5]))
						want = append(want, id+" failed")
					}
					bad = append(bad, id)
				}
				for range 60 {
					w.rest() // transient errors are retried, with pauses
				}
				if got := w.endings("a"); !slices.Equal(got, want) {
					t.Errorf("ended\n%v, want\n%v", got, want)
				}
				var dead []string
				for _, line := range w.letters() {
					dead = append(dead, strings.Fields(line)[2])
				}
				slices.Sort(dead)
				slices.Sort(bad)
				if !slices.Equal(dead, bad) {
					t.Errorf("dead letters about\n%v, want\n%v", dead, bad)
				}
			})
		})
	}
}

// endings lists the events of a space and how they ended, in log order.
func (w *world) endings(space string) (list []string) {
	w.Helper()
	for _, c := range w.Commits(space) {
		for _, tx := range c.Txs {
			if _, ok := receipts.Stream(tx.By); ok && tx.Receipt != nil {
				list = append(list, fmt.Sprint(tx.Receipt.Event, " ", tx.Receipt.Outcome))
			}
		}
	}
	return list
}

// A redrive is not repeated after the lane has forgotten it: the note stays.
func TestRedrive_IsNotRepeatedAfterTheLaneHasForgottenIt(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "e1", script(to("b", ends("until-repaired")), to("b", nil)))
		w.rest()
		bad := w.tree(history.TreeQuery{Event: "e1"}).Root.Caused[0].Event
		w.Send("b", "repair", "m1")
		w.redrive("b", bad, bad+":r1", false)
		w.rest()
		tree := w.wantShape(history.TreeQuery{Event: "e1"}, "a:handled(b:failed(redrive b:handled) b:handled)")
		w.Pass(w.Client.Horizon() + 2*time.Hour)
		w.send("a", "later", nil) // the newest event of a lane stays in it
		w.send("b", "later", nil)
		w.Pass(10 * time.Minute)
		if _, there := w.Server.FindEvent("b", "do", bad+":r1"); there {
			t.Fatal("the lane has not forgotten the event that was sent again")
		}
		w.redrive("b", bad, bad+":r1", true)
		if n := len(w.Server.ReadLane("b", 0, 100)); n != 1 {
			t.Errorf("the lane has %d events, want only the last one", n)
		}
		if found := w.dead(""); len(found) != 1 || found[0].Redriven == nil || found[0].Redriven.State != "forgotten" {
			t.Errorf("the dead letter is %+v", found)
		}
		w.wantMissing(history.TreeQuery{Event: "e1"})
		leaf := w.wantShape(history.TreeQuery{Event: tree.Root.Caused[1].Event}, "b:forgotten")
		if !leaf.Settled || leaf.CausedBy[0] != tree.Root.EventRef {
			t.Errorf("the tree is %+v", leaf)
		}
	})
}

func TestDeadLetters_HaveTheNumberOfAttempts(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "e1", ends("transient"))
		for range 6 {
			w.rest()
		}
		if found := w.dead(""); len(found) != 1 || found[0].Attempts != 5 {
			t.Errorf("the letters are %+v; want 5 attempts", found)
		}
		if n := w.tree(history.TreeQuery{Event: "e1"}).Root.Attempts; n != 5 {
			t.Errorf("the tree has %d attempts, want 5", n)
		}
	})
}
