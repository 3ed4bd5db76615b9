package console

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/space"
)

func documentPage() page {
	return page{
		name: "document", pattern: "/spaces/{space}/documents/{document}", under: "spaces", params: []string{"before"}, everyone: true,
		open: func(c *Console, q *query) (view, error) {
			d := &documentView{spaceReader: spaceReader{c: c, space: q.Path("space")}, q: q, doc: q.Path("document")}
			if err := need("space", d.space); err != nil {
				return view{}, err
			}
			return view{load: d.load, watch: d.watch, every: 5 * time.Second}, need("document", d.doc)
		},
	}
}

// documentView is the page of a document.
type documentView struct {
	spaceReader
	q   *query
	doc string

	past *history.Page // what was read last
	upTo uint64        // the head of the log then
}

// past versions that a page lists.
const pastVersions = 30

// changeRow is a change of the document.
type changeRow struct {
	Revision uint64
	Time     time.Time
	Runtime  string
	Kind     history.StepKind
	Name     string
	Event    *history.EventRef
	Causes   []string // the documents whose changes made a node run
	Places   []history.Place
	More     int
}

// documentData is what the template gets.
type documentData struct {
	Space, Doc  string
	Value       model.Value
	Revision    uint64
	Node        *questions.GraphNode // that derives it, nil if handlers write it
	State, Word string
	Inputs      []inputLink // what the node reads
	Further     []inputLink // what those were computed of, nearest first
	Readers     []string
	Last        *changeRow
	Note        string
	Here        bool
	Back        string
}

// inputLink is something that a node reads: a document of this space or of another one with its value, or another thing without one.
type inputLink struct {
	Name, URL string
	Value     model.Value
}

const (
	// furtherMost bounds the documents that are shown besides those that the node itself reads.
	furtherMost = 24
	// elsewhereMost bounds the documents of other spaces whose values are read for a page.
	elsewhereMost = 8
)

func (d *documentView) load(ctx context.Context) (*shown, error) {
	if err := refuse(d.q.visitor.MayRead(d.space, d.doc)); err != nil {
		return nil, err
	}
	if err := d.read(ctx); err != nil {
		return nil, err
	}
	a := d.c.ask(ctx, d.space, d.q)
	data := &documentData{Space: d.space, Doc: d.doc, Back: d.q.at.String(), Note: a.GraphError}
	stored := d.contents.Doc(d.doc)
	data.Value, data.Revision = stored.Value, stored.Seq
	d.derive(ctx, data, a.Graph)
	if stored.Seq == 0 && data.Node == nil && len(data.Readers) == 0 {
		return nil, &missing{fmt.Sprintf("Space %s has no document %s, and no node that would derive it is known", d.space, d.doc)}
	}
	rows, err := d.history(ctx)
	if err != nil {
		return nil, err
	}
	if len(rows) > 0 && d.q.Param("before") == "" {
		data.Last = &rows[0]
	}
	for _, o := range d.c.observations(d.space) {
		data.Here = data.Here || o.Document == d.doc
	}
	s := &shown{Name: d.space + "/" + d.doc, CLI: "settle history " + d.space + " " + d.doc, Crumbs: []crumb{{"Spaces", "/spaces"}, {d.space, pathOf("spaces", d.space)}}}
	s.Title, s.State = d.title(data)
	past := map[string]any{"Space": d.space, "Rows": rows, "End": string(d.past.End), "Older": "", "Newest": ""}
	if d.q.Param("before") != "" {
		past["Newest"] = d.q.Address("before", "")
	}
	if d.past.End != history.EndFirst && d.past.End != history.EndPurged && d.past.Next > 0 {
		past["Older"] = d.q.Address("before", strconv.FormatUint(d.past.Next, 10))
	}
	s.Parts = []part{
		{ID: "value", Template: "document-value", Data: data},
		{ID: "source", Template: "document-source", Data: data},
		{ID: "past", Template: "document-past", Data: past},
	}
	return s, nil
}

// title is the value, if it is short.
func (d *documentView) title(data *documentData) (string, string) {
	if action, t, is := space.TaskIn(d.doc, data.Value); is {
		r := taskRow{Task: t}
		return fmt.Sprintf("Task %s of %s is %s", cut(t.Key, 48), action, r.Word()), r.Mark()
	}
	switch {
	case data.Value.IsAbsent() && model.IsTaskDoc(d.doc):
		return "This task has ended, and is removed", "dormant"
	case data.Node != nil && data.Node.Error != "":
		text := " could not be computed: "
		if !data.Value.IsAbsent() {
			text = " could not be computed again: "
		}
		return d.doc + text + cut(display.FirstLine(data.Node.Error), 120), "failed"
	case data.Value.IsAbsent() && data.Node != nil && (data.Node.Live || data.Node.Observed):
		return d.doc + " has no value", data.State
	case data.Value.IsAbsent() && data.Node != nil:
		return d.doc + " was not computed: nothing reads it", "dormant"
	case data.Value.IsAbsent():
		return d.doc + " was deleted", "dormant"
	}
	text := data.Value.String()
	if len(text) > 60 || branch(data.Value) {
		text = shape(data.Value)
	}
	state := ""
	if data.Node != nil {
		state = data.State
	}
	return d.doc + " is " + text, state
}

// shape says how large a value is.
func shape(v model.Value) string {
	switch v.Kind() {
	case model.KindObject:
		return "an object with " + display.Count(v.Len(), "member")
	case model.KindArray:
		return "a list of " + display.Count(v.Len(), "element")
	}
	return "a text of " + display.Bytes(int64(len(v.String())))
}

// derive fills in what the graph knows.
func (d *documentView) derive(ctx context.Context, data *documentData, g *questions.Graph) {
	if g == nil {
		return
	}
	if g.State != questions.Awake && g.Note != "" {
		data.Note = g.Note
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Output == d.doc {
			data.Node = n
			data.State, data.Word = nodeMark(n)
		}
		if slices.Contains(n.Sources, d.doc) {
			data.Readers = append(data.Readers, n.ID)
		}
	}
	if data.Node == nil {
		return
	}
	for _, e := range g.Edges {
		if e.From == data.Node.ID && !slices.Contains(data.Readers, e.To) {
			data.Readers = append(data.Readers, e.To)
		}
	}
	d.inputs(ctx, data, g)
}

// inputs fills in what the node reads, and what that was computed of in turn: a wrong value may come from several nodes away.
func (d *documentView) inputs(ctx context.Context, data *documentData, g *questions.Graph) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	writers := writersOf(g)
	elsewhere := 0
	shown := map[string]bool{data.Doc: true}
	level := []*questions.GraphNode{data.Node}
	for first := true; len(level) > 0 && len(data.Further) < furtherMost; first = false {
		var next []*questions.GraphNode
		add := func(link inputLink) {
			switch {
			case shown[link.Name] && !first:
			case first:
				data.Inputs = append(data.Inputs, link)
			case len(data.Further) < furtherMost:
				data.Further = append(data.Further, link)
			}
			shown[link.Name] = true
		}
		for _, n := range level {
			for _, name := range n.Sources {
				if !shown[name] || first {
					add(d.source(ctx, name, &elsewhere))
				}
			}
			for _, from := range writers[n.ID] {
				name := from.Output
				if name == "" {
					name = from.ID
				}
				if !shown[name] {
					next = append(next, from)
				}
				if from.Output == "" {
					add(inputLink{Name: name, URL: graphURL(d.space, from.ID)})
				} else {
					add(d.source(ctx, name, &elsewhere))
				}
			}
		}
		level = next
	}
}

// writersOf returns, by the id of each node, the nodes whose documents it reads.
func writersOf(g *questions.Graph) map[string][]*questions.GraphNode {
	nodes := make(map[string]*questions.GraphNode, len(g.Nodes))
	for i := range g.Nodes {
		nodes[g.Nodes[i].ID] = &g.Nodes[i]
	}
	writers := map[string][]*questions.GraphNode{}
	for _, e := range g.Edges {
		if from := nodes[e.From]; from != nil && !e.Order && !slices.Contains(writers[e.To], from) {
			writers[e.To] = append(writers[e.To], from)
		}
	}
	return writers
}

// source is a document that a node reads, with its value if the visitor may read it. elsewhere counts the values that were read from other spaces.
func (d *documentView) source(ctx context.Context, name string, elsewhere *int) inputLink {
	link := inputLink{Name: name}
	if where, doc, is := strings.Cut(strings.TrimPrefix(name, "@"), "/"); is && strings.HasPrefix(name, "@") {
		if need("space", where) != nil || need("document", doc) != nil || d.q.visitor.MayRead(where, doc) != nil {
			return link
		}
		link.URL = pathOf("spaces", where, "documents", doc)
		if *elsewhere++; *elsewhere <= elsewhereMost {
			if stored, err := history.Read(ctx, d.c.cfg.Bus, where, doc); err == nil && stored != nil { // the link leads to it without its value, too
				link.Value = stored.Value
			}
		}
		return link
	}
	if model.CheckName("document", name) == nil {
		link.URL = pathOf("spaces", d.space, "documents", name)
		if d.q.visitor.MayRead(d.space, name) == nil {
			link.Value = d.contents.Doc(name).Value
		}
	}
	return link
}

// history returns the changes, the newest first.
func (d *documentView) history(ctx context.Context) (rows []changeRow, err error) {
	if d.past == nil || d.upTo != d.contents.Seq {
		before, _ := strconv.ParseUint(d.q.Param("before"), 10, 64) // 0 for what is no number
		page, err := history.ReadEntries(ctx, d.c.cfg.Bus, d.space, history.LogQuery{Document: d.doc, Limit: pastVersions, Before: before})
		if err != nil {
			return nil, err
		}
		d.past, d.upTo = page, d.contents.Seq
	}
	for _, e := range slices.Backward(d.past.Entries) {
		for i := range slices.Backward(e.Steps) {
			s := &e.Steps[i]
			rows = append(rows, changeRow{e.Revision, e.Time, e.Runtime, s.Kind, s.Name, s.Event, s.Causes, s.Changes, s.More})
		}
	}
	return rows, nil
}
