package console

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/questions"
	"github.com/settlehq/settle/status"
)

// lines are concerns as text: what, where it leads, and what it says.
func lines(list []concern) string {
	var b strings.Builder
	for i := range list {
		c := &list[i]
		fmt.Fprintf(&b, "%s [%s] %s: %s", c.State, c.URL, c.What, c.Text)
		if c.Title != "" {
			fmt.Fprintf(&b, " (%s)", c.Title)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// reporting is a fleet with one worker and these figures.
func reporting(g *status.Figures) *fleet.Fleet {
	return &fleet.Fleet{At: time.Unix(1_000_000, 0), Workers: []fleet.Member{{ID: "w1", State: fleet.Here, Figures: g}}}
}

func wantLines(t *testing.T, what string, list []concern, want ...string) {
	t.Helper()
	if got := lines(list); got != strings.Join(want, "\n")+"\n" {
		t.Errorf("%s:\n%swant\n%s", what, got, strings.Join(want, "\n"))
	}
}

// dark makes a worker report so many spaces with computations that fail.
func dark(g *status.Figures, spaces int) {
	for i := range spaces {
		g.FailingNodes = append(g.FailingNodes, status.FailingNodes{Space: fmt.Sprint("d", i), Count: 2, Nodes: []status.FailingNode{{Node: "light", Error: "no light"}}})
	}
	g.FailingSpaceCount, g.FailingNodeCount = spaces, 2*spaces
}

// A few spaces with computations that fail are a line each, which leads to the space; more of them are one line with the numbers, which leads to the list.
func TestConcerns_ComputationsThatFail(t *testing.T) {
	var g status.Figures
	dark(&g, 1)
	g.FailingNodes[0].Readers, g.FailingNodes[0].ReaderCount = []string{"far"}, 1
	wantLines(t, "one", computingConcerns(reporting(&g)), "failed [/spaces/d0] d0: 2 computations fail, and space far reads what follows: light: no light")
	g = status.Figures{}
	dark(&g, 4)
	wantLines(t, "four", computingConcerns(reporting(&g)),
		"failed [/spaces?state=computation+fails] 4 spaces: 8 computations fail, such as light of d0: no light (8 computations fail in 4 spaces)")
}

// Actions that fail in more than a few spaces are one line with the number of actions and of spaces, for each of what has become of their tasks.
func TestConcerns_ActionsThatFailInManySpaces(t *testing.T) {
	var g status.Figures
	for i := range 12 {
		g.Failing = append(g.Failing, status.FailingAction{Space: fmt.Sprint("s", i), Action: fmt.Sprint("ship", i%3), Key: "o1", Attempts: 5, Error: "closed", At: time.Unix(999_999-int64(i), 0)})
	}
	g.Failing = append(g.Failing, status.FailingAction{Space: "s1", Action: "sail", Key: "o2", GivenUp: 1, Attempts: 1, Error: "sunk", At: time.Unix(999_000, 0)})
	for i := range 4 {
		g.Failing = append(g.Failing, status.FailingAction{Space: "s1", Action: "row", Key: fmt.Sprint("o", i), GivenUp: 1, Handled: true, Attempts: 1, Error: "wet", At: time.Unix(998_000, 0)})
	}
	g.FailingCount = len(g.Failing)
	wantLines(t, "many", failingConcerns(reporting(&g)),
		"failed [/spaces/s1#tasks] s1: task o2 of action sail was given up after 1 attempt: sunk",
		"parked [/spaces?state=task+fails] 12 spaces: 3 actions fail in 12 spaces, such as in s0: task o1 of action ship0 is tried again after 5 failed attempts: closed (3 actions fail in 12 spaces)",
		"dormant [/doctor] s1: 1 action fails in 1 space, such as in s1: task o0 of action row was given up after 1 attempt: wet; its program handles that (1 action fails in 1 space)")
}

// A circle names all its spaces, and one node that does not converge is named. More of them are one line.
func TestConcerns_WhatDoesNotConverge(t *testing.T) {
	var g status.Figures
	add := func(u status.Unsettled) { g.Unsettled = append(g.Unsettled, u); g.UnsettledCount++ }
	add(status.Unsettled{Space: "north", Nodes: []string{"x"}, Count: 1, Through: []string{"north/x", "south/y"}})
	add(status.Unsettled{Space: "turn", Nodes: []string{"a"}, Count: 1})
	add(status.Unsettled{Space: "a", Nodes: []string{"x"}, Count: 1, Through: []string{"a/x", "b/y", "c/x", "d/x", "b/x"}})
	wantLines(t, "three", unsettledConcerns(reporting(&g)),
		"invalid [/spaces/north] north and south: their computations do not converge: north/x -> south/y -> north/x",
		"invalid [/spaces/turn] turn: a does not converge",
		"invalid [/spaces/a] a, b and 2 more: their computations do not converge: a/x -> b/y -> c/x -> d/x -> b/x -> a/x")
	if n := unwell(reporting(&g)); n != 7 {
		t.Errorf("%d spaces are not well, want 7", n)
	}
	add(status.Unsettled{Space: "turn2", Nodes: []string{"a", "b"}, Count: 2, Since: time.Unix(5, 0)})
	g.Unsettled[0].Since, g.Unsettled[1].Since, g.Unsettled[2].Since = time.Unix(7, 0), time.Unix(7, 0), time.Unix(7, 0)
	wantLines(t, "four", unsettledConcerns(reporting(&g)),
		"invalid [/spaces?state=does+not+converge] 4 spaces: their computations do not converge, such as in turn2: 2 nodes do not converge (Computations of 4 spaces do not converge)")
}

// The spaces that are not well are counted once each, also those that workers do not name.
func TestUnwell_CountsEachSpaceOnce(t *testing.T) {
	g := status.Figures{
		Unsettled: []status.Unsettled{{Space: "a"}}, UnsettledCount: 3,
		FailingNodes: []status.FailingNodes{{Space: "a", Readers: []string{"b", "c"}, ReaderCount: 4}}, FailingSpaceCount: 6,
		Failing: []status.FailingAction{{Space: "b"}, {Space: "d", GivenUp: 1}, {Space: "e", GivenUp: 1, Handled: true}},
	}
	for i := range g.Failing {
		g.Failing[i].At = time.Unix(1_000_000, 0)
	}
	f := reporting(&g)
	f.Stuck, f.StuckCount = []fleet.Stuck{{Stuck: status.Stuck{Space: "c"}}, {Stuck: status.Stuck{Space: "f"}}}, 12
	if n := unwell(f); n != 5+2+2+5+10 { // a b c d f
		t.Errorf("%d spaces are not well", n)
	}
}

// The texts in the list of spaces name no space that the visitor does not see.
func TestSpaces_NameNoHiddenSpace(t *testing.T) {
	g := status.Figures{
		Unsettled:    []status.Unsettled{{Space: "north", Through: []string{"north/x", "secret/y"}}},
		FailingNodes: []status.FailingNodes{{Space: "secret", Count: 1, Readers: []string{"far"}}, {Space: "near", Count: 1, Readers: []string{"secret"}}},
	}
	marks := markedSpaces(reporting(&g), nil, func(space string) bool { return space != "secret" })
	for space, row := range marks { // any order: each is checked
		if space != "secret" && strings.Contains(row.Text, "secret") {
			t.Errorf("%s: %s", space, row.Text)
		}
	}
	if far := marks["far"]; far.Word != wordComputing || len(marks) != 4 {
		t.Errorf("%+v", marks)
	}
}

// A computation that fails while something observes it: the overview names the space, the computation and its error, and the list of spaces has the space, and
// the one that reads it, before those that are well. All is well when it succeeds again.
func TestIncident_AFailingComputation(t *testing.T) {
	p := office(nil)
	light, seen, glow := settle.NewDerived[int]("light"), settle.NewDerived[int]("seen"), settle.NewDerived[int]("glow")
	light.Compute(p, func(v *settle.View) (int, error) {
		if n := count.Get(v); n < 0 {
			return 0, fmt.Errorf("no light below %d", n)
		}
		return 1, nil
	})
	seen.Compute(p, func(v *settle.View) (int, error) { return light.In("lamp").Get(v), nil })
	glow.Compute(p, func(v *settle.View) (int, error) { return seen.In("wall").Get(v), nil })
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.send("lamp", "add", "a1", -1)
	w.send("wall", "add", "a1", 1)
	w.send("abbey", "add", "a1", 1)
	w.until("/spaces/abbey/events/add/a1", "a1 was handled")
	w.until("/", "All is well")
	w.watches("wall", "seen")
	w.names("/", "lamp: a computation fails, and space wall reads what follows: light: no light below -1", "1 space is well")
	w.names(w.clicks("lamp"), "light failed: no light below -1")
	w.names("/spaces", "Computations of 2 spaces fail", "computation fails", "it reads what follows from a computation of space lamp that fails")
	if text := visible(w.until("/spaces?state=computation+fails", "lamp")); strings.Contains(text, "abbey") {
		t.Error(text)
	}
	w.names(w.clicks("why"), "no light below -1")
	w.names("/spaces/lamp/graph", "light failed, of 4 nodes")
	const reads = "reads what follows from light of space lamp, which fails: no light below -1"
	for _, page := range []string{"/spaces/wall", "/spaces/wall/graph"} { // that of the reader names the cause, and leads to it
		text := w.until(page, "wall "+reads)
		if to := link(text, "light of space lamp"); to != "/spaces/lamp/graph?why=light" || !strings.Contains(visible(text), "seen reads what follows from light of space lamp") {
			t.Errorf("%s leads to %q: %s", page, to, visible(text))
		}
	}
	w.watches("abbey", "glow")
	w.names("/spaces/abbey", "abbey reads of wall, which "+reads, "glow reads of space wall, which reads what follows from light of space lamp")
	w.send("lamp", "add", "a2", 5)
	w.until("/", "All is well")
	w.until("/", "3 spaces are well")
	w.names("/spaces/wall", "wall is well")
	w.names("/spaces/abbey", "abbey is well")
}

// The origins of what a space reads are those of its live nodes, and name nothing that the visitor does not see.
func TestOrigins_OfWhatIsRead(t *testing.T) {
	g := status.Figures{FailingNodes: []status.FailingNodes{
		{Space: "lamp", Count: 3, Nodes: []status.FailingNode{{Node: "light", Error: "no light"}}, Docs: []string{"light"}, Readers: []string{"wall"}, ReaderCount: 12},
	}}
	node := func(live bool, source string) *questions.Graph {
		return &questions.Graph{Nodes: []questions.GraphNode{{ID: "a", Live: live, Sources: []string{source}}}}
	}
	for _, c := range []struct {
		space string
		graph *questions.Graph
		hides string
		want  string
	}{
		{"wall", nil, "", "it reads what follows from light of space lamp"},
		{"wall", nil, "lamp", "it reads what follows from a computation of another space"},
		{"hall", node(true, "@lamp/light"), "", "a reads what follows from light of space lamp"}, // although the worker does not name it
		{"hall", node(false, "@lamp/light"), "", ""},
		{"hall", node(true, "@lamp/heat"), "", ""},
		{"hall", node(true, "light"), "", ""},
		{"hall", node(true, "@wall/seen"), "", "a reads of space wall, which reads what follows from light of space lamp"},
		{"hall", node(true, "@wall/seen"), "wall", ""},
		{"lamp", nil, "", ""},
	} {
		got := ""
		for _, o := range originsOf(reporting(&g), c.space, c.graph, hiding(c.hides)) {
			got += o.Reads() + o.What()
			if (o.Error != "" || o.URL != "" || o.Others != 0) != (c.hides != "lamp") {
				t.Errorf("%+v", o)
			}
		}
		if got != c.want {
			t.Errorf("%s that hides %q: %q, want %q", c.space, c.hides, got, c.want)
		}
	}
}

// A circle over several spaces is on the pages of each of them, with a link to each document, and names no space that the visitor does not see.
func TestCircles_AreOnThePagesOfTheirSpaces(t *testing.T) {
	g := status.Figures{Unsettled: []status.Unsettled{
		{Space: "heat", Nodes: []string{"setting"}, Count: 1, Through: []string{"heat/setting", "vent/opening"}},
		{Space: "ring", Nodes: []string{"a"}, Count: 1, Way: []string{"a", "a"}},
	}}
	for _, c := range []struct{ space, hides, steps, title string }{
		{"heat", "", "heat/setting /spaces/heat/graph?why=setting vent/opening /spaces/vent/graph?why=opening", "heat and vent derive from each other and do not converge"},
		{"vent", "", "heat/setting /spaces/heat/graph?why=setting vent/opening /spaces/vent/graph?why=opening", "vent and heat derive from each other and do not converge"},
		{"heat", "vent", "heat/setting /spaces/heat/graph?why=setting another space", "heat and another space derive from each other and do not converge"},
		{"ring", "", "", ""}, // its graph has the way round
		{"wall", "", "", ""},
	} {
		var steps []string
		list := circlesOf(reporting(&g), c.space, hiding(c.hides))
		for _, one := range list {
			for _, s := range one.Steps {
				steps = append(steps, strings.TrimSpace(s.Text()+" "+s.URL))
			}
		}
		if got := strings.Join(steps, " "); got != c.steps {
			t.Errorf("%s that hides %q: %q", c.space, c.hides, got)
		}
		if title, state := titleOf(c.space, "well", "clean", list); c.title != "" && (title != c.title || state != "invalid") || c.title == "" && title != "well" {
			t.Errorf("%s that hides %q: %q, %s", c.space, c.hides, title, state)
		}
		if title, _ := titleOf(c.space, "a handler failed", "failed", list); title != "a handler failed" {
			t.Errorf("%s: %q hides what has failed", c.space, title)
		}
	}
}

// hiding is a visitor that does not see a space.
type hiding string

func (h hiding) SeesSpace(space string) bool { return space != string(h) }

func (h hiding) MayReadAll(space string) error {
	if space == string(h) {
		return errors.New("hidden")
	}
	return nil
}
