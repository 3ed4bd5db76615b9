package test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/status"
	"github.com/settlehq/settle/worker"
)

// alone starts a deployment on a server that can go back, and returns it with its only worker.
func alone(t *testing.T, cfg settle.Config) (*deployment, *worker.Worker) {
	t.Helper()
	cfg.Workers, cfg.Idle, cfg.Bus.Partitions = -1, 10*time.Millisecond, 1
	d := deploy(t, cfg)
	b := connect(t, d)
	t.Cleanup(b.Close)
	w, err := settle.StartWorker(testContext(t), b, settle.WorkerConfig{
		ID: "w1", Programs: cfg.Programs, Hosted: cfg.Hosted, Options: worker.Options{Heartbeat: d.cfg.Heartbeat, MemberTTL: d.cfg.MemberTTL, Checkpoint: d.cfg.Checkpoint, Idle: cfg.Idle},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, w.Stop) })
	return d, w
}

// The states of spaces go back, and the logs keep the later commits: nothing is lost, by running workers
// and by new ones. Handled events are not handled again, and derived documents are brought up to date.
func TestRewind_StateAloneGoesBack(t *testing.T) {
	t.Parallel()
	for name, anew := range map[string]bool{"under live workers": false, "under a worker that starts": true} {
		t.Run(name, func(t *testing.T) {
			m, d, said := overheard(t)
			c := d.Client()
			sendAll(t, c, 1, 20)
			eventually(t, c, "a", "departed", 20)
			eventually(t, c, "b", "total", 20)
			old := m.copy()
			sendAll(t, c, 21, 30)
			eventually(t, c, "a", "departed", 30)
			eventually(t, c, "b", "total", 30)
			isSaved(t, d.Bus(), "a")
			isSaved(t, d.Bus(), "b")
			if anew {
				d.KillWorker(d.Workers()[0])
			}
			m.goBackOnly(old, "_STATE_")
			if anew {
				if _, err := d.AddWorker(testContext(t)); err != nil {
					t.Fatal(err)
				}
			} else {
				said.until(t, "KV_SETTLE_STATE_"+partitionOf(d, "a"))
			}
			sendAll(t, c, 25, 35) // five of them are new
			eventually(t, c, "a", "departed", 35)
			eventually(t, c, "b", "arrived", 35)
			eventually(t, c, "a", "total", 35)
			eventually(t, c, "b", "total", 35)
			once(t, readLog(t, d.Bus(), "a"))
			once(t, readLog(t, d.Bus(), "b"))
			isSaved(t, d.Bus(), "a")
			isSaved(t, d.Bus(), "b")
		})
	}
}

// isSaved waits until the state of a space is saved up to the end of its log.
func isSaved(t *testing.T, b *bus.Bus, space string) {
	t.Helper()
	persistently(testContext(t), t, "see that "+space+" is saved", func(ctx context.Context) error {
		st, err := b.LoadState(ctx, space)
		if err != nil {
			return err
		}
		head, err := b.Head(ctx, space)
		if err == nil && st.Mark.Seq < head {
			err = errNotThere
		}
		return err
	})
}

// The states of spaces go back behind the remaining log: a live worker refuses the spaces that need purged
// entries, names them, keeps their events, and serves the others. When the states are restored, it resumes
// without help.
func TestRewind_StateAloneGoesBackBehindAPurgedLog(t *testing.T) {
	t.Parallel()
	m := startTimeMachine(t)
	cfg := m.config()
	d, w := alone(t, cfg)
	c := d.Client()
	send := func(space, id string) {
		persistently(testContext(t), t, "send "+id, func(ctx context.Context) error {
			_, err := c.Send(ctx, settle.Outgoing{Space: space, Stream: "arrive", ID: settle.ID(id)})
			return err
		})
	}
	send("still", "one")
	eventually(t, c, "still", "arrived", 1)
	sendAll(t, c, 1, 4)
	eventually(t, c, "a", "departed", 4)
	eventually(t, c, "b", "arrived", 4)
	isSaved(t, d.Bus(), "a")
	isSaved(t, d.Bus(), "still")
	old := m.copy()
	sendAll(t, c, 5, 9)
	eventually(t, c, "a", "departed", 9)
	eventually(t, c, "b", "arrived", 9)
	for _, space := range []string{"a", "b"} {
		isSaved(t, d.Bus(), space)
		// A worker does this a minute later.
		persistently(testContext(t), t, "purge the log of "+space, func(ctx context.Context) error {
			head, err := d.Bus().Head(ctx, space)
			if err == nil {
				err = d.Bus().PurgeLog(ctx, space, head)
			}
			return err
		})
	}
	newer := m.copy()
	m.goBackOnly(old, "_STATE_")
	sendAll(t, c, 10, 12)
	send("still", "two")
	eventually(t, c, "still", "arrived", 2)
	refused := func(space string) bool {
		return slices.ContainsFunc(w.Figures().Losses, func(l status.Loss) bool { return l.Space == space })
	}
	until(t, func() bool { return refused("a") })
	if losses := w.Figures().Losses; refused("still") || refused("") {
		t.Errorf("the worker refuses %+v", losses)
	}
	m.goBackOnly(newer, "_STATE_")
	eventually(t, c, "a", "departed", 12)
	eventually(t, c, "b", "arrived", 12)
	until(t, func() bool { return !refused("a") && !refused("b") })
	once(t, readLog(t, d.Bus(), "a"))
	once(t, readLog(t, d.Bus(), "b"))
}

// The programs go back: a live worker runs and reports the restored ones. A space whose version is gone runs
// its former version; a space whose first program is gone waits, with its events. After another deployment of
// the same program everything continues, and every event is handled once.
func TestRewind_ProgramsAloneGoBack(t *testing.T) {
	t.Parallel()
	m := startTimeMachine(t)
	cfg := m.config()
	said := newRewinds()
	cfg.Programs, cfg.Hosted, cfg.Bus.Logger = nil, true, said.logger()
	d, _ := alone(t, cfg)
	u := &upgrade{t: t, d: d}
	one := u.publish(edition("one", nil))
	deploy := func(spaces string, to program.Target) {
		t.Helper()
		persistently(testContext(t), t, "decide about "+spaces, func(ctx context.Context) error {
			_, err := program.Decide(ctx, d.Bus(), spaces, func(program.Rule) (program.Choice, error) {
				return program.Choice{Target: to, At: time.Unix(1, 0)}, nil
			})
			return err
		})
	}
	n := map[string]int{}
	send := func(space string) string {
		t.Helper()
		n[space]++
		id := "e" + strconv.Itoa(n[space])
		persistently(testContext(t), t, "send "+id, func(ctx context.Context) error {
			_, err := d.Client().Send(ctx, settle.Outgoing{Space: space, Stream: "add", ID: settle.ID(id), Payload: map[string]int{"n": n[space]}})
			return err
		})
		return id
	}
	handledBy := func(space, id string) string {
		t.Helper()
		rc, err := d.Client().Space(space).Await(testContext(t), "add", settle.ID(id))
		if err != nil || rc.Outcome != model.Handled {
			t.Fatalf("%s of %s: %+v, %v", id, space, rc, err)
		}
		text, _ := rc.Result.Get("edition").AsString()
		return text
	}
	untilBy := func(space, want string) {
		t.Helper()
		until(t, func() bool { return handledBy(space, send(space)) == want })
	}
	deploy("s1", one)
	untilBy("s1", "one")
	old := m.copy()
	two := u.publish(edition("two", nil))
	deploy("s1", two)
	deploy("s2", two)
	untilBy("s1", "two")
	untilBy("s2", "two")
	m.goBackOnly(old, "_PROGRAMS")
	said.until(t, "KV_SETTLE_PROGRAMS")
	untilBy("s1", "one")
	waits := send("s2")
	untilBy("s1", "one")
	if rc, err := d.Client().Space("s2").FindReceipt(testContext(t), "add", settle.ID(waits)); rc != nil {
		t.Errorf("an event of a space without a program has the receipt %+v, %v", rc, err)
	}
	again := u.publish(edition("two", nil))
	if again != two {
		t.Errorf("the same program is %v, and was %v", again, two)
	}
	deploy("s2", two)
	deploy("s1", two)
	if by := handledBy("s2", waits); by != "two" {
		t.Errorf("what had waited was handled by %s", by)
	}
	untilBy("s1", "two")
	untilBy("s2", "two")
	once(t, readLog(t, d.Bus(), "s1"))
	once(t, readLog(t, d.Bus(), "s2"))
}
