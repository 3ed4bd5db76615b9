package main

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/settlehq/settle"
)

// reminders returns a program whose "plan" has an event sent an hour later.
func reminders() *settle.Program {
	return settle.NewProgram("reminders").
		Handle("plan", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.SendAfter("bob", "remind", time.Hour, nil)
			tx.SendAfter(tx.Space(), "remind", time.Hour, nil)
			return settle.Value{}, nil
		}).
		Handle("remind", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Set("reminded", true)
			return settle.Value{}, nil
		})
}

func TestCancel_OneEventOrAllThatItHasCaused(t *testing.T) {
	t.Parallel()
	started(t, settle.Config{Programs: settle.Always(reminders()), Workers: 1})
	want(t, 0, "p1: handled", "send", "alice", "plan", "--id", "p1", "--wait")
	want(t, 0, "r1: stored", "send", "alice", "remind", "--id", "r1", "--after", "1h")
	want(t, 0, "alice/remind r1: cancelled", "cancel", "r1", "--reason", "not needed")
	want(t, 1, "alice/remind r1 had ended before: cancelled, not needed", "cancel", "r1")
	want(t, 1, "alice/plan p1 had ended before: handled", "cancel", "p1")
	want(t, 0, "bob/remind alice:1: | :0: cancelled | alice/remind alice:1: | :1: cancelled", "cancel", "p1", "--tree")
	want(t, 1, "there is nothing to cancel: every event has ended", "cancel", "p1", "--tree")
	want(t, 1, "no event", "cancel", "nobody")
	want(t, 0, "2 cancelled", "tree", "p1")
	want(t, 0, "not needed", "receipts", "alice", "--outcome", "cancelled")
	want(t, 0, "nothing waits for its time in space alice", "timers", "alice")
}

// Two events of a tree are queued behind a head that blocks: both are marked before the command waits,
// so neither is handled once the head has returned, and the command reports both.
func TestCancel_ATreeMarksAllBeforeItWaits(t *testing.T) {
	t.Parallel()
	let, at := make(chan struct{}), make(chan struct{}, 1)
	p := settle.NewProgram("fan").
		Handle("fan", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Send("kid", "add", nil)
			tx.Send("kid", "add", nil)
			return settle.Value{}, nil
		}).
		Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Set("added", true)
			return settle.Value{}, nil
		}).
		Handle("hold", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			at <- struct{}{}
			<-let
			return settle.Value{}, nil
		}, settle.Within(-1))
	started(t, settle.Config{Programs: settle.Always(p), Workers: 1})
	open := sync.OnceFunc(func() { close(let) })
	t.Cleanup(open) // before the deployment stops
	want(t, 0, "h1: stored", "send", "kid", "hold", "--id", "h1")
	<-at
	want(t, 0, "f1: handled", "send", "alice", "fan", "--id", "f1", "--wait")
	eventually(t, "2 queued", "tree", "f1")
	wantInVain(t, ":0: not ended yet | :1: not ended yet | of 2 events, 0 were cancelled, 2 are marked and have not ended yet", "cancel", "f1", "--tree", "--reason", "not needed")
	open()
	want(t, 0, "k1: handled", "send", "kid", "add", "--id", "k1", "--wait")
	out := want(t, 0, ":0 | :1 | not needed", "receipts", "kid", "--outcome", "cancelled")
	if n := strings.Count(out, "not needed"); n != 2 {
		t.Errorf("%d of two events were cancelled:\n%s", n, out)
	}
}

func TestSkip_TheFirstEventThatIsInTheWay(t *testing.T) {
	t.Parallel()
	d := counting(t, 1)
	want(t, 1, "no event waits to be handled in space alice", "skip", "alice")
	want(t, 2, `space "a.b"`, "skip", "a.b")
	for _, id := range d.Workers() { // no worker handles anything now
		d.KillWorker(id)
	}
	want(t, 0, "a1: stored", "send", "alice", "add", "--id", "a1")
	want(t, 0, "a2: stored", "send", "alice", "add", "--id", "a2")
	want(t, 1, "the first event of space alice is a1 of stream add, not a2; nothing was skipped", "skip", "alice", "a2")
	want(t, 1, "the event will end as cancelled", "skip", "alice", "a1", "--timeout", "2s")
	if _, err := d.AddWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, 1, "event a1 was cancelled: by an operator", "send", "alice", "add", "--id", "a1", "--wait")
	want(t, 0, "a2: handled", "send", "alice", "add", "--id", "a2", "--wait")
	untilValue(t, "1", "alice", "n")
}

// The handler of the first event hangs, and its limit is an hour.
func TestSkip_TheEventWhoseHandlerHangs(t *testing.T) {
	t.Parallel()
	never, at := make(chan struct{}), make(chan struct{}, 1)
	p := settle.NewProgram("hangs").
		Handle("hang", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			at <- struct{}{}
			<-never
			return settle.Value{}, nil
		}, settle.Within(time.Hour)).
		Handle("add", func(tx *settle.Tx, _ *settle.Event) (settle.Value, error) {
			tx.Set("added", true)
			return settle.Value{}, nil
		})
	started(t, settle.Config{Programs: settle.Always(p), Workers: 1})
	t.Cleanup(func() { close(never) }) // before the deployment stops
	want(t, 0, "h1: stored", "send", "alice", "hang", "--id", "h1")
	want(t, 0, "a1: stored", "send", "alice", "add", "--id", "a1")
	<-at
	want(t, 0, "alice/hang h1: cancelled", "skip", "alice", "--timeout", patience.String())
	want(t, 0, "a1: handled", "send", "alice", "add", "--id", "a1", "--wait")
	if len(at) > 0 {
		t.Error("the handler ran again")
	}
}

func TestSend_ExpiresWhenNobodyHandlesItInTime(t *testing.T) {
	t.Parallel()
	d := counting(t, 1)
	for _, id := range d.Workers() {
		d.KillWorker(id)
	}
	want(t, 2, "--expires -1s lies in the past", "send", "alice", "add", "--expires=-1s")
	want(t, 1, "it expires before its time", "send", "alice", "add", "--after", "1h", "--expires", "1s")
	want(t, 0, "a1: stored", "send", "alice", "add", "--id", "a1", "--expires", "1ms")
	if _, err := d.AddWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, 1, "event a1 expired: it was not to be handled after", "send", "alice", "add", "--id", "a1", "--wait")
	want(t, 0, "a2: handled", "send", "alice", "add", "--id", "a2", "--expires", "1h", "--wait")
}
