package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
)

const (
	// maxFrozen bounds the sets that wait for a confirmation, thaw is how long they do.
	maxFrozen, thaw = 50, 10 * time.Minute
	// maxJobs bounds the jobs that are remembered, jobWidth how many letters a job deals with at a time.
	maxJobs, jobWidth = 50, 16
	// errorsInRow is after how many failures in a row a job stops by itself.
	errorsInRow = 20
)

// undoTime is how long a job waits before it begins, so that it can be stopped before it has an effect.
const undoTime = 5 * time.Second

// frozen are the letters of a preview. What fails later is not among them.
type frozen struct {
	verb    string // redrive or dismiss
	letters []model.DeadName
	what    string
	back    string
	command string
	key     string // of the visitor
	at      time.Time
}

// frozenSets are the sets that wait for a confirmation.
type frozenSets struct {
	mu  sync.Mutex
	all map[string]*frozen
}

func (f *frozenSets) put(set *frozen) (key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[string]*frozen{}
	}
	oldest, at := "", time.Now()
	for k, s := range f.all { // any order: the oldest
		if time.Since(s.at) > thaw {
			delete(f.all, k)
		} else if s.at.Before(at) {
			oldest, at = k, s.at
		}
	}
	if len(f.all) >= maxFrozen {
		delete(f.all, oldest)
	}
	key = rand.Text()
	f.all[key] = set
	return key
}

// take returns a set of a visitor once, nil if there is none.
func (f *frozenSets) take(key, visitor string) *frozen {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.all[key]
	if s == nil || s.key != visitor || time.Since(s.at) > thaw {
		return nil
	}
	delete(f.all, key)
	return s
}

// freeze keeps a set, and returns the preview of what would be done with it.
func (a *act) freeze(set frozen, what string) (*preview, error) {
	n := len(set.letters)
	if n == 0 {
		return nil, invalidForm("There is nothing to %s: no such letter is open, or you may not operate their spaces", set.verb)
	}
	spaces := map[string]bool{}
	for _, l := range set.letters {
		spaces[l.Space] = true
	}
	set.what, set.key, set.at = what, a.Visitor.Key(), time.Now()
	a.Form = map[string][]string{"set": {a.frozen.put(&set)}, "space": {a.Get("space")}}
	p := &preview{Back: set.back, CLI: fmt.Sprintf("%s --confirm %d", set.command, n)}
	events := display.Count(n, "event")
	switch set.verb {
	case "redrive":
		p.Title = fmt.Sprintf("Send %s again to %s", events, display.Count(len(spaces), "space"))
		p.Text = fmt.Sprintf("%s. It begins %d s after you confirm, and can be stopped until then and later. What is sent is sent. Events that fail from now on are not among them.", capital(what), int(a.undo/time.Second))
		p.Button = "Redrive " + display.Grouped(n)
	default:
		p.Title = fmt.Sprintf("Dismiss %s of %s", events, display.Count(len(spaces), "space"))
		p.Text = fmt.Sprintf("%s. The letters are taken off the list; the events stay as they are, and can still be redriven.", capital(what))
		p.Button = "Dismiss " + display.Grouped(n)
		p.Ask = []field{{Name: "reason", Label: "Reason"}}
	}
	return p, nil
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return string(s[0]&^0x20) + s[1:]
}

// job works on a set of letters.
type job struct {
	ID, Verb, What, By string
	Total              int
	Spaces             int
	Begun              time.Time // when it begins
	Ended              time.Time

	mu                       sync.Mutex
	done, duplicates, failed int
	inRow                    int
	errors                   []string
	stopped                  string // why
	cancel                   context.CancelFunc
	key                      string
}

// jobState is a job at one moment.
type jobState struct {
	ID, Verb, What, By, Past  string
	Total, Done, Failed, Same int
	Left                      int
	Begun, Ended              time.Time
	Errors                    []string
	Stopped                   string
	Waiting, Over             bool
	State, Word               string
}

// Share is how much is done, in percent.
func (s *jobState) Share() int {
	if s.Total == 0 {
		return 100
	}
	return 100 * (s.Done + s.Failed) / s.Total
}

// Now returns the state.
func (j *job) Now() *jobState {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &jobState{
		ID: j.ID, Verb: j.Verb, What: j.What, By: j.By, Past: map[string]string{"redrive": "sent again", "dismiss": "dismissed"}[j.Verb],
		Total: j.Total, Done: j.done, Failed: j.failed, Same: j.duplicates, Left: j.Total - j.done - j.failed, Begun: j.Begun, Ended: j.Ended,
		Errors: slices.Clone(j.errors), Stopped: j.stopped, Over: !j.Ended.IsZero(),
	}
	s.Waiting = !s.Over && j.done+j.failed == 0 && time.Now().Before(j.Begun)
	switch {
	case s.Waiting:
		s.State, s.Word = "waiting", "about to begin"
	case !s.Over:
		s.State, s.Word = "running", "under way"
	case s.Stopped != "":
		s.State, s.Word = "parked", "stopped"
	case s.Failed > 0:
		s.State, s.Word = "failed", "done, with errors"
	default:
		s.State, s.Word = "clean", "done"
	}
	return s
}

// jobs are the jobs of a console.
type jobs struct {
	mu  sync.Mutex
	all []*job
}

func (js *jobs) add(j *job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	js.all = append(js.all, j)
	for i := 0; len(js.all) > maxJobs && i < len(js.all); i++ {
		if js.all[i].Now().Over {
			js.all = slices.Delete(js.all, i, i+1)
			i--
		}
	}
}

func (js *jobs) find(id string) *job {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range js.all {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// of returns the jobs of visitors with the same rights, the newest first, that have not ended, or just have.
func (js *jobs) of(key string) (list []*job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, j := range slices.Backward(js.all) {
		if s := j.Now(); j.key == key && (!s.Over || time.Since(s.Ended) < 10*time.Minute) && len(list) < 5 {
			list = append(list, j)
		}
	}
	return list
}

// startJob begins to work on the set of the form.
func startJob(_ context.Context, a *act) (*done, error) {
	set := a.frozen.take(a.Get("set"), a.Visitor.Key())
	if set == nil {
		return nil, invalidForm("This preview was confirmed before, or is older than %d minutes; nothing was done. Look again", int(thaw/time.Minute))
	}
	j := &job{ID: rand.Text()[:10], Verb: set.verb, What: set.what, By: cmp.Or(a.Visitor.Name(), "an operator"), Total: len(set.letters), key: a.Visitor.Key(), Begun: time.Now()}
	if set.verb == "redrive" {
		j.Begun = j.Begun.Add(a.undo)
	}
	ctx, cancel := context.WithCancel(a.ctx)
	j.cancel = cancel
	a.jobs.add(j)
	reason := a.Get("reason")
	console := a.Console
	console.tasks.Go(func() { // ends with its letters, when it is stopped, or with the console
		defer cancel()
		console.work(ctx, j, set, reason)
	})
	command := fmt.Sprintf("%s --confirm %d", set.command, len(set.letters))
	if reason != "" {
		command += " --reason " + shellWord(reason)
	}
	return &done{Text: fmt.Sprintf("%s: %s", capital(set.verb), display.Count(len(set.letters), "event")), To: jobURL(j.ID), Command: command}, nil
}

func jobURL(id string) string { return pathOf("dead", "jobs", id) }

// work deals with the letters of a set, several at a time.
func (c *Console) work(ctx context.Context, j *job, set *frozen, reason string) {
	defer j.end()
	if pause.For(ctx, time.Until(j.Begun)) != nil {
		return
	}
	letters := make(chan model.DeadName)
	var all sync.WaitGroup
	for range min(jobWidth, len(set.letters)) {
		all.Go(func() { // ends when letters is closed
			for l := range letters {
				duplicate, err := c.deal(ctx, set.verb, l, reason)
				j.note(ctx, l, duplicate, err)
			}
		})
	}
	for _, l := range set.letters {
		select {
		case letters <- l:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(letters)
	all.Wait()
}

// deal redrives or dismisses a letter.
func (c *Console) deal(ctx context.Context, verb string, l model.DeadName, reason string) (duplicate bool, err error) {
	if verb == "dismiss" {
		_, again, err := history.Dismiss(ctx, c.cfg.Bus, l.Space, l.Stream, l.Event, reason)
		return again, err
	}
	_, sent, err := history.Redrive(ctx, c.cfg.Bus, l.Space, l.Stream, l.Event)
	return sent.Duplicate, err
}

// note notes what has become of a letter. A job that only fails ends.
func (j *job) note(ctx context.Context, l model.DeadName, duplicate bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err != nil && ctx.Err() != nil: // it was stopped
	case err != nil:
		if j.failed++; len(j.errors) < 10 {
			j.errors = append(j.errors, fmt.Sprintf("%s of %s: %v", l.Event, l.Space, err))
		}
		if j.inRow++; j.inRow >= errorsInRow && j.stopped == "" {
			j.stopped = fmt.Sprintf("%d failed in a row", errorsInRow)
			j.cancel()
		}
	default:
		j.done++
		j.inRow = 0
		if duplicate {
			j.duplicates++
		}
	}
}

// end notes that the job has ended.
func (j *job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.Ended = time.Now()
	if j.stopped == "" && j.done+j.failed < j.Total {
		j.stopped = "the console has ended"
	}
}

// stopJob stops a job.
func stopJob(_ context.Context, a *act) (*done, error) {
	j := a.jobs.find(a.Get("job"))
	if j == nil || j.key != a.Visitor.Key() && a.Visitor.MayOperate("") != nil {
		return nil, &missing{"This console has no such job"}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.Ended.IsZero() {
		return &done{Text: "It had ended before", To: jobURL(j.ID)}, nil
	}
	j.stopped = "by " + cmp.Or(a.Visitor.Name(), "an operator")
	j.cancel()
	return &done{Text: "It stops", To: jobURL(j.ID), Command: fmt.Sprintf("stop %s of %s (console)", j.Verb, display.Count(j.Total, "event"))}, nil
}

func jobPage() page {
	return page{
		name: "job", pattern: "/dead/jobs/{job}", under: "dead", everyone: true,
		open: func(c *Console, q *query) (view, error) {
			return view{load: func(context.Context) (*shown, error) {
				j := c.jobs.find(q.Path("job"))
				if j == nil || j.key != q.visitor.Key() && q.visitor.SeesDeployment() != nil {
					return nil, &missing{"This console has no such job. Jobs are forgotten when a console ends; running one again does nothing twice"}
				}
				now := j.Now()
				s := &shown{Name: "Job", CLI: "settle dead --count", Data: now, State: now.State, Crumbs: []crumb{{"Dead letters", "/dead"}}, Parts: []part{{ID: "job", Template: "job-state", Data: now}}}
				s.Title = fmt.Sprintf("%s of %s %s", display.Grouped(now.Done), display.Count(now.Total, "event"), now.Past)
				return s, nil
			}, every: time.Second}, nil
		},
	}
}
