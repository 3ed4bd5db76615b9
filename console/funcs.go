package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
)

func visitorOf(r *http.Request) *gateway.Visitor { return gateway.VisitorOf(r) }

func escapeSegment(s string) string { return url.PathEscape(s) }

// funcs are the functions of the templates.
func (l *looks) funcs() template.FuncMap {
	return template.FuncMap{
		"mark": mark, "id": shortID, "ago": ago, "at": at, "in": in, "num": number, "count": display.Count, "bytes": display.Bytes, "dur": duration,
		"value": value, "inline": inlineValue, "token": formField, "dict": dict, "list": func(v ...any) []any { return v },
		"join": strings.Join, "has": l.c.has, "first": display.FirstLine, "plus": func(a, b int) int { return a + b },
		"spaceURL": func(space string) string { return pathOf("spaces", space) },
		"docURL":   func(space, doc string) string { return pathOf("spaces", space, "documents", doc) },
		"graphURL": graphURL,
		"eventURL": eventURL,
		"do":       doURL,
		"leads":    l.leads, "workerState": workerState, "causeState": stateOfCause, "outcomeState": outcomeState, "tree": tree, "own": ownChange, "sends": sendsOf, "changes": changesOf, "need": needOf, "steps": stepsOf, "timer": timerName, "per": per, "placeName": placeName,
	}
}

// leads reports whether there is a page at an address.
func (l *looks) leads(address string) bool {
	u, err := url.Parse(address)
	if err != nil || address == "" {
		return false
	}
	_, pattern := l.c.mux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: u.Path}})
	return pattern != "/" && pattern != ""
}

// workerState is the mark of a worker.
func workerState(s fleet.State) string {
	switch s {
	case fleet.Here:
		return "clean"
	case fleet.Leaving:
		return "waiting"
	case fleet.Silent:
		return "failed"
	}
	return "dormant"
}

// outcomeState is the mark of an event that has ended.
func outcomeState(outcome string) string {
	switch model.Outcome(outcome) {
	case model.Handled:
		return "clean"
	case "":
		return "waiting"
	case model.Failed, model.Refused:
		return "failed"
	}
	return "dormant"
}

// sendGroup are sends of a step that are shown in one line: events of one stream, or a timer.
type sendGroup struct {
	Stream, Timer string
	Count         int
	// To is the space of the first one, Spaces are the first spaces, each once, and More is the number of the others.
	To     string
	Spaces []string
	More   int
}

// sendList are the sends of a step, and More is the number of those that are in no group.
type sendList struct {
	Groups []*sendGroup
	More   int
}

// mostSendGroups and mostSendSpaces bound what is shown of the sends of a step.
const mostSendGroups, mostSendSpaces = 12, 6

// sendsOf groups the sends of a step in a space.
func sendsOf(space string, s history.Step) (list sendList) {
	seen := map[[2]string]bool{}
	for i := range s.Sends {
		send := &s.Sends[i]
		at := slices.IndexFunc(list.Groups, func(g *sendGroup) bool {
			return g.Stream == send.Stream && g.Timer == send.Timer && (g.To == space) == (send.Space == space)
		})
		if at < 0 {
			if len(list.Groups) == mostSendGroups {
				list.More++
				continue
			}
			at = len(list.Groups)
			list.Groups = append(list.Groups, &sendGroup{Stream: send.Stream, Timer: send.Timer, To: send.Space})
		}
		g := list.Groups[at]
		g.Count++
		if key := [2]string{strconv.Itoa(at), send.Space}; !seen[key] {
			seen[key] = true
			if len(g.Spaces) < mostSendSpaces {
				g.Spaces = append(g.Spaces, send.Space)
			} else {
				g.More++
			}
		}
	}
	return list
}

// changeList are the first changes of a step, and More is the number of the others.
type changeList struct {
	Changes []history.Place
	More    int
}

// mostChanges bounds what is shown of the changes of a step.
const mostChanges = 12

func changesOf(s history.Step) changeList {
	n := min(len(s.Changes), mostChanges)
	return changeList{s.Changes[:n], s.More + len(s.Changes) - n}
}

// stepList are the first steps of a commit, and More is the number of the others.
type stepList struct {
	Steps []history.Step
	More  int
}

// mostSteps bounds what is shown of the steps of a commit.
const mostSteps = 12

func stepsOf(e *history.Entry) stepList {
	n := min(len(e.Steps), mostSteps)
	return stepList{e.Steps[:n], len(e.Steps) - n}
}

// needLinks is how many of the readers are named through which a node is needed.
const needLinks = 4

// needOf shortens why a node is needed: of a long chain of readers, the first ones and the last one are named.
func needOf(text string) string {
	const link = ", which is read by "
	chain := strings.Split(text, link)
	if len(chain) <= needLinks+1 {
		return text
	}
	between := len(chain) - needLinks
	return strings.Join(chain[:needLinks-1], link) + ", and so on: " + number(between) + " readers later by " + chain[len(chain)-1]
}

// ownChange reports whether a run has changed the document of its name, and nothing else.
func ownChange(s history.Step) bool {
	return s.Kind == history.StepComputation && len(s.Changes) == 1 && s.More == 0 && s.Changes[0].Document == s.Name && s.Changes[0].Path == ""
}

// timerName is the name of a timer; that of a job begins with the word.
func timerName(name string) string {
	if job, is := strings.CutPrefix(name, "=cron."); is {
		return "job " + job
	}
	return name
}

// per divides a duration.
func per(d time.Duration, n uint64) time.Duration {
	if n == 0 {
		return 0
	}
	return d / time.Duration(n)
}

// pretty is a value as JSON of several lines.
func pretty(v model.Value) string {
	var b bytes.Buffer
	if err := json.Indent(&b, v.AppendJSON(nil), "", "  "); err != nil {
		return v.String()
	}
	return b.String()
}

// graphURL returns the address of the graph of a space, with a node of which it says why, "" for none.
func graphURL(space, node string) string {
	u := url.URL{Path: pathOf("spaces", space, "graph")}
	if node != "" {
		u.RawQuery = url.Values{"why": {node}}.Encode()
	}
	return u.String()
}

// eventURL returns the address of the page of an event.
func eventURL(space, stream, id string) string { return pathOf("spaces", space, "events", stream, id) }

// doURL returns the address of the preview of an action, with its parameters in pairs.
func doURL(action string, pairs ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return (&url.URL{Path: "/-/do/" + action, RawQuery: v.Encode()}).String()
}

// formField is the token of a form.
func formField() template.HTML {
	return template.HTML(`<input type="hidden" name="token" value="` + tokenMark + `">`) //nolint:gosec // a constant
}

// mark is the sign of a state, with its word.
func mark(state, word string) template.HTML {
	if !isState(state) {
		state = "dormant"
	}
	return template.HTML(`<span class="mark s-` + state + `"><svg class="sign" viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><use href="#m-` + state + `"/></svg>` + template.HTMLEscapeString(word) + `</span>`) //nolint:gosec // escaped
}

// maxID is the longest id that is shown whole.
const maxID = 22

// shortID is an id that a click copies.
func shortID(id string) template.HTML {
	text := id
	if r := []rune(id); len(r) > maxID {
		text = string(r[:maxID/2]) + "…" + string(r[len(r)-maxID/2+1:])
	}
	return template.HTML(`<button type="button" class="id" data-copy="` + template.HTMLEscapeString(id) + `" title="` + template.HTMLEscapeString(id) + `">` + template.HTMLEscapeString(text) + `</button>`) //nolint:gosec // escaped
}

// ago is a time as the duration since then; the script keeps it up to date. Its text does not change while the time does not, so that it causes no
// update: the server writes the clock, and the script the duration.
func ago(t time.Time) template.HTML { return clock(t, "ago") }

// in is a time as the duration until then.
func in(t time.Time) template.HTML { return clock(t, "in") }

// at is a time of day.
func at(t time.Time) template.HTML { return clock(t, "at") }

func clock(t time.Time, how string) template.HTML {
	if t.IsZero() {
		return "–"
	}
	t = t.UTC()
	full := t.Format("2006-01-02 15:04:05.000 UTC")
	text := t.Format("15:04:05")
	if time.Since(t).Abs() > 24*time.Hour {
		text = t.Format("2006-01-02 15:04")
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" data-%s title="%s">%s</time>`, t.Format(time.RFC3339Nano), how, full, text)) //nolint:gosec // no user's text
}

// number is a number with its digits in groups.
func number(n any) string {
	switch n := n.(type) {
	case int:
		return display.Grouped(n)
	case int32:
		return display.Grouped(int64(n))
	case int64:
		return display.Grouped(n)
	case uint64:
		return display.Grouped(n)
	case float64:
		return rateText(n)
	}
	return fmt.Sprint(n)
}

// rateText is a number of which three digits matter.
func rateText(f float64) string {
	switch {
	case f >= 100:
		return display.Grouped(int64(f + 0.5))
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	case f == 0:
		return "0"
	}
	return fmt.Sprintf("%.2f", f)
}

// duration is a duration for people.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + duration(-d)
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// maxInline is how much of a value a row shows, in bytes, and maxWhole how much of it a page shows before it folds the rest.
const maxInline, maxWhole = 80, 4096

// inlineValue is a value in one line.
func inlineValue(v model.Value) string {
	if v.IsAbsent() {
		return "–"
	}
	return cut(v.String(), maxInline)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// value is a value as a block; what is beyond 4 KiB is folded.
func value(v model.Value) template.HTML {
	if v.IsAbsent() {
		return `<span class="none">–</span>`
	}
	text := pretty(v)
	if len(text) <= maxWhole {
		return template.HTML(`<pre class="value" tabindex="0">` + template.HTMLEscapeString(text) + `</pre>`) //nolint:gosec // escaped
	}
	more := len(text) - maxWhole
	first, rest := strings.ToValidUTF8(text[:maxWhole], ""), text[maxWhole:]
	if len(rest) > 256<<10 {
		rest = rest[:256<<10] + "…"
	}
	return template.HTML(`<pre class="value" tabindex="0">` + template.HTMLEscapeString(first) + `</pre><details><summary>` + display.Bytes(int64(more)) + ` more</summary><pre class="value" tabindex="0">` + template.HTMLEscapeString(strings.ToValidUTF8(rest, "")) + `</pre></details>`) //nolint:gosec // escaped
}

// dict makes a map of pairs.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, is := pairs[i].(string)
		if !is {
			return nil, errors.New("dict: a key is no text")
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}
