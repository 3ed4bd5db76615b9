package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/status"
)

// The overview names up to fewAlike spaces that have the same fault, each on a line of its own. More of them are one line, with their number, which leads
// to the list of spaces.
const fewAlike = 3

// The lists of the spaces with computations that fail, with computations that do not converge, and with actions whose tasks fail.
var (
	computingURL = "/spaces?state=" + strings.ReplaceAll(wordComputing, " ", "+")
	unsettledURL = "/spaces?state=" + strings.ReplaceAll(wordUnsettled, " ", "+")
	failingURL   = "/spaces?state=" + strings.ReplaceAll(wordFailing, " ", "+")
)

// unwell counts the spaces with a fault that is their own.
func unwell(f *fleet.Fleet) int {
	found := map[string]bool{}
	for i := range f.Stuck {
		found[f.Stuck[i].Space] = true
	}
	unnamed := max(0, f.StuckCount-len(f.Stuck))
	for i := range f.Workers {
		fig := f.Workers[i].Figures
		if fig == nil {
			continue
		}
		for k := range fig.Unsettled {
			for _, space := range spacesOf(&fig.Unsettled[k]) {
				found[space] = true
			}
		}
		for k := range fig.FailingNodes {
			s := &fig.FailingNodes[k]
			found[s.Space] = true
			for _, reader := range s.Readers {
				found[reader] = true
			}
			unnamed += s.ReaderCount - len(s.Readers)
		}
		unnamed += fig.UnsettledCount - len(fig.Unsettled) + fig.FailingSpaceCount - len(fig.FailingNodes)
	}
	all, _ := f.Failing()
	for i := range all {
		if a := &all[i]; a.GivenUp == 0 || !a.Handled {
			found[a.Space] = true
		}
	}
	return len(found) + unnamed
}

// computingConcerns lists the spaces with computations that are needed and fail.
func computingConcerns(f *fleet.Fleet) (list []concern) {
	all, spaces, nodes := f.FailingNodes()
	if spaces <= fewAlike {
		for i := range all {
			s := &all[i]
			c := concern{
				Key: "computing " + s.Space, State: "failed", What: s.Space, URL: pathOf("spaces", s.Space), Text: fleet.FailingNodesText(s), Since: s.Since,
				Why: graphURL(s.Space, ""), CLI: "settle graph " + s.Space,
			}
			if len(s.Nodes) > 0 {
				c.Why, c.CLI = graphURL(s.Space, s.Nodes[0].Node), "settle why "+s.Space+" "+s.Nodes[0].Node
			}
			list = append(list, c)
		}
		return list
	}
	c := concern{
		Key: "computing", State: "failed", What: display.Count(spaces, "space"), URL: computingURL, CLI: "settle doctor",
		Text: display.Count(nodes, "computation") + " fail", Title: fmt.Sprintf("%s fail in %s", display.Count(nodes, "computation"), display.Count(spaces, "space")),
	}
	if len(all) > 0 {
		first := &all[0]
		c.Since = first.Since
		for k := range first.Nodes[:min(len(first.Nodes), 1)] {
			c.Text += ", such as " + first.Nodes[k].Node + " of " + first.Space + ": " + display.FirstLine(first.Nodes[k].Error)
		}
	}
	return []concern{c}
}

// spacesOf returns the spaces in which computations do not converge.
func spacesOf(u *status.Unsettled) (list []string) {
	for _, at := range u.Through {
		if space, _, is := strings.Cut(at, "/"); is && !slices.Contains(list, space) {
			list = append(list, space)
		}
	}
	if len(list) == 0 {
		return []string{u.Space}
	}
	return list
}

// unsettledConcerns lists the spaces in which computations do not converge, and the circles over several spaces.
func unsettledConcerns(f *fleet.Fleet) (list []concern) {
	count := 0
	for i := range f.Workers {
		fig := f.Workers[i].Figures
		if fig == nil {
			continue
		}
		count += fig.UnsettledCount
		for k := range fig.Unsettled {
			list = append(list, unsettledConcern(&fig.Unsettled[k]))
		}
	}
	if count <= fewAlike || len(list) == 0 {
		return list
	}
	first := &list[0]
	for i := range list {
		if list[i].Since.Before(first.Since) {
			first = &list[i]
		}
	}
	return []concern{{
		Key: "unsettled", State: "invalid", What: display.Count(count, "space"), URL: unsettledURL, Since: first.Since, CLI: "settle doctor",
		Text: "their computations do not converge, such as in " + first.What + ": " + first.Text, Title: "Computations of " + display.Count(count, "space") + " do not converge",
	}}
}

func unsettledConcern(u *status.Unsettled) concern {
	of := spacesOf(u)
	text := notConverging(u.Nodes, u.Count)
	if len(of) > 1 {
		text = "their computations do not converge"
	}
	if round := u.Round(); round != "" {
		text += ": " + round
	}
	return concern{
		Key: "unsettled " + strings.Join(of, " "), State: "invalid", What: allOf(of), URL: pathOf("spaces", u.Space), Text: text, Since: u.Since,
		Why: graphURL(u.Space, ""), CLI: "settle graph " + u.Space,
	}
}

// allOf names a few things.
func allOf(names []string) string {
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n <= fewAlike:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names[:fewAlike-1], ", ") + " and " + display.Grouped(len(names)-fewAlike+1) + " more"
}

// notConverging names the only node that does not converge, or counts them.
func notConverging(nodes []string, n int) string {
	switch {
	case n == 1 && len(nodes) == 1:
		return nodes[0] + " does not converge"
	case n == 1:
		return "1 node does not converge"
	}
	return display.Count(n, "node") + " do not converge"
}

// failingConcerns lists the actions whose tasks fail. Tasks that were given up, and whose program handles that, are mentioned, and nothing is wrong.
func failingConcerns(f *fleet.Fleet) (list []concern) {
	all, unnamed := f.Failing()
	var kinds [3][]*status.FailingAction // given up, tried again, given up and handled
	for i := range all {
		a := &all[i]
		switch {
		case a.GivenUp == 0:
			kinds[1] = append(kinds[1], a)
		case a.Handled:
			kinds[2] = append(kinds[2], a)
		default:
			kinds[0] = append(kinds[0], a)
		}
	}
	for i, kind := range kinds {
		if len(kind) > fewAlike {
			list = append(list, manyFailing(kind, i))
			continue
		}
		for _, a := range kind {
			list = append(list, failingConcern(a))
		}
	}
	if unnamed > 0 {
		list = append(list, concern{Key: "failing more", State: "failed", What: "tasks", URL: "/doctor", Text: "those of " + display.Count(unnamed, "more action") + " fail, too: workers name those that have failed last", CLI: "settle doctor"})
	}
	return list
}

func failingConcern(a *status.FailingAction) concern {
	c := concern{
		Key: "failing " + a.Space + " " + a.Action, State: "failed", What: a.Space, URL: pathOf("spaces", a.Space) + "#tasks", Text: fleet.FailingText(a), Since: a.At,
		CLI: "settle get " + a.Space + " " + a.Action,
	}
	switch {
	case a.GivenUp == 0:
		c.State, c.Since = "parked", a.Since
	case a.Handled:
		c.State = "dormant"
		c.Text += "; its program handles that"
	}
	return c
}

// manyFailing is one line for the actions of many spaces: the one that has failed last is named.
func manyFailing(of []*status.FailingAction, kind int) concern {
	spaces, actions := map[string]bool{}, map[string]bool{}
	for _, a := range of {
		spaces[a.Space], actions[a.Action] = true, true
	}
	last := of[0]
	c := failingConcern(last)
	c.Key, c.What, c.URL, c.CLI = fmt.Sprint("failing ", kind), display.Count(len(spaces), "space"), failingURL, "settle doctor"
	if len(spaces) == 1 {
		c.What, c.URL = last.Space, pathOf("spaces", last.Space)+"#tasks"
	}
	if c.State == "dormant" {
		c.URL = "/doctor"
	}
	fail := "actions fail"
	if len(actions) == 1 {
		fail = "action fails"
	}
	number := fmt.Sprintf("%d %s", len(actions), fail)
	c.Title = fmt.Sprintf("%s in %s", number, display.Count(len(spaces), "space"))
	c.Text = c.Title + ", such as in " + last.Space + ": " + c.Text
	return c
}
