package dev

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/worker/roster"
	"github.com/settlehq/settle/workflow"
)

// print prints all addresses, the durability, and commands to try.
func (d *dev) print(ctx context.Context) error {
	var b strings.Builder
	fmt.Fprintf(&b, "settle dev%s · embedded NATS, data in %s · ready in %.1fs\n", released(d.cfg.Version), d.store(), time.Since(d.began).Seconds())
	try := d.suggest(ctx)
	space, doc := d.example(try)
	saved := "Save a file to deploy it; documents and timers stay."
	if d.golang != nil {
		saved = "Save a file to build it and run it again; documents and timers stay."
	}
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-8s %s\n", what, fmt.Sprintf(format, args...))
	}
	line("console", "%s", d.server.HTTP)
	line("HTTP", "curl -N %s/v1/spaces/%s/documents/%s/watch", d.server.HTTP, space, doc)
	if post := d.post(space, try); post != "" {
		line("", "%s", post)
	}
	line("NATS", "nats --context %s sub 'settle.>'   (%s)", contextFor(d.server.NATS), d.server.NATS)
	if d.traces != nil {
		line("traces", "curl %s", d.traces.url)
	}
	lines, err := d.spaces(ctx)
	if err != nil {
		return err
	}
	label := "spaces"
	for _, text := range lines {
		line(label, "%s", text)
		label = ""
	}
	line("durable", "what was acknowledged is on this disk (fsync), and survives kill -9;")
	line("", "a lost disk loses it")
	fmt.Fprintf(&b, "Try, in another terminal, in this directory:\n  %s\n", strings.Join(d.try(space, doc, try), "\n  "))
	fmt.Fprintf(&b, "%s\nCtrl-C keeps all; settle dev --reset forgets all. No telemetry, no account.\n\n", saved)
	_, err = fmt.Fprint(d.cfg.Out, b.String())
	return err
}

// example returns a document to watch: a derived one, or else one that the suggested event changes.
func (d *dev) example(try *suggestion) (space, doc string) {
	if d.golang != nil {
		return d.golang.example()
	}
	h := d.programs[0]
	space, doc = h.name, "DOCUMENT"
	if d.isSample() {
		return SampleSpace, sampleDocument
	}
	if h.program != nil {
		for _, n := range h.program.Nodes() {
			if n.Output != "" {
				return space, n.Output
			}
		}
		if len(h.program.Workflows()) > 0 {
			return space, runs.Index
		}
		if try != nil && len(try.changes) > 0 {
			return space, try.changes[0]
		}
	}
	return space, doc
}

func (d *dev) try(space, doc string, s *suggestion) []string {
	if d.golang != nil {
		return d.golang.try(space, doc, s)
	}
	tries := []string{"settle watch " + space + " " + doc}
	switch h := d.programs[0]; {
	case d.isSample():
		tries = append([]string{fmt.Sprintf(`settle send %s temp '{"sensor":"top","c":19.5}' --wait`, space)}, tries...)
	case h.program != nil && len(h.program.Workflows()) > 0:
		return tryWorkflows(h.program, space, s)
	case h.program != nil && len(h.program.ClientStreams()) > 0:
		tries = append([]string{fmt.Sprintf("settle send %s %s --wait", space, event(h.program, s))}, tries...)
	}
	return append(tries, "settle get "+space, "settle why "+space+" "+doc, "settle chaos kill --owner "+space)
}

// maxPerformed is how many actions are suggested to be performed.
const maxPerformed = 3

// tryWorkflows returns commands for the first workflow of a program, and for its actions.
func tryWorkflows(p *star.Program, space string, s *suggestion) []string {
	w := p.Workflows()[0]
	tries := []string{
		strings.TrimSpace(fmt.Sprintf("settle workflow start %s %s %s", space, w.Name, arguments(w.Graph))) + " --id r1",
		"settle workflow watch " + space + " r1",
		"settle workflow list " + space,
	}
	actions := remoteActions(p)
	for _, name := range actions[:min(len(actions), maxPerformed)] {
		tries = append(tries, "settle perform "+name+" -- COMMAND")
	}
	if s != nil && len(ownStreams(p)) > 0 {
		tries = append(tries, fmt.Sprintf("settle send %s %s --wait", space, event(p, s)))
	}
	return append(tries, "settle fleet")
}

// arguments returns a form of the arguments that a workflow needs, to fill in.
func arguments(g *workflow.Graph) string {
	var form []string
	for _, p := range g.Funcs[0].Params {
		if p.Default == nil {
			form = append(form, fmt.Sprintf("%q: ...", p.Name))
		}
	}
	if len(form) == 0 {
		return ""
	}
	return quoted("{" + strings.Join(form, ", ") + "}")
}

// post returns a command that sends the suggested event over HTTP, "" if there is none.
func (d *dev) post(space string, s *suggestion) string {
	stream, payload := "temp", `{"sensor":"top","c":19.5}`
	switch {
	case s != nil:
		stream, payload = s.Stream, s.Payload
	case !d.isSample():
		return ""
	}
	body := "-X POST"
	if payload != "" {
		body = "--json " + quoted(payload)
	}
	return fmt.Sprintf("curl %s %s/v1/spaces/%s/streams/%s", body, d.server.HTTP, space, stream)
}

// quoted returns text for a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// ends reports whether the events of a stream end tasks of an action, which is the work of its performers.
func ends(p *star.Program, stream string) bool {
	return slices.ContainsFunc(p.Space().Actions(), func(a *space.ActionSpec) bool { return a.Name == stream })
}

// event returns an event to try: its stream and payload, quoted for a shell. If no event is known
// to be handled, it is a form to fill in.
func event(p *star.Program, s *suggestion) string {
	switch {
	case s == nil:
		streams := p.ClientStreams()
		return streams[max(0, slices.IndexFunc(streams, func(s string) bool { return !ends(p, s) }))] + " PAYLOAD"
	case s.Payload == "":
		return s.Stream
	}
	return s.Stream + " " + quoted(s.Payload)
}

// released formats a released version, "" for another build.
func released(version string) string {
	if version == "" || version == "dev" {
		return ""
	}
	return " " + version
}

// spaces returns a line for each program, and for the first of the existing spaces.
func (d *dev) spaces(ctx context.Context) (lines []string, err error) {
	if d.golang != nil {
		return []string{d.golang.line()}, nil
	}
	f, err := fleet.Look(ctx, d.bus)
	if err != nil {
		return nil, err
	}
	there, err := d.bus.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range d.programs {
		of := program.Rule{Spaces: h.spaces}
		var exist []string
		for _, s := range there {
			if of.Matches(s) {
				exist = append(exist, s)
			}
		}
		lines = append(lines, h.line(len(exist)))
		if len(exist) == 0 {
			lines = append(lines, "  "+h.name+where(f, h.name)+", once "+h.creates())
		}
		for _, s := range exist[:min(len(exist), shown)] {
			lines = append(lines, "  "+s+where(f, s))
		}
	}
	return lines, nil
}

// creates returns what creates the space that is named after a program.
func (h *hosted) creates() string {
	if h.program != nil && h.program.Space().IsMadeByReads(h.name) {
		return "it has an event or is read"
	}
	return "it has an event"
}

// shown is the number of spaces of a program with a line of their own.
const shown = 3

func (h *hosted) line(exist int) string {
	what := "does not compile yet"
	if h.program != nil {
		what = contentsOf(h.program)
	}
	more := ""
	if exist > shown {
		more = fmt.Sprintf("; %d exist, such as", exist)
	}
	which := h.spaces + " run"
	if h.spaces == program.All {
		which = "all run"
	}
	return fmt.Sprintf("%s %s (%s)%s", which, h.title(), what, more)
}

// contentsOf says what a program has; the streams of runs and schedules are no streams of its own.
func contentsOf(p *star.Program) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, display.Count(n, what))
		}
	}
	add(len(p.Workflows()), "workflow")
	add(len(remoteActions(p)), "action")
	add(len(p.Nodes()), "node")
	add(len(ownStreams(p)), "stream")
	return strings.Join(parts, ", ")
}

// ownStreams returns the streams that a program handles itself, without those of runs and of the actions that workflows call.
func ownStreams(p *star.Program) []string {
	others := runs.ClientStreams()
	for _, w := range p.Workflows() {
		others = append(others, w.Graph.Actions()...)
	}
	return slices.DeleteFunc(p.Streams(), func(s string) bool { return slices.Contains(others, s) })
}

// remoteActions returns the actions of a program that performers perform.
func remoteActions(p *star.Program) (names []string) {
	for _, a := range p.Space().Actions() {
		if a.Remote != nil {
			names = append(names, a.Name)
		}
	}
	return names
}

// where returns the owner of a space, and the next in line.
func where(f *fleet.Fleet, space string) string {
	p := model.PartitionOf(space, len(f.Partitions))
	text := ": owner " + f.Partitions[p].Owner
	for _, s := range roster.Explain(p, len(f.Partitions), f.Staying()) {
		if s.Member != f.Partitions[p].Owner {
			return text + ", standby " + s.Member
		}
	}
	return text
}
