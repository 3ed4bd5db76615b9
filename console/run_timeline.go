package console

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// attemptRow is an attempt in a list.
type attemptRow struct {
	Work           string
	Number         int
	State, Word    string
	Started, Ended time.Time
	Took           time.Duration
	Args           string
	Out            string
	Step           int
}

// rankOf orders attempts: those that failed or are under way first.
func rankOf(of runs.State) int {
	return slices.Index([]runs.State{runs.Failed, runs.Running, runs.Cancelled, runs.Done}, of)
}

func attemptOf(a *runs.Attempt) attemptRow {
	r := attemptRow{Work: a.Work, Number: a.Number, State: runState(a.State), Word: string(a.State), Started: msTime(a.Started), Ended: msTime(a.Ended), Args: argsText(a), Step: a.Step}
	if a.Ended > 0 {
		r.Took = time.Duration(a.Ended-a.Started) * time.Millisecond
	}
	switch {
	case a.Error != nil:
		r.Out = a.Error.Error()
	case a.Result != nil:
		r.Out = string(a.Result)
	}
	return r
}

// argsText are the arguments of an attempt, as a call has them.
func argsText(a *runs.Attempt) string {
	var parts []string
	if v := valueOf(a.Args); v.Kind() == model.KindArray {
		for x := range v.Elements() {
			parts = append(parts, x.String())
		}
	} else if !v.IsAbsent() {
		parts = append(parts, v.String())
	}
	for k, x := range valueOf(a.Named).All() {
		parts = append(parts, k+" = "+x.String())
	}
	return strings.Join(parts, ", ")
}

func valueOf(v jsontext.Value) model.Value {
	if v == nil {
		return model.Value{}
	}
	x, err := model.ParseValue([]byte(v))
	if err != nil {
		return model.String(string(v))
	}
	return x
}

// callGroup are the attempts of one call in the source.
type callGroup struct {
	Key, What                     string
	Line                          int32
	Done, Failed, Open, Cancelled int
	Attempts                      []attemptRow // of a group with few
	Total                         int
	Median, Longest               time.Duration
	Bars                          template.HTML
	URL                           string
	State, Word                   string
	first                         int64
}

// fewAttempts is up to how many attempts a group lists, and barRows how many rows of bars it draws.
const fewAttempts, barRows = 6, 36

// group groups the attempts by their place in the source, in the order of their first start.
func (d *runData) group() {
	t := d.Timeline
	if len(t.Attempts) == 0 {
		return
	}
	index := map[string]*callGroup{}
	members := map[*callGroup][]*runs.Attempt{}
	from, to := t.Attempts[0].Started, int64(0)
	open := false
	for i := range t.Attempts {
		a := &t.Attempts[i]
		from, to = min(from, a.Started), max(to, a.Started, a.Ended)
		key := fmt.Sprintf("%d-%s%s", a.Line, a.Action, a.Child)
		g := index[key]
		if g == nil {
			g = &callGroup{Key: key, What: cmp.Or(a.Action, a.Child), Line: a.Line, first: a.Started}
			index[key] = g
			d.Groups = append(d.Groups, g)
		}
		g.count(a)
		open = open || a.State == runs.Running
		members[g] = append(members[g], a)
	}
	if e := d.Status.Ended; e > to {
		to = e
	}
	if len(d.Status.Waiting) > 0 { // what is under way has no end: a third of the time so far is left for it
		to += max((to-from)/8, 1000)
	}
	d.From, d.To = msTime(from), msTime(to)
	for _, g := range d.Groups {
		g.finish(members[g], from, to)
		g.URL = d.groupURL(g)
	}
}

func (g *callGroup) count(a *runs.Attempt) {
	g.Total++
	switch a.State {
	case runs.Done:
		g.Done++
	case runs.Failed:
		g.Failed++
	case runs.Running:
		g.Open++
	default:
		g.Cancelled++
	}
}

// groupURL leads to the node of a group.
func (d *runData) groupURL(g *callGroup) string {
	if d.Status.Graph == nil {
		return ""
	}
	for fn := range d.Status.Graph.Funcs {
		for node := range d.Status.Graph.Funcs[fn].Nodes {
			if n := &d.Status.Graph.Funcs[fn].Nodes[node]; n.Line == g.Line && slices.Contains(callsAt(n), g.What) {
				return d.q.Address("node", nodeID(fn, node), "steps", "") + "#node"
			}
		}
	}
	return ""
}

// finish computes the rest of a group, and draws its bars between two times.
func (g *callGroup) finish(list []*runs.Attempt, from, to int64) {
	var took []time.Duration
	for _, a := range list {
		if a.State == runs.Done || a.State == runs.Failed {
			took = append(took, time.Duration(a.Ended-a.Started)*time.Millisecond)
		}
	}
	if slices.Sort(took); len(took) > 0 {
		g.Median, g.Longest = took[len(took)/2], took[len(took)-1]
	}
	switch {
	case g.Open > 0:
		g.State, g.Word = "running", fmt.Sprintf("%s under way", display.Grouped(g.Open))
	case g.Done == 0 && g.Failed > 0:
		g.State, g.Word = "failed", "failed"
	case g.Done == 0:
		g.State, g.Word = "dormant", "cancelled"
	default:
		g.State, g.Word = "clean", "done"
	}
	if g.Total <= fewAttempts {
		for _, a := range list {
			g.Attempts = append(g.Attempts, attemptOf(a))
		}
	}
	g.Bars = bars(list, from, to)
}

// bar is one rectangle: an attempt, or several of the same state that begin at the same place of a row as far as that can be seen.
type bar struct {
	row        int
	class      string
	from, till int64
}

// leastBar is the least width of a bar, in thousandths of the width of all, and wideBar that in a picture of more than manyBars attempts.
const leastBar, wideBar, manyBars = 4, 16, 2000

// bars draws attempts as bars in time: one row each, or several attempts a row if there are many. Attempts that overlap are in rows of their own
// as far as there are rows. However many attempts there are, it is a picture of some thousand bars at most.
func bars(list []*runs.Attempt, from, to int64) template.HTML {
	span, least := float64(max(to-from, 1)), leastBar
	if len(list) > manyBars {
		least = wideBar
	}
	var ends []int64
	var all []bar
	type place struct {
		row, at int
		class   string
	}
	drawn := map[place]int{}
	for i, a := range list {
		end, class := a.Ended, runState(a.State)
		if end == 0 {
			end, class = to, class+" open"
		}
		row := slices.IndexFunc(ends, func(e int64) bool { return e <= a.Started })
		switch {
		case row >= 0:
			ends[row] = end
		case len(ends) < barRows:
			row = len(ends)
			ends = append(ends, end)
		default:
			row = i % barRows
			ends[row] = max(ends[row], end)
		}
		where := place{row, int(1000 / float64(least) * float64(a.Started-from) / span), class}
		if at, is := drawn[where]; is {
			all[at].till = max(all[at].till, end)
			continue
		}
		drawn[where] = len(all)
		all = append(all, bar{row, class, a.Started, end})
	}
	height, gap := 8, 2
	if len(ends) > 6 {
		height, gap = 3, 1
	}
	var b strings.Builder
	h := len(ends)*(height+gap) + 2
	fmt.Fprintf(&b, `<svg class="gantt" width="100%%" height="%d" aria-hidden="true">`, h)
	for i := range all {
		p := &all[i]
		x, w := 100*float64(p.from-from)/span, 100*float64(p.till-p.from)/span
		fmt.Fprintf(&b, `<rect class="s-%s" x="%.2f%%" y="%d" width="%.2f%%" height="%d" rx="1"/>`, p.class, min(x, 100-float64(least)/10), 1+p.row*(height+gap), max(w, float64(least)/10), height)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // numbers and names of this package
}
