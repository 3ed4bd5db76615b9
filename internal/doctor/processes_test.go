package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/bus/survey"
	"github.com/settlehq/settle/coordinator"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/status"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// well returns two healthy workers with a partition each.
func well() *fleet.Fleet {
	f := &fleet.Fleet{At: noon}
	for i, id := range []string{"w1", "w2"} {
		f.Workers = append(f.Workers, fleet.Member{ID: id, State: fleet.Here, Weight: 1, Holds: []int{i}, Figures: &status.Figures{Worker: id, Binary: "abc"}})
		f.Partitions = append(f.Partitions, fleet.Partition{Number: i, Owner: id, Served: []string{id}, Events: 3, Oldest: noon.Add(-time.Second)})
	}
	return f
}

// standing adds a space that has been stuck for a duration.
func standing(age time.Duration, cause string) func(*fleet.Fleet) {
	return func(f *fleet.Fleet) {
		f.StuckCount++
		f.Stuck = append(f.Stuck, fleet.Stuck{Worker: "w1", Stuck: status.Stuck{
			Space: "cart", Stream: "pay", Event: "p1", Since: noon.Add(-age), Cause: cause, Reason: "its handler has been running since 10:02:00 UTC",
		}})
	}
}

// late adds n spaces whose timers are late by a duration.
func late(age time.Duration, spaces int) func(*fleet.Fleet) {
	return func(f *fleet.Fleet) {
		g := f.Workers[0].Figures
		g.Now, g.LateCount = noon, spaces
		g.Late = []status.Late{{Space: "clock", Waiting: 3, Since: noon.Add(-age)}}
	}
}

// missed adds missed times of a job, the first a duration ago.
func missed(age time.Duration) func(*fleet.Fleet) {
	return func(f *fleet.Fleet) {
		f.Workers[0].Figures.Now = noon
		f.Workers[0].Figures.Missed = []status.Missed{{Space: "clock", Cron: "hourly", Times: 9, At: noon.Add(-age)}}
	}
}

// queued adds n spaces that wait to be loaded.
func queued(n, limit int) func(*fleet.Fleet) {
	return func(f *fleet.Fleet) {
		g := f.Workers[1].Figures
		g.Queued, g.Next, g.Awake, g.Limit = n, []string{"a", "b"}, 7, limit
	}
}

// watches makes a worker serve n of at most 100 watches.
func watches(open int, refused uint64) func(*fleet.Fleet) {
	return func(f *fleet.Fleet) {
		f.Workers[0].Figures.Watches = status.Watches{Open: open, Limit: 100, Refused: refused, Space: "cart", Document: "n", Most: 60}
	}
}

// failingTask makes a worker report an action whose tasks fail.
func failingTask(a status.FailingAction) func(*fleet.Fleet) {
	a.Space, a.Action, a.Key, a.Error, a.At = "cart", "charge", "o1", "closed", noon
	return func(f *fleet.Fleet) {
		g := f.Workers[0].Figures
		g.Failing = append(g.Failing, a)
		g.FailingCount++
	}
}

var fleets = []struct {
	name  string
	but   func(*fleet.Fleet)
	level Level
	says  string // parts of the report, separated by |
	not   string // parts that it must not contain
}{
	{"all is well", func(*fleet.Fleet) {}, OK, "stuck spaces none for longer than 30s|backlog no event waits for longer than 30s", "program files|clock of worker"},
	{"two program files", func(f *fleet.Fleet) { f.Workers[1].Figures.Binary = "def" }, Warning, "versions workers run different program files: abc (w1), def (w2)", ""},
	{"a partition whose lane was lost", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Losses = []status.Loss{{Kind: model.LossOfLane, Partition: 3, Known: 90, Since: time.Unix(0, 0).UTC(), Reason: "the lane ends at 0"}}
	}, Failure, "✗ log and lanes worker w1 refuses partition 3 since 1970-01-01T00:00:00Z: the lane ends at 0|`settle accept-loss` lists what is lost", ""},
	{"a space whose state was lost", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Losses = []status.Loss{{Kind: model.LossOfState, Space: "cart", Reason: "no checkpoint"}}
	}, Failure, "refuses space cart since|This cannot be accepted", "accept-loss"},
	{"many spaces whose logs were lost", func(f *fleet.Fleet) {
		for range 7 {
			f.Workers[0].Figures.Losses = append(f.Workers[0].Figures.Losses, status.Loss{Kind: model.LossOfLog, Space: "cart"})
		}
	}, Failure, "2 more are refused", ""},
	{"a store that has gone back", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Rewound = model.Rewind{At: time.Unix(0, 0).UTC(), Stream: "SETTLE_LANE_0", Known: 90, Found: "it ends at 80"}
	}, Warning, "! log and lanes the store has gone back to an earlier state; worker w1 noticed it at 1970-01-01T00:00:00Z: stream SETTLE_LANE_0 was known up to 90, and it ends at 80", ""},
	{"a store that has gone back, as a coordinator knows", func(f *fleet.Fleet) {
		back := []model.Rewind{{At: time.Unix(0, 0).UTC(), Stream: "SETTLE_LOG_0", Known: 90, Found: "it ends at 80"}}
		f.Coordinators = []fleet.Member{{ID: "c1", State: fleet.Here, Noticed: &coordinator.Figures{Rewinds: back, RewindCount: 3}}}
	}, Warning, "! log and lanes the store has gone back to an earlier state; coordinator c1 noticed it at 1970-01-01T00:00:00Z: stream SETTLE_LOG_0 was known up to 90, and it ends at 80; and 2 more|until it is started again", "worker w1 noticed"},
	{"a coordinator that has noticed nothing", func(f *fleet.Fleet) {
		f.Coordinators = []fleet.Member{{ID: "c1", State: fleet.Here, Noticed: &coordinator.Figures{}}}
	}, OK, "", "gone back|denied"},
	{"a coordinator that is denied something", func(f *fleet.Fleet) {
		f.Coordinators = []fleet.Member{{ID: "c1", State: fleet.Here, Noticed: &coordinator.Figures{Denied: "Publish to x"}}}
	}, Warning, "! permissions coordinator c1 was denied within the last ten minutes: Publish to x|permissions of the role coordinator", "worker w1 was denied"},
	{"a worker that is denied something", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Denied = "Publish to x"
	}, Warning, "! permissions worker w1 was denied within the last ten minutes: Publish to x|permissions of the role worker", "coordinator c1"},
	{"one that does not tell", func(f *fleet.Fleet) { f.Workers[1].Figures.Binary = "" }, OK, "", "program files"},
	{"a clock that is ten minutes off", func(f *fleet.Fleet) { f.Workers[1].Ahead = -10 * time.Minute }, Failure, "✗ clock the clock of worker w2 is 10m0s behind this machine's", ""},
	{"a clock that is two seconds off", func(f *fleet.Fleet) { f.Workers[1].Ahead = 2 * time.Second }, Warning, "! clock the clock of worker w2 is 2s ahead of this machine's", ""},
	{"a clock that is nearly right", func(f *fleet.Fleet) { f.Workers[1].Ahead = 900 * time.Millisecond }, OK, "", "clock of worker"},
	{"a full store", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Unstored, f.Workers[1].Figures.Unstored = "insufficient storage", "the same"
	}, Failure, "✗ storage worker w1 could not store something within the last minute: insufficient storage|restart the NATS server as well when there is room|After a limit that was reached, Settle goes on by itself", "the same"},
	{"a lane without room", func(f *fleet.Fleet) {
		full := []model.FullLane{{Partition: 1, Space: "cart", Since: time.Unix(0, 0).UTC(), Waiting: 1024}}
		f.Coordinators = []fleet.Member{{ID: "c1", State: fleet.Here, Full: full}, {ID: "c2", State: fleet.Here, Full: full}}
	}, Warning, "! coordinator c1 finds no room in the lane of partition 1 since 1970-01-01T00:00:00Z: 1024 events from other spaces wait, the first one for space cart|Raise the limit", "c2 has found"},
	{"a lane without room, of a coordinator that has ended", func(f *fleet.Fleet) {
		f.Coordinators = []fleet.Member{{ID: "c1", State: fleet.Gone, Full: []model.FullLane{{Partition: 1, Space: "cart"}}}}
	}, OK, "", "no room"},
	{"a partition that no worker serves", func(f *fleet.Fleet) { f.Partitions[1].Served = nil }, Warning, "partitions that no worker serves: 1", ""},
	{"a space that stands still for an hour", standing(time.Hour, status.CauseRunning), Failure, "✗ stuck spaces space cart at event p1 of stream pay, on w1, for 1h0m0s: its handler has been running since 10:02:00 UTC|Code that does not return belongs in an action", ""},
	{"a space that stands still for a minute", standing(time.Minute, "gate"), Warning, "! stuck spaces space cart at event p1|See the log of w1", ""},
	{"a space that has just stopped at an old event", func(f *fleet.Fleet) {
		standing(20*time.Second, status.CauseRunning)(f)
		f.Stuck[0].Stored = noon.Add(-time.Hour)
	}, OK, "stuck spaces none for longer than 30s", "cart"},
	{"a space that stands still at an old event", func(f *fleet.Fleet) {
		standing(time.Minute, status.CauseRunning)(f)
		f.Stuck[0].Stored = noon.Add(-time.Hour)
	}, Warning, "! stuck spaces space cart at event p1 of stream pay, on w1, for 1m0s: its handler has been running since 10:02:00 UTC; the event was stored 1h0m0s ago", "✗"},
	{"a space that has just stopped", standing(20*time.Second, status.CauseRunning), OK, "stuck spaces none for longer than 30s", "cart"},
	{"a space that has just been found to have no program", standing(6*time.Second, status.CauseNoProgram), Warning, "space cart at event p1|Deploy a program for it", ""},
	{"many of them", func(f *fleet.Fleet) {
		for range 9 {
			standing(time.Hour, status.CauseNoProgram)(f)
		}
		f.StuckCount = 400
	}, Failure, "395 more stand still|`settle fleet` names the 20 oldest", ""},
	{"a task that is tried again and again", failingTask(status.FailingAction{Attempts: 6, Since: noon.Add(-time.Minute)}), Warning, "! tasks space cart: task o1 of action charge is tried again after 6 failed attempts: closed What follows from its result waits.|Repair what the action calls", "none fails"},
	{"a task that has just begun to fail", failingTask(status.FailingAction{Attempts: 3, Since: noon.Add(-29 * time.Second)}), OK, "✓ tasks none fails", "cart"},
	{"a task that was given up", failingTask(status.FailingAction{Attempts: 3, GivenUp: 1}), Warning, "! tasks space cart: task o1 of action charge was given up after 3 attempts: closed|`settle get cart charge`", "none fails"},
	{"a task that was given up, and whose program knows", failingTask(status.FailingAction{Attempts: 3, GivenUp: 2, Handled: true}), OK, "✓ tasks none fails that its program does not handle; handled within the last hour: space cart: 2 tasks of action charge were given up, the last of them o1", ""},
	{"many actions whose tasks fail", func(f *fleet.Fleet) {
		for range 20 {
			failingTask(status.FailingAction{Attempts: 3, GivenUp: 1})(f)
		}
		f.Workers[0].Figures.FailingCount = 25
	}, Warning, "20 more actions of spaces fail", "none fails"},
	{"handlers that were given up", func(f *fleet.Fleet) { f.Workers[1].Figures.Abandoned = 3 }, Warning, "! given up worker w2 has 3 goroutines in handlers or nodes that were given up and have not returned|At 100, no more is given up|restart the worker", "worker w1 has|No more is given up"},
	{"as many as may be", func(f *fleet.Fleet) { f.Workers[1].Figures.Abandoned = 100 }, Failure, "✗ given up worker w2 has 100 goroutines|No more is given up", "has still to return"},
	{"all have returned", func(f *fleet.Fleet) { f.Workers[1].Figures.Abandoned = 0 }, OK, "✓ given up no handler or node that was given up has still to return", "goroutine"},
	{"computations that do not converge", unsettled(10*time.Second, "a", "sum/x", "b", "b"), Warning, "! convergence space turn, on w1, for 10s: a (sum/x) -> b -> a Each run changes|`settle graph turn` marks the circle; `settle why turn a`", "again and again, for longer"},
	{"a circle over several spaces", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Unsettled = []status.Unsettled{{Space: "north", Nodes: []string{"x"}, Count: 1, Through: []string{"north/x", "south/y"}, Since: noon.Add(-time.Minute)}}
	}, Warning, "! convergence over several spaces, as w1 reports, for 1m0s: north/x -> south/y -> north/x A derived|`settle history north x` shows", "again and again, for longer"},
	{"those whose way round is not known", unsettled(time.Minute), Warning, "on w1, for 1m0s: a, b Each run", ""},
	{"a computation that is not idempotent", differing(1, 1), Warning, "! idempotency space hall, on w1: node dice0 is not idempotent: dice: 1, then 2 A run may be repeated|`settle why hall dice0 --check`", "and 0 more"},
	{"many that are not", differing(7, 3), Warning, "! idempotency space hall and 2 more, on w1: node dice0 is|2 more nodes are not idempotent", "dice5"},
	{"those that have just begun", unsettled(9 * time.Second), OK, "✓ convergence no computations that run again and again", "space turn"},
	{"a backlog", func(f *fleet.Fleet) { f.Partitions[1].Events, f.Partitions[1].Oldest = 120_003, noon.Add(-time.Hour) }, Warning, "partition 1: 120003 events since the first that is not known to be handled, 1h0m0s ago|add workers, or send less", "partition 0:"},
	{"a backlog that is mostly of one space", func(f *fleet.Fleet) {
		p := &f.Partitions[1]
		p.Events, p.Oldest, p.Busiest, p.BusiestEvents = 1_000_003, noon.Add(-time.Hour), "hot", 1_000_000
	}, Warning, "1h0m0s ago; 1000000 of them of space hot|More workers do not help one space", "fewer events"},
	{"timers that are late", late(31*time.Second, 7), Warning, "! timers space clock, on w1: the first of 3 events was due 31s ago, at 2026-11-21T11:59:29Z|`settle timers clock`|6 spaces more on w1 are late", "none is late"},
	{"timers that have just come due", late(29*time.Second, 7), OK, "✓ timers none is late by more than 30s", "space clock"},
	{"a job that was missed", missed(23 * time.Hour), Warning, "! timers job hourly of space clock has skipped 9 times after the one of 2026-11-20T13:00:00Z, as w1 reports", "none is late"},
	{"a job that was missed long ago", missed(25 * time.Hour), OK, "✓ timers none is late", "hourly"},
	{"many spaces that wait to be loaded", queued(100, 0), Warning, "! waking 100 spaces wait to be loaded by w2, next: a, b; 7 are in memory Their", "--max-awake"},
	{"many that find no room", queued(10_000, 7), Warning, "10000 spaces wait to be loaded by w2, next: a, b; 7 are in memory, of at most 7|(--max-awake)", ""},
	{"a few spaces that wait to be loaded", queued(99, 7), OK, "✓ waking fewer than 100 spaces", "a, b"},
	{"many watches", watches(80, 0), Warning, "! watches worker w1 serves 80 watches, of at most 100; 60 of them of document n of space cart", "refused 0"},
	{"too many watches", watches(100, 3), Warning, "of space cart; it has refused 3", ""},
	{"watches for which there is room", watches(79, 0), OK, "✓ watches 79, and room for more", "cart"},
	{"an action without a performer", func(f *fleet.Fleet) {
		for i, since := range []time.Duration{time.Minute, 2 * time.Minute} {
			f.Workers[i].Figures.Unperformed = []status.Unperformed{{Action: "build", Since: noon.Add(-since), Last: noon, Space: "shop", Tasks: 40}}
		}
	}, Warning, "! performers no performer of build is connected; tasks wait for 2m, and none was taken since w1 and w2 have started; 40 tasks of space shop (reported by w1, w2)|`settle perform build -- COMMAND (or: --http URL)`", "no action whose tasks wait"},
	{"an action that has had one", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Unperformed = []status.Unperformed{{Action: "build", Queue: "eu", Silent: true, Since: noon.Add(-time.Minute), Last: noon, Claimed: noon.Add(-time.Hour), Space: "shop", Tasks: 1}}
	}, Warning, "! performers a performer of build, queue eu is connected, and none answers; tasks wait for 1m, and the last one was taken 1h ago; 1 task of space shop|`settle perform build --queue eu -- COMMAND (or: --http URL)`", "no action whose tasks wait"},
	{"an action whose performer may be about to start", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Unperformed = []status.Unperformed{{Action: "build", Since: noon.Add(-29 * time.Second), Last: noon, Space: "shop", Tasks: 1}}
	}, OK, "✓ performers no action whose tasks wait for a performer, for longer than 30s", "build"},
	{"a version that does not compile", func(f *fleet.Fleet) {
		f.Workers[0].Figures.Unrunnable, f.Workers[1].Figures.Unrunnable = []string{"spaces cart* should run cart@1"}, []string{"spaces cart* should run cart@1"}
	}, Failure, "✗ programs on worker w1: spaces cart* should run cart@1|settle rollback", "worker w2: spaces"},
}

func TestEveryFleetIsJudged(t *testing.T) {
	for _, d := range fleets {
		t.Run(d.name, func(t *testing.T) {
			f := well()
			d.but(f)
			r := Judge(single(), f, nil, BackupAge)
			text := printed(t, r)
			if r.Level != d.level {
				t.Errorf("level %v, want %v", r.Level, d.level)
			}
			joined := strings.Join(strings.Fields(text), " ")
			for part := range strings.SplitSeq(d.says, "|") {
				if !strings.Contains(joined, part) {
					t.Errorf("it does not say %q", part)
				}
			}
			for part := range strings.SplitSeq(d.not, "|") {
				if part != "" && strings.Contains(joined, part) {
					t.Errorf("it says %q", part)
				}
			}
			for _, f := range r.Findings {
				if f.Level > OK && (f.Reason == "" || f.Do == "") {
					t.Errorf("without a reason or advice: %+v", f)
				}
			}
			if t.Failed() {
				t.Log("\n" + text)
			}
		})
	}
}

// The doctor distinguishes a worker that hangs from one that has ended, and reports processes that could
// not be asked.
func TestWorkersThatHangAndThatCannotBeAsked(t *testing.T) {
	s := single()
	s.Members = append(s.Members, survey.MemberFacts{ID: "w2", Unknown: errors.New("timeout")}, survey.MemberFacts{ID: "w3"})
	f := well()
	f.Workers[1].State, f.Workers[1].Holds = fleet.Silent, []int{0, 1}
	f.Partitions[0].Silent, f.Partitions[1].Silent, f.Partitions[1].Served = []string{"w2"}, []string{"w2"}, nil
	text := strings.Join(strings.Fields(printed(t, Judge(s, f, nil, BackupAge))), " ")
	if strings.Contains(text, "no worker serves") {
		t.Errorf("the partition of a worker that hangs is named twice:\n%s", text)
	}
	for _, part := range []string{"! listens and does not answer: w2; partition 0 that it served is served by w1 now, and partition 1 that it serves stands still until", "have ended without leaving, as when they are killed: w3"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if r := Judge(single(), nil, errors.New("forbidden"), BackupAge); r.Level != Warning || !strings.Contains(printed(t, r), "could not be asked what they do") {
		t.Errorf("workers that could not be asked:\n%s", printed(t, r))
	}
}

// Watching reports new findings and resolved ones, once each, and no changes of figures.
func TestChanges_TellWhatIsNewAndWhatHasGone(t *testing.T) {
	var c Changes
	told := func(but ...func(*fleet.Fleet)) string {
		f := well()
		for _, b := range but {
			b(f)
		}
		var lines []string
		for _, change := range c.Since(Judge(single(), f, nil, BackupAge)) {
			lines = append(lines, change.Change+" "+change.Check)
		}
		return strings.Join(lines, ", ")
	}
	skewed := func(f *fleet.Fleet) { f.Workers[1].Ahead = 2 * time.Second }
	for i, step := range []struct {
		but  []func(*fleet.Fleet)
		want string
	}{
		{nil, "well all"},
		{nil, ""},
		{[]func(*fleet.Fleet){skewed}, "new clock"},
		{[]func(*fleet.Fleet){skewed, standing(time.Minute, "gate")}, "new stuck spaces"},
		{[]func(*fleet.Fleet){skewed, standing(2*time.Minute, "gate")}, ""},
		{[]func(*fleet.Fleet){skewed, standing(time.Hour, "gate")}, "new stuck spaces, gone stuck spaces"},
		{[]func(*fleet.Fleet){standing(time.Hour, "gate")}, "gone clock"},
		{nil, "gone stuck spaces, well all"},
	} {
		if got := told(step.but...); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
	for _, change := range c.Since(Unreachable(errors.New("refused"))) {
		if line := change.String(); line != "00:00:00  new  ✗ servers: nothing could be reached: refused" {
			t.Errorf("printed as %q", line)
		}
	}
}

// The note of a store that has gone back is reported for 7 days, or until an operator confirms it, even if no process
// reports it; a note that a process reports, too, is reported once.
func TestRewinds_AreSaidAsTheyAreNoted(t *testing.T) {
	back := model.Rewind{At: noon.Add(-24 * time.Hour), Stream: "SETTLE_LANE_0", Known: 90, Found: "it ends at 80"}
	note := func(change func(*model.RewindNote)) []model.RewindNote {
		n := model.RewindNote{Rewind: back, By: "client/shop"}
		change(&n)
		return []model.RewindNote{n}
	}
	as := func(*model.RewindNote) {}
	knows := func(ago time.Duration) *fleet.Fleet {
		r := back
		r.At = noon.Add(-ago)
		return &fleet.Fleet{At: noon, Workers: []fleet.Member{{ID: "w1", State: fleet.Here, Figures: &status.Figures{Rewinds: []model.Rewind{r}, RewindCount: 1, Rewound: r}}}}
	}
	const noted = "the store has gone back to an earlier state; client shop noticed it at 2026-11-20T12:00:00Z: stream SETTLE_LANE_0 was known up to 90, and it ends at 80"
	for name, c := range map[string]struct {
		notes []model.RewindNote
		fleet *fleet.Fleet
		want  string
	}{
		"noted":                               {note(as), nil, noted},
		"noted, and known to a worker":        {note(as), knows(24*time.Hour + time.Minute), noted},
		"known to a worker alone":             {nil, knows(24 * time.Hour), strings.Replace(noted, "client shop", "worker w1", 1)},
		"another one is noted":                {note(func(n *model.RewindNote) { n.Stream = "SETTLE_LOG_0" }), knows(24 * time.Hour), strings.Replace(noted, "LANE_0", "LOG_0", 1) + " + " + strings.Replace(noted, "client shop", "worker w1", 1)},
		"old":                                 {note(func(n *model.RewindNote) { n.At = noon.Add(-8 * 24 * time.Hour) }), nil, ""},
		"acknowledged":                        {note(func(n *model.RewindNote) { n.Acknowledged = true }), nil, ""},
		"acknowledged, and known to a worker": {note(func(n *model.RewindNote) { n.Acknowledged = true }), knows(24 * time.Hour), ""},
		"acknowledged, and known from before": {note(func(n *model.RewindNote) { n.Acknowledged = true }), knows(48 * time.Hour), ""},
		"acknowledged, and it was again":      {note(func(n *model.RewindNote) { n.Acknowledged = true }), knows(time.Hour), strings.NewReplacer("client shop", "worker w1", "20T12", "21T11").Replace(noted)},
	} {
		s := single()
		s.Rewinds = c.notes
		var got []string
		for _, f := range Judge(s, c.fleet, nil, 0).Findings {
			if strings.Contains(f.Found, "gone back") {
				got = append(got, f.Found)
				if f.Check != CheckReach || f.Level != Warning || strings.Contains(f.Do, "--acknowledge") == strings.Contains(f.Do, "started again") {
					t.Errorf("%s: %+v", name, f)
				}
			}
		}
		if text := strings.Join(got, " + "); text != c.want {
			t.Errorf("%s: it is said %q, want %q", name, text, c.want)
		}
	}
}

// unsettled puts a space on w1 whose nodes have not converged for so long.
func unsettled(age time.Duration, way ...string) func(*fleet.Fleet) {
	return func(f *fleet.Fleet) {
		f.Workers[0].Figures.Unsettled = []status.Unsettled{{Space: "turn", Nodes: []string{"a", "b"}, Count: 2, Way: way, Since: noon.Add(-age)}}
	}
}

// differing makes w1 report nodes that are not idempotent, each in so many spaces.
func differing(nodes, spaces int) func(*fleet.Fleet) {
	return func(f *fleet.Fleet) {
		for i := range nodes {
			node := fmt.Sprint("dice", i)
			f.Workers[0].Figures.Differing = append(f.Workers[0].Figures.Differing, status.Differing{
				Node: node, Spaces: spaces, Space: "hall", Text: "node " + node + " is not idempotent: dice: 1, then 2", Since: noon,
			})
		}
	}
}
