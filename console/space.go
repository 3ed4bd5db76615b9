package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/replica"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/status"
)

func spacePage() page {
	return page{
		name: "space", pattern: "/spaces/{space}", under: "spaces", params: []string{"doc", "page", "stream"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			s := &spaceView{spaceReader: spaceReader{c: c, space: q.Path("space")}, q: q}
			return view{load: s.load, watch: s.watch, every: 2 * time.Second}, need("space", s.space)
		},
	}
}

// spaceReader reads one space, and reads again only what has changed.
type spaceReader struct {
	c     *Console
	space string

	contents *replica.Replica
	recent   []*history.Entry // the newest commits, the newest first
	end      history.Boundary
	head     uint64
	epoch    uint64
}

// recentCommits is how many commits the pages of a space know the writers of documents from, and listedCommits how many they list.
const recentCommits, listedCommits = 20, 8

// read brings the contents up to the head of the log.
func (s *spaceReader) read(ctx context.Context) error {
	bus := s.c.cfg.Bus
	if epoch := bus.Epoch(); epoch != s.epoch { // the store has gone back: what was read may never have been
		s.contents, s.head, s.epoch = nil, 0, epoch
	}
	head, err := bus.Head(ctx, s.space)
	switch {
	case err != nil:
		return fmt.Errorf("read space %s: %w", s.space, err)
	case head == 0:
		return s.unborn(ctx)
	case s.contents != nil && head <= s.contents.Seq && s.recent != nil:
		return nil
	}
	if s.contents != nil {
		if err := history.Replay(ctx, bus, s.contents); err != nil {
			s.contents = nil // a part of the log is gone: begin with the saved state
		}
	}
	if s.contents == nil {
		all, err := history.ReadContents(ctx, bus, s.space)
		if err != nil {
			return err
		}
		s.contents = all.Replica
	}
	page, err := history.ReadEntries(ctx, bus, s.space, history.LogQuery{Limit: recentCommits})
	if err != nil {
		return err
	}
	slices.Reverse(page.Entries)
	s.recent, s.end, s.head = page.Entries, page.End, page.Head
	return nil
}

// unborn is the state of a space without a log.
func (s *spaceReader) unborn(ctx context.Context) error {
	waiting, err := s.c.cfg.Bus.ReadLane(ctx, s.space, 0, 1)
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		return &missing{fmt.Sprintf("There is no space %s: nothing was ever handled there. Its first event makes it: settle send %s STREAM PAYLOAD", s.space, s.space)}
	}
	s.contents, s.recent = replica.New(s.space), []*history.Entry{}
	return nil
}

// watch notifies of each commit.
func (s *spaceReader) watch(ctx context.Context, changed func()) {
	for ctx.Err() == nil {
		head, err := s.c.cfg.Bus.Head(ctx, s.space)
		if err == nil {
			err = s.c.cfg.Bus.FollowSpace(ctx, s.space, head, func(model.LogEntry) { changed() })
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		changed()
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// spaceView is the page of a space.
type spaceView struct {
	spaceReader
	q *query
}

// asked is what workers say about a space.
type asked struct {
	Lane  *questions.Lane
	Graph *questions.Graph
	// LaneError and GraphError are why there is none.
	LaneError, GraphError string
}

// askPatience is how long a page waits for a worker.
const askPatience = 3 * time.Second

// ask asks the worker of the space. It loads nothing.
func (c *Console) ask(ctx context.Context, space string, q *query) *asked {
	a := &asked{}
	if err := q.visitor.MayReadAll(space); err != nil {
		a.LaneError, a.GraphError = err.Error(), err.Error()
		return a
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() { // ends within the patience
		lane, err := c.asks.Lane(ctx, questions.Query{Space: space, Limit: 20})
		if a.Lane = lane; err != nil {
			a.LaneError = askedInVain(err)
		}
	})
	both.Go(func() { // the same
		graph, err := c.wholeGraph(ctx, space, "", 0)
		if a.Graph = graph; err != nil {
			a.GraphError = askedInVain(err)
		}
	})
	both.Wait()
	return a
}

// wholeGraph reads all pages of a graph, or of the neighbourhood of a node.
func (c *Console) wholeGraph(ctx context.Context, space, of string, depth int) (*questions.Graph, error) {
	q := questions.Query{Space: space, Of: of, Depth: depth, Limit: questions.MaxNodes}
	whole, err := c.asks.Graph(ctx, q)
	if err != nil {
		return nil, err
	}
	for n := 1; whole.Next > 0 && n < maxGraphPages; n++ {
		q.After = whole.Next
		page, err := c.asks.Graph(ctx, q)
		if err != nil {
			return nil, err
		}
		whole.Nodes, whole.Edges = append(whole.Nodes, page.Nodes...), append(whole.Edges, page.Edges...)
		whole.Next, whole.Cut = page.Next, whole.Cut || page.Cut
	}
	return whole, nil
}

// maxGraphPages bounds the pages that a graph is put together from.
const maxGraphPages = 8

// askedInVain is why a question has no answer.
func askedInVain(err error) string {
	switch {
	case errors.Is(err, model.ErrNoResponder), errors.Is(err, context.DeadlineExceeded):
		return "no worker answers for this space at the moment"
	}
	if said, is := errors.AsType[*model.ServiceError](err); is {
		return said.Text
	}
	return err.Error()
}

// docRow is a document in the list.
type docRow struct {
	Name, URL string
	Revision  uint64
	Value     model.Value
	// State and Word are those of the node that derives it; "" for a document that handlers write.
	State, Word string
	Node        string // that derives it
	// By is the name of what wrote it last, Kind how, Event the event behind it, and Time when; zero if that is not among the newest commits.
	By    string
	Event *history.EventRef
	Time  time.Time
	// Failure is why the node has derived no value, "" if it has not failed.
	Failure string
	// Observed: by clients or other spaces; Here: by this console.
	Observed, Here bool
}

// maxDocs is how many documents a page lists.
const maxDocs = 100

// docsData is the list of documents.
type docsData struct {
	Space, Filter      string
	Rows               []docRow
	Total, All, Hidden int
	Before, After      string
	Back               string
	Awake              bool
}

// timerRow is an event that waits for its time.
type timerRow struct {
	Timer, Stream, Event string
	At                   time.Time
	Payload              model.Value
}

// load reads the page.
func (s *spaceView) load(ctx context.Context) (*shown, error) {
	if !s.q.visitor.SeesSpace(s.space) {
		return nil, &forbidden{fmt.Errorf("you may read no document of space %s", s.space)}
	}
	var a *asked
	err := atOnce(
		func() error { return s.read(ctx) },
		func() error { a = s.c.ask(ctx, s.space, s.q); return nil },
	)
	if err != nil {
		return nil, err
	}
	lane, err := s.lane(ctx, a)
	if err != nil {
		return nil, err
	}
	out := &shown{Name: s.space, CLI: "settle get " + s.space, Crumbs: []crumb{{"Spaces", "/spaces"}}}
	origins := s.c.origins(ctx, s.space, a.Graph, s.q.visitor)
	circles := s.c.circles(ctx, s.space, s.q.visitor)
	title, state := s.title(ctx, a, origins)
	out.Title, out.State = titleOf(s.space, title, state, circles)
	tabs := tabsOf(s.c, s.space, "documents")
	out.Parts = []part{
		{ID: "tabs", Template: "space-tabs", Data: tabs},
		{ID: "about", Template: "space-about", Data: s.about(ctx, a)},
		{ID: "origins", Template: "space-origins", Data: origins},
		{ID: "circles", Template: "space-circles", Data: circles},
		{ID: "documents", Template: "space-documents", Data: s.documents(a)},
		{ID: "lane", Template: "space-lane", Data: lane},
		{ID: "timers", Template: "space-timers", Data: map[string]any{"Rows": s.timers(), "Space": s.space}},
		{ID: "tasks", Template: "space-tasks", Data: s.tasks()},
		{ID: "recent", Template: "space-recent", Data: s.recentData()},
		{ID: "send", Template: "space-send", Data: s.c.sendForm(ctx, s.space, s.q, s.recent)},
	}
	return out, nil
}

// title says how the space is.
func (s *spaceView) title(ctx context.Context, a *asked, origins []origin) (string, string) {
	failing := s.failing()
	switch {
	case a.Lane == nil && a.LaneError != "" && s.q.visitor.MayReadAll(s.space) == nil:
		return s.space + ": no worker answers", "failed"
	case a.Lane == nil:
		return s.space, ""
	case a.Lane.Halt != "":
		return s.space + " runs nothing: " + display.FirstLine(a.Lane.Halt), "failed"
	case a.Lane.Head != nil && a.Lane.Head.Cause != "turn":
		h := a.Lane.Head
		return fmt.Sprintf("%s waits: %s %s%s", s.space, h.Stream, cut(h.Event, 40), triedOr(h.Attempts, h.LastError, h.Reason)), stateOfCause(h.Cause)
	}
	if text := failedNodes(a.Graph); text != "" {
		return s.space + ": " + text, "failed"
	}
	if text := s.turning(ctx, a.Graph); text != "" {
		return s.space + " does not converge: " + text, "invalid"
	}
	if len(origins) > 0 {
		return originTitle(s.space, origins), "waiting"
	}
	givenUp := s.givenUp(ctx)
	switch {
	case a.Lane.State == questions.Running:
		if stuck := s.stuck(ctx); stuck != nil {
			return fmt.Sprintf("%s is stuck: %s %s: %s", s.space, stuck.Stream, cut(stuck.Event, 40), cut(display.FirstLine(stuck.Reason), 100)), "parked"
		}
		return s.space + " is running code", "running"
	case failing != nil:
		return fmt.Sprintf("%s: task %s of %s is tried again: %s", s.space, cut(failing.Key, 40), failing.Action, cut(display.FirstLine(failing.Err), 100)), "parked"
	case givenUp != nil:
		return s.space + ": " + cut(fleet.FailingText(givenUp), 180), "failed"
	case a.Lane.State == questions.Asleep:
		return s.space + " is well, and asleep", "clean"
	}
	return s.space + " is well", "clean"
}

// failedNodes says which nodes that are needed have failed, "" if none has.
func failedNodes(g *questions.Graph) string {
	if g == nil {
		return ""
	}
	var first *questions.GraphNode
	n := 0
	for i := range g.Nodes {
		if node := &g.Nodes[i]; node.Error != "" && (node.Live || node.Observed) {
			if n++; first == nil {
				first = node
			}
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return first.ID + " failed: " + cut(display.FirstLine(first.Error), 120)
	}
	return fmt.Sprintf("%s failed, such as %s: %s", display.Count(n, "node"), first.ID, cut(display.FirstLine(first.Error), 120))
}

// turning says which circle does not converge: the way round if it is known, or how many nodes; "" if all converges. A node that has failed and is tried
// again later is held back as well, and is on no circle for that.
func (s *spaceView) turning(ctx context.Context, g *questions.Graph) string {
	if g == nil {
		return ""
	}
	failed := map[string]bool{}
	for i := range g.Nodes {
		failed[g.Nodes[i].ID] = g.Nodes[i].Error != ""
	}
	held := 0
	for _, id := range g.Unsettled {
		if !failed[id] {
			held++
		}
	}
	if held == 0 && len(g.Rounds) == 0 {
		return ""
	}
	if f, err := s.c.shared.Fleet(ctx, stuckAge); err == nil {
		for i := range f.Workers {
			if fig := f.Workers[i].Figures; fig != nil {
				for k := range fig.Unsettled {
					if u := &fig.Unsettled[k]; u.Space == s.space && u.Round() != "" {
						return u.Round()
					}
				}
			}
		}
	}
	if len(g.Rounds) > 0 {
		u := status.Unsettled{Through: g.Rounds[0]}
		return u.Round()
	}
	return display.Count(held, "node")
}

// givenUp returns an action of the space with tasks that were given up and that its program does not handle, as the overview names it; nil if there is none.
func (s *spaceView) givenUp(ctx context.Context) *status.FailingAction {
	f, err := s.c.shared.Fleet(ctx, stuckAge)
	if err != nil {
		return nil
	}
	all, _ := f.Failing()
	if i := slices.IndexFunc(all, func(one status.FailingAction) bool { return one.Space == s.space && one.GivenUp > 0 && !one.Handled }); i >= 0 {
		return &all[i]
	}
	return nil
}

// stuck returns why the space counts as stuck, nil if it does not.
func (s *spaceView) stuck(ctx context.Context) *fleet.Stuck {
	f, err := s.c.shared.Fleet(ctx, stuckAge)
	if err != nil {
		return nil
	}
	all := s.c.shared.Stuck(ctx, f, stuckAge)
	if i := slices.IndexFunc(all, func(one fleet.Stuck) bool { return one.Space == s.space }); i >= 0 {
		return &all[i]
	}
	return nil
}

// manyAttempts is how many attempts at a task have failed when the title of its space names it.
const manyAttempts = 3

// failing returns a task that is tried again and again, nil if there is none.
func (s *spaceView) failing() *taskRow {
	rows := s.tasks().Rows
	for i := range rows {
		if rows[i].State == space.TaskPending && rows[i].Attempts >= manyAttempts {
			return &rows[i]
		}
	}
	return nil
}

// tab is a page of a space.
type tab struct {
	Label, URL string
	Here       bool
}

// tabsOf returns the pages of a space.
func tabsOf(c *Console, space, here string) (tabs []tab) {
	tabs = append(tabs, tab{"Documents", pathOf("spaces", space), here == "documents"}, tab{"Graph", graphURL(space, ""), here == "graph"})
	if c.looks.leads(pathOf("spaces", space, "events")) {
		tabs = append(tabs, tab{"Events", pathOf("spaces", space, "events"), here == "events"})
	}
	return tabs
}

// aboutData is what is known of the space as a whole.
type aboutData struct {
	Space            string
	State, Word      string
	Note             string
	Worker           string
	Partition        int
	Program, Version string
	Target           string
	Revision         uint64
	Last             time.Time
	LastBy           string
	Dead             int
}

func (s *spaceView) about(ctx context.Context, a *asked) *aboutData {
	d := &aboutData{Space: s.space, Partition: model.PartitionOf(s.space, s.c.cfg.Bus.Partitions()), Revision: s.contents.Seq, State: "dormant", Word: "not known", Note: a.LaneError}
	if a.Lane != nil {
		d.Worker, d.Program, d.Version, d.Note = a.Lane.Worker, a.Lane.Program, a.Lane.Version, a.Lane.Note
		switch d.Word = string(a.Lane.State); a.Lane.State {
		case questions.Awake:
			d.State, d.Word = "clean", "in memory"
		case questions.Running:
			d.State = "running"
		case questions.Loading:
			d.State = "waiting"
		}
	}
	if len(s.recent) > 0 {
		d.Last, d.LastBy = s.recent[0].Time, s.recent[0].Runtime
	}
	if rules, err := s.c.shared.Rules(ctx, 5*time.Second); err == nil {
		if rule := rules.Rule(s.space); rule != nil {
			d.Target = rule.Choice.Of(s.space).String()
		}
	}
	return d
}

// wrote is the newest step among the recent commits that wrote a document.
type wrote struct {
	step *history.Step
	at   time.Time
}

func (s *spaceReader) writers() map[string]wrote {
	by := map[string]wrote{}
	for _, e := range s.recent {
		for i := range slices.Backward(e.Steps) {
			for _, ch := range e.Steps[i].Changes {
				if _, known := by[ch.Document]; !known {
					by[ch.Document] = wrote{&e.Steps[i], e.Time}
				}
			}
		}
	}
	return by
}

// documents is the list of documents: those that exist, and those that nodes would derive.
func (s *spaceView) documents(a *asked) *docsData {
	d := &docsData{Space: s.space, Filter: s.q.Param("doc"), Back: s.q.at.String()}
	nodes, byID := map[string]*questions.GraphNode{}, map[string]*questions.GraphNode{}
	names := slices.DeleteFunc(s.contents.DocIDs(), model.IsTaskDoc) // see tasks
	if a.Graph != nil {
		d.Awake = a.Graph.State == questions.Awake
		for i := range a.Graph.Nodes {
			n := &a.Graph.Nodes[i]
			byID[n.ID] = n
			if n.Output != "" {
				nodes[n.Output] = n
				names = append(names, n.Output)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	d.All = len(names)
	names = slices.DeleteFunc(names, func(name string) bool {
		if s.q.visitor.MayRead(s.space, name) != nil {
			d.Hidden++
			return true
		}
		return d.Filter != "" && !strings.Contains(strings.ToLower(name), strings.ToLower(d.Filter))
	})
	d.Total = len(names)
	at, _ := strconv.Atoi(s.q.Param("page")) // 0 for what is no number
	from := min(max(0, at-1)*maxDocs, max(0, len(names)-1)/maxDocs*maxDocs)
	if from > 0 {
		d.Before = s.q.Address("page", strconv.Itoa(from/maxDocs))
	}
	if from+maxDocs < len(names) {
		d.After = s.q.Address("page", strconv.Itoa(from/maxDocs+2))
	}
	writers := s.writers()
	here := map[string]bool{}
	for _, o := range s.c.observations(s.space) {
		here[o.Document] = true
	}
	for _, name := range names[from:min(from+maxDocs, len(names))] {
		doc := s.contents.Doc(name)
		row := docRow{Name: name, URL: pathOf("spaces", s.space, "documents", name), Revision: doc.Seq, Value: doc.Value, Here: here[name]}
		if w, known := writers[name]; known {
			row.By, row.Event, row.Time = w.step.Name, w.step.Event, w.at
		}
		n := nodes[name]
		if n == nil && row.By != "" && writers[name].step.Kind == history.StepComputation { // one of those that write it in parts
			n = byID[row.By]
		}
		if n != nil {
			row.Node, row.Observed, row.Failure = n.ID, n.Observed, cut(display.FirstLine(n.Error), 200)
			row.State, row.Word = nodeMark(n)
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

// nodeMark is the mark of a node, and its word.
func nodeMark(n *questions.GraphNode) (state, word string) {
	switch {
	case n.Error != "":
		return "failed", "failed"
	case n.Gate != "":
		return "gated", n.Gate
	case n.Waits != "":
		return "waiting", "waits"
	}
	switch n.State {
	case "clean", "up to date":
		return "clean", "clean"
	case "runnable":
		return "invalid", "invalid"
	case "running":
		return "running", "running"
	case "dormant":
		return "dormant", "dormant"
	case "halted":
		return "failed", "halted"
	case "":
		return "dormant", "unknown"
	}
	return "gated", n.State
}

// timers are the events that wait for their time, the next one first.
func (s *spaceView) timers() (rows []timerRow) {
	if s.q.visitor.MayReadAll(s.space) != nil {
		return nil
	}
	var all []model.Waiting
	s.contents.Later.Each(func(w *model.Waiting) { all = append(all, *w) })
	slices.SortFunc(all, func(a, b model.Waiting) int {
		switch {
		case a.Before(&b):
			return -1
		case b.Before(&a):
			return 1
		}
		return 0
	})
	for _, w := range all[:min(len(all), 20)] {
		rows = append(rows, timerRow{Timer: w.Timer, Stream: w.Stream, Event: w.ID, At: time.UnixMilli(w.NotBefore), Payload: w.Payload})
	}
	return rows
}

// recentData is what the template of the newest commits gets.
type recentData struct {
	Space   string
	Entries []*history.Entry
	More    bool
	Hidden  bool
}

func (s *spaceView) recentData() *recentData {
	d := &recentData{Space: s.space, Hidden: s.q.visitor.MayReadAll(s.space) != nil}
	if !d.Hidden {
		d.Entries, d.More = s.recent[:min(len(s.recent), listedCommits)], s.end != history.EndFirst || len(s.recent) > listedCommits
	}
	return d
}
