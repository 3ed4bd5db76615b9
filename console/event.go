package console

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/lineage"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
)

const (
	// treeEvents bounds the tree of a page, and treeRows the rows that are shown of it.
	treeEvents, treeRows = 1000, 300
	// leastEvents is how many events of a tree are read at least.
	leastEvents = 20
	// unfolded is up to how many events a tree is shown whole, and alike how many of the children of an event that are well are shown beyond.
	unfolded, alike = 150, 5
	// questioned is how many open events the workers are questioned about.
	questioned = 8
)

func eventPage() page {
	return page{
		name: "event", pattern: "/spaces/{space}/events/{stream}/{event}", under: "spaces", params: []string{"as", "open", "show"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			if err := errors.Join(need("space", q.Path("space")), need("stream", q.Path("stream"))); err != nil {
				return view{}, err
			}
			return view{load: func(ctx context.Context) (*shown, error) { return c.loadEvent(ctx, q) }, every: time.Second}, nil
		},
	}
}

// settledAge is how old the tree of an event may be whose tree has settled: a redrive is all that can come.
const settledAge = 5 * time.Second

// loadEvent loads the page of an event.
func (c *Console) loadEvent(ctx context.Context, q *query) (*shown, error) {
	ref := history.EventRef{Space: q.Path("space"), Stream: q.Path("stream"), Event: q.Path("event")}
	if err := refuse(q.visitor.MayReadAll(ref.Space)); err != nil {
		return nil, err
	}
	read, err := c.trees.of(treeKey{q.visitor.Key(), ref}).get(ctx, func(ctx context.Context, s *sharedTree) (*eventData, error) { return c.readEvent(ctx, q, ref, s) })
	if err != nil {
		return nil, err
	}
	d := *read
	d.q = q
	d.fill()
	return d.shown(), nil
}

// readEvent reads what the page of an event shows.
func (c *Console) readEvent(ctx context.Context, q *query, ref history.EventRef, s *sharedTree) (*eventData, error) {
	c.trees.reads.Add(1)
	client, err := c.client("")
	if err != nil {
		return nil, err
	}
	t, err := s.tree(ctx, client, ref, c.trees.patience)
	if err != nil {
		return nil, noEvent(ref, err)
	}
	d := &eventData{Ref: ref, Tree: t, Root: t.Root, q: q, horizon: c.cfg.Bus.Horizon(), partitions: c.cfg.Bus.Partitions()}
	d.hide(t.Root)
	beginFollowUps(t.Root)
	t.CausedBy = slices.DeleteFunc(t.CausedBy, func(r history.EventRef) bool { return q.visitor.MayReadAll(r.Space) != nil })
	d.reasons(ctx, c)
	if t.States[lineage.Parked] > 0 {
		if f, err := c.shared.Fleet(ctx, time.Second); err == nil { // else what is parked is all that is known
			d.behind = c.stalled(ctx, f)
		}
	}
	d.payload(ctx, c)
	d.spans(ctx, c)
	return d, nil
}

// treePatience is how long a tree is read before less of it is. trees.patience is it, but in tests.
const treePatience = 10 * time.Second

// tree reads the tree; less of it if it cannot be read in time, as when the servers are busy.
func (s *sharedTree) tree(ctx context.Context, client *settle.Client, ref history.EventRef, patience time.Duration) (*history.Tree, error) {
	for {
		within, cancel := context.WithTimeout(ctx, patience)
		t, err := client.Tree(within, history.TreeQuery{Event: ref.Event, Space: ref.Space, Stream: ref.Stream, MaxEvents: s.most})
		late := within.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil && t.More { // perhaps there is time for more next time
			s.most = min(4*s.most, treeEvents)
		}
		if err == nil || !late || s.most <= leastEvents {
			return t, err
		}
		s.most = max(s.most/8, leastEvents)
	}
}

// noEvent makes the error about an event that is not known one for a person.
func noEvent(ref history.EventRef, err error) error {
	if _, is := errors.AsType[*history.MissingError](err); is {
		return &missing{fmt.Sprintf("No event %s of stream %s is known in space %s: it was never sent, or longer ago than the deployment remembers", ref.Event, ref.Stream, ref.Space)}
	}
	if said, is := errors.AsType[*model.ServiceError](err); is && said.Code == model.CodeNotFound {
		return &missing{said.Text}
	}
	return err
}

// eventData is what the page of an event shows.
type eventData struct {
	Ref     history.EventRef
	Tree    *history.Tree
	Root    *history.TreeNode
	Payload model.Value
	Gone    string // why the payload is not there
	Trace   eventTrace
	Spans   string // those of the trace, as a tree, if this process keeps traces
	Why     map[history.EventRef]*questions.Event
	Rows    []treeRow
	Cut     int
	Cuts    []string // labels of the pauses that were cut from the axis
	From    time.Time
	Span    time.Duration
	Spaces  int
	Graph   treeGraph
	As      string // "list", "graph"
	Hidden  bool   // some events are of spaces that the visitor may not read

	q          *query
	horizon    time.Duration
	partitions int
	behind     map[int]*stall // partitions whose coordinators are behind, if an event is parked
}

// causes are the events that led to one, as the page shows them.
type causes struct {
	Shown []history.EventRef
	// More is how many repeat those that are shown, and Circle names the streams that send each other again and again; "" for none.
	More   int
	Circle string
}

// Causes returns the events that led to this one, nearest first. If they repeat, they are shown once.
func (d *eventData) Causes() *causes {
	chain := d.Tree.CausedBy
	lead, period := repeats(chain)
	if period == 0 {
		return &causes{Shown: chain}
	}
	c := &causes{Shown: chain[:lead+period], More: len(chain) - lead - period}
	names := make([]string, period)
	for i, ref := range chain[lead : lead+period] {
		names[i] = ref.Stream + " of " + ref.Space
	}
	slices.Reverse(names) // what sends comes first
	c.Circle = strings.Join(append(names, names[0]), " → ")
	return c
}

// leastRounds is how often events repeat before they are shown as a circle, and longestCircle how many streams it has at most.
const leastRounds, longestCircle = 3, 8

// repeats finds the shortest circle in which events follow from each other, up to the last of a chain: where it begins, and how long it is; 0, 0 for none.
func repeats(chain []history.EventRef) (lead, period int) {
	same := func(a, b *history.EventRef) bool { return a.Stream == b.Stream && a.Space == b.Space }
	for period = 1; period <= longestCircle; period++ {
		from := len(chain) - period
		for from > 0 && same(&chain[from-1], &chain[from-1+period]) {
			from--
		}
		if len(chain)-from >= leastRounds*period {
			return from, period
		}
	}
	return 0, 0
}

// eventTrace is the trace to which an event belongs.
type eventTrace struct {
	ID string // "" for none
	// Cause is the trace of the event that has caused it, and Of that event; it differs where a trace was lost.
	Cause string
	Of    *history.EventRef
}

// Lost reports whether the trace of the cause does not go on.
func (t *eventTrace) Lost() bool { return t.Of != nil && t.Cause != t.ID }

// traceOf returns the id in a W3C traceparent, "" if there is none.
func traceOf(parent string) string {
	parts := strings.Split(parent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}

// Next reports whether the space is to handle the event next.
func (d *eventData) Next() bool {
	w := d.Why[d.Root.EventRef]
	return d.Root.State == lineage.Queued && w != nil && w.Ahead == 0
}

// Failed counts the events that failed or were refused, and were not sent again.
func (d *eventData) Failed() int { return len(deadOf(d.Root)) }

// Open counts the events that have not ended.
func (d *eventData) Open() int { return len(openOf(d.Root)) }

// Until is until when sending the event again does nothing.
func (d *eventData) Until() time.Time {
	if d.Root.Sent.IsZero() {
		return time.Time{}
	}
	return d.Root.Sent.Add(d.horizon)
}

// Redriven is the event that was sent again for the root, nil if none was.
func (d *eventData) Redriven() *history.TreeNode { return redriveOf(d.Root) }

func redriveOf(n *history.TreeNode) *history.TreeNode {
	for _, c := range n.Caused {
		if c.Kind == history.KindRedrive {
			return c
		}
	}
	return nil
}

// Tabs are the forms of the tree.
func (d *eventData) Tabs() []filter {
	return []filter{{"Waterfall", d.q.Address("as", ""), 0, d.As == ""}, {"Graph", d.q.Address("as", "graph"), 0, d.As == "graph"}}
}

// StuckURL shows only what has failed or is open.
func (d *eventData) StuckURL() string { return d.q.Address("show", "stuck", "open", "") }
func (d *eventData) AllURL() string   { return d.q.Address("show", "", "open", "") }
func (d *eventData) Stuck() bool      { return d.q.Param("show") == "stuck" }

// hide removes what is about spaces that the visitor may not read.
func (d *eventData) hide(n *history.TreeNode) {
	if d.q.visitor.MayReadAll(n.Space) != nil {
		d.Hidden = true
		n.EventRef = history.EventRef{Space: "(a space that you may not read)"}
		n.Error, n.Result, n.Tx, n.Runtime = "", model.Value{}, "", ""
	}
	for _, c := range n.Caused {
		d.hide(c)
	}
}

// reasons asks the workers what the first open events wait for.
func (d *eventData) reasons(ctx context.Context, c *Console) {
	d.Why = map[history.EventRef]*questions.Event{}
	open := openOf(d.Root)
	refs := make([]history.EventRef, 0, questioned)
	for _, n := range open {
		if n.Stream != "" && n.State != lineage.Waiting && len(refs) < questioned {
			refs = append(refs, n.EventRef)
		}
	}
	found := make([]*questions.Event, len(refs))
	within, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	eachSpace(within, make([]string, len(refs)), func(ctx context.Context, i int) error {
		a, err := c.asks.Why(ctx, questions.Query{Space: refs[i].Space, Of: refs[i].Event, As: questions.KindEvent, Stream: refs[i].Stream})
		if err == nil {
			found[i] = a.Event
		}
		return nil // then the state is all that is known
	})
	for i, e := range found {
		if e != nil {
			d.Why[refs[i]] = e
		}
	}
}

// payload reads the payload of the root, and its trace.
func (d *eventData) payload(ctx context.Context, c *Console) {
	n := d.Root
	m, there, err := c.cfg.Bus.FindEvent(ctx, n.Space, n.Stream, n.Event)
	text := m.Payload
	if err == nil && (!there || m.Invalid != "") {
		text, err = history.Payload(ctx, c.cfg.Bus, n.EventRef)
	}
	if there {
		d.Trace.ID = traceOf(m.Trace.Parent)
	}
	if there && len(d.Tree.CausedBy) > 0 {
		by := d.Tree.CausedBy[0]
		if cause, is, err := c.cfg.Bus.FindEvent(ctx, by.Space, by.Stream, by.Event); err == nil && is {
			d.Trace.Cause, d.Trace.Of = traceOf(cause.Trace.Parent), &by
		}
	}
	switch {
	case err != nil && history.IsGone(err):
		d.Gone = "The payload is not in the lane any more."
	case err != nil:
		d.Gone = err.Error()
	case len(text) > 0:
		if d.Payload, err = model.ParseValue(text); err != nil {
			d.Payload = model.String(strings.ToValidUTF8(string(text), "�"))
		}
	}
}

// spans reads the spans of the trace to which the handling of the root belongs.
func (d *eventData) spans(ctx context.Context, c *Console) {
	if c.cfg.Traces == nil || d.Root.Commit == 0 {
		return
	}
	page, err := history.ReadEntries(ctx, c.cfg.Bus, d.Root.Space, history.LogQuery{Before: d.Root.Commit + 1, Limit: 1})
	if err != nil || len(page.Entries) == 0 {
		return // the page says what else is known
	}
	for i := range page.Entries[0].Steps {
		s := &page.Entries[0].Steps[i]
		if s.Event == nil || *s.Event != d.Root.EventRef {
			continue
		}
		if text, kept := c.cfg.Traces(traceOf(s.Trace)); kept {
			d.Spans = text
			return
		}
	}
}

// beginFollowUps gives events that a space has sent to itself, which pass through no lane, the end of their sender as their begin.
func beginFollowUps(n *history.TreeNode) {
	for _, c := range n.Caused {
		if c.Sent.IsZero() && c.Space == n.Space {
			c.Sent = n.Ended
		}
		beginFollowUps(c)
	}
}

// openOf returns the events of a tree that have not ended.
func openOf(n *history.TreeNode) (list []*history.TreeNode) {
	walk(n, func(n *history.TreeNode) {
		if !n.State.Ended() {
			list = append(list, n)
		}
	})
	return list
}

// deadOf returns the events of a tree that failed or were refused, and were not sent again.
func deadOf(n *history.TreeNode) (list []*history.TreeNode) {
	walk(n, func(n *history.TreeNode) {
		if (n.State == lineage.Failed || n.State == lineage.Refused) && redriveOf(n) == nil && n.Stream != "" {
			list = append(list, n)
		}
	})
	return list
}

func walk(n *history.TreeNode, f func(*history.TreeNode)) {
	f(n)
	for _, c := range n.Caused {
		walk(c, f)
	}
}

// eventState is the mark of an event.
func eventState(s lineage.State) string {
	switch s {
	case lineage.Handled:
		return "clean"
	case lineage.Failed, lineage.Refused, lineage.Expired:
		return "failed"
	case lineage.Parked:
		return "parked"
	case lineage.Queued:
		return "running"
	case lineage.Waiting:
		return "waiting"
	case lineage.Unknown:
		return "quarantined"
	}
	return "dormant"
}

// title says how the event and its tree have ended.
func (d *eventData) title() (title, state string) {
	n, others := d.Root, d.Tree.Events-1
	name := cut(n.Event, 48)
	failed, open := d.Failed(), d.Open()
	if n.State == lineage.Failed || n.State == lineage.Refused {
		if again := redriveOf(n); again != nil {
			return fmt.Sprintf("%s was %s, and sent again: %s", name, endWord(n.State), again.State), eventState(again.State)
		}
		return fmt.Sprintf("%s %s: %s", name, map[lineage.State]string{lineage.Failed: "failed", lineage.Refused: "was refused"}[n.State], cut(display.FirstLine(n.Error), 100)), "failed"
	}
	if !n.State.Ended() {
		if w := d.Why[n.EventRef]; w != nil {
			if d.tried(n) {
				return name + triedOr(w.Attempts, w.LastError, w.Reason), "parked"
			}
			return fmt.Sprintf("%s is %s: %s", name, n.State, plainReason(w.Reason)), eventState(n.State)
		}
		return fmt.Sprintf("%s is %s", name, n.State), eventState(n.State)
	}
	rejected := ""
	if n.State == lineage.Rejected {
		rejected = fmt.Sprintf("%s was rejected: %s", name, cut(display.FirstLine(n.Error), 100))
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%s that %s caused failed", partOf(failed, others), name), "failed"
	case open > 0:
		return fmt.Sprintf("%s that %s caused %s open", partOf(open, others), name, map[bool]string{true: "is", false: "are"}[open == 1]), "waiting"
	case d.Tree.More:
		return fmt.Sprintf("%s was %s; %s that it caused were read, none of which has failed, and there are more", name, n.State, display.Count(others, "event")), "waiting"
	case rejected != "":
		return rejected, eventState(n.State)
	case others == 0:
		return fmt.Sprintf("%s was %s, and sent nothing", name, n.State), eventState(n.State)
	}
	other := ""
	for _, state := range []lineage.State{lineage.Rejected, lineage.Cancelled, lineage.Expired} {
		if count := d.Tree.States[state]; count > 0 && state != n.State {
			other += fmt.Sprintf(", %s of them %s", display.Grouped(count), state)
		}
	}
	if other != "" {
		return fmt.Sprintf("%s was %s, and all that it caused has ended: %s%s", name, n.State, display.Count(others, "event"), other), eventState(n.State)
	}
	return fmt.Sprintf("%s was %s, and so was all that it caused: %s", name, n.State, display.Count(others, "event")), eventState(n.State)
}

// partOf counts events of all that an event has caused.
func partOf(some, all int) string {
	if all == 1 {
		return "the event"
	}
	return display.Grouped(some) + " of the " + display.Count(all, "event")
}

// asIs matches what a reason says before the reason: that the event waits, and what the space does.
var asIs = regexp.MustCompile(`^(?:it waits, and the space is (?:running|awake|asleep|loading): )?(?:the space does not answer: )?`)

// tried reports whether the event is at the head of its lane, after attempts that have failed.
func (d *eventData) tried(n *history.TreeNode) bool {
	w := d.Why[n.EventRef]
	return n.State == lineage.Queued && w != nil && w.Ahead == 0 && w.Attempts > 0
}

// triedOr returns that an event has failed and is tried again, or else why it waits.
func triedOr(attempts int, lastError, reason string) string {
	if attempts == 0 || lastError == "" { // a worker of an earlier version names no error
		return ": " + cut(display.FirstLine(plainReason(reason)), 120)
	}
	return fmt.Sprintf(" has failed %s, and is tried again: %s", display.Count(attempts, "time"), cut(display.FirstLine(lastError), 120))
}

// plainReason is a reason without what the page says already.
func plainReason(reason string) string { return asIs.ReplaceAllString(reason, "") }

func endWord(s lineage.State) string {
	if s == lineage.Failed {
		return "not handled"
	}
	return string(s)
}

// shown returns the page.
func (d *eventData) shown() *shown {
	s := &shown{
		Name: cut(d.Ref.Event, 24), CLI: fmt.Sprintf("settle tree %s --space %s --stream %s", shellWord(d.Ref.Event), d.Ref.Space, d.Ref.Stream), Data: d,
		Crumbs: []crumb{{"Spaces", "/spaces"}, {d.Ref.Space, pathOf("spaces", d.Ref.Space)}},
	}
	s.Title, s.State = d.title()
	s.Parts = []part{
		{ID: "seal", Template: "event-seal", Data: d},
		{ID: "acts", Template: "event-acts", Data: d},
		{ID: "cause", Template: "event-cause", Data: d},
		{ID: "values", Template: "event-values", Data: d},
		{ID: "tree", Template: "event-tree", Data: d},
		{ID: "spans", Template: "event-spans", Data: d},
	}
	return s
}

// treeRow is an event in the waterfall.
type treeRow struct {
	*history.TreeNode
	Key     string
	Depth   int
	Mark    string
	Word    string
	Name    string
	URL     string
	Text    string
	Why     string
	X, W    float64 // of its bar, in percent
	Late    string  // after the bar
	Folded  int     // events below that are not shown
	Unread  bool    // more are below that were not read
	OpenURL string
	Rest    bool // it stands for others: Folded of them
	Act     string
}

// fill makes the rows and their axis.
func (d *eventData) fill() {
	d.As = d.q.Param("as")
	spaces := map[string]bool{}
	walk(d.Root, func(n *history.TreeNode) { spaces[n.Space] = true })
	d.Spaces = len(spaces)
	d.rows(d.Root, 0, d.openSet())
	if len(d.Rows) > treeRows {
		d.Cut, d.Rows = len(d.Rows)-treeRows, d.Rows[:treeRows]
	}
	axis := newAxis(d.Root, time.Now())
	d.From, d.Span, d.Cuts = axis.from, axis.span, axis.labels
	for i := range d.Rows {
		if r := &d.Rows[i]; !r.Rest {
			r.X, r.W = axis.place(r.TreeNode)
		}
	}
	if d.As == "graph" {
		d.Graph = drawTree(d.Rows)
	}
}

// openSet are the events that the visitor has unfolded.
func (d *eventData) openSet() map[string]bool {
	set := map[string]bool{}
	for key := range strings.SplitSeq(d.q.Param("open"), " ") {
		set[key] = true
	}
	return set
}

// keyOf names an event in the address.
func keyOf(n *history.TreeNode) string { return n.Space + "/" + n.Event }

// well reports whether all of a tree was handled, as far as it was read: all events, and more that were not read.
func well(n *history.TreeNode) (all, more int, is bool) {
	is = true
	walk(n, func(n *history.TreeNode) {
		all++
		more += n.More
		is = is && (n.State == lineage.Handled || n.State == lineage.Rejected || n.State == lineage.Cancelled)
	})
	return all, more, is
}

// rows adds an event and what it has caused. Of a large tree, what is well is folded.
func (d *eventData) rows(n *history.TreeNode, depth int, open map[string]bool) {
	d.Rows = append(d.Rows, d.row(n, depth))
	at := len(d.Rows) - 1
	key := keyOf(n)
	large := d.Tree.Events > unfolded || d.Stuck()
	if all, more, is := well(n); large && is && depth > 0 && all+more > 1 && !open[key] {
		d.Rows[at].Folded, d.Rows[at].Unread, d.Rows[at].OpenURL = all-1, more > 0, d.openURL(open, key)
		return
	}
	rest, unread, kept := 0, 0, 0
	for _, c := range n.Caused {
		all, more, is := well(c)
		if large && is && !open[key] {
			if kept++; kept > alike || d.Stuck() {
				rest, unread = rest+all, unread+more
				continue
			}
		}
		d.rows(c, depth+1, open)
	}
	if rest > 0 {
		text := "well: handled, rejected or cancelled"
		if unread > 0 {
			text = "well, as far as they were read"
		}
		d.Rows = append(d.Rows, treeRow{TreeNode: &history.TreeNode{}, Key: "rest-" + key, Depth: min(depth+1, 12), Mark: "clean", Rest: true, Folded: rest, OpenURL: d.openURL(open, key), Text: text})
	}
	if n.More > 0 {
		d.Rows = append(d.Rows, treeRow{TreeNode: &history.TreeNode{}, Key: "more-" + key, Depth: min(depth+1, 12), Mark: "dormant", Rest: true, Folded: n.More, URL: eventURL(n.Space, n.Stream, n.Event), Text: "not read: open this event alone"})
	}
}

func (d *eventData) openURL(open map[string]bool, key string) string {
	list := []string{key}
	for k := range open {
		if k != "" {
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return d.q.Address("open", strings.Join(list, " ")) + "#t-" + key
}

// row is the row of an event.
func (d *eventData) row(n *history.TreeNode, depth int) treeRow {
	r := treeRow{TreeNode: n, Key: keyOf(n), Depth: min(depth, 12), Mark: eventState(n.State), Word: string(n.State)}
	r.Name = n.Space
	if n.Stream != "" {
		r.Name, r.URL = n.Space+" · "+n.Stream, eventURL(n.Space, n.Stream, n.Event)
	}
	if d.tried(n) {
		r.Mark, r.Word = "parked", "tried again"
	}
	switch n.Kind {
	case history.KindNotice:
		r.Text = "tells the origin"
	case history.KindRedrive:
		r.Text = "sent again"
	}
	if n.Attempts > 1 {
		r.Text = strings.TrimPrefix(r.Text+", "+fmt.Sprintf("%d attempts", n.Attempts), ", ")
	}
	if w := d.Why[n.EventRef]; w != nil {
		r.Why = plainReason(w.Reason)
		if w.Ahead > 0 {
			r.Why += fmt.Sprintf("; %s before it", display.Count(w.Ahead, "event"))
		}
	}
	if n.Error != "" {
		r.Why = display.FirstLine(n.Error)
	}
	switch {
	case n.State == lineage.Parked && r.Why == "":
		r.Why = "a coordinator puts it into its lane"
		if d.Tree.Unattended {
			r.Why = "no coordinator answers: it stays until one runs"
		} else if behind := d.behind[d.partitionOfSender(n)]; behind != nil {
			r.Why = "the coordinator that puts it into its lane is behind: none of partition " + strconv.Itoa(d.partitionOfSender(n)) + " has left since " + behind.Since.UTC().Format("15:04:05")
			if behind.Reason != "" {
				r.Why += ": " + behind.Reason
			}
		}
	case !n.Sent.IsZero() && !n.Ended.IsZero():
		r.Late = duration(n.Ended.Sub(n.Sent))
	}
	return r
}

// partitionOfSender is the partition of the space that has sent an event, -1 if none has.
func (d *eventData) partitionOfSender(n *history.TreeNode) int {
	tx, minted := model.OriginOf(n.Event)
	if !minted {
		return -1
	}
	return model.PartitionOf(tx.Space, d.partitions)
}

// Waits reports whether the event waits for its time: a timer that was cancelled has a time, and does not end then.
func (r *treeRow) Waits() bool {
	return !r.Until.IsZero() && r.Ended.IsZero() && !r.State.Ended()
}

// due is when an event is due that waits for its time, "" for others.
func (r *treeRow) due() string {
	if !r.Waits() {
		return ""
	}
	return "due " + r.Until.UTC().Format("2006-01-02 15:04:05")
}
