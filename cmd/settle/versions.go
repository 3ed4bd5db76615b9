package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/provision"
	"github.com/settlehq/settle/internal/display"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// versionsCmd is `settle versions`.
type versionsCmd struct {
	connection
	Name string `arg:"" optional:"" help:"A program. Default: all programs."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// versions are the deployed versions, and the rules that name them.
type versions struct {
	Versions []versionLine `json:"versions"`
	Rules    []rule        `json:"rules"`
}

type versionLine struct {
	Program string    `json:"program"`
	Version string    `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by,omitzero"`
	Note    string    `json:"note,omitzero"`
	Bytes   int       `json:"bytes"`
	RunBy   []string  `json:"run_by,omitzero"` // the patterns of the rules that name it
}

type rule struct {
	Spaces  string           `json:"spaces"`
	Program string           `json:"program"`
	Version string           `json:"version"`
	Canary  *program.Canary  `json:"canary,omitzero"`
	Pinned  bool             `json:"pinned,omitzero"`
	At      time.Time        `json:"at"`
	By      string           `json:"by,omitzero"`
	Note    string           `json:"note,omitzero"`
	History []program.Choice `json:"history,omitzero"`
}

// Run lists versions and rules.
func (c *versionsCmd) Run(ctx context.Context, io streams) error {
	if c.Name != "" {
		if err := model.CheckName("program", c.Name); err != nil {
			return usage(err)
		}
	}
	return c.use(ctx, io, need{shared: []string{provision.ComponentPrograms}}, func(b *bus.Bus, _ *settle.Client) error {
		all, err := program.Versions(ctx, b, c.Name)
		if err != nil {
			return err
		}
		table, err := program.Rules(ctx, b)
		if err != nil {
			return err
		}
		if c.Name != "" && len(all) == 0 {
			return &program.MissingError{Target: program.Target{Program: c.Name}}
		}
		v := gather(all, table, c.Name)
		if c.JSON {
			return fleetJSON(io.out, v)
		}
		v.print(io)
		return nil
	})
}

func gather(all []program.Version, table *program.Table, name string) versions {
	v := versions{Versions: []versionLine{}, Rules: []rule{}}
	run := map[program.Target][]string{}
	for _, r := range table.All() {
		if name != "" && r.Program != name {
			continue
		}
		text := r.Spaces
		if r.Canary != nil {
			canary := program.Target{Program: r.Program, Version: r.Canary.Version}
			run[canary] = append(run[canary], fmt.Sprintf("%s (%d%%)", r.Spaces, r.Canary.Percent))
			text += fmt.Sprintf(" (%d%%)", 100-r.Canary.Percent)
		}
		run[r.Target] = append(run[r.Target], text)
		v.Rules = append(v.Rules, rule{
			Spaces: r.Spaces, Program: r.Program, Version: r.Version, Canary: r.Canary, Pinned: r.Pinned,
			At: r.At, By: r.By, Note: r.Note, History: r.History,
		})
	}
	for i := range all {
		x := &all[i]
		v.Versions = append(v.Versions, versionLine{
			Program: x.Program, Version: x.ID, At: x.At, By: x.By, Note: x.Note, Bytes: x.Size(), RunBy: run[x.Target()],
		})
	}
	return v
}

func (v *versions) print(io streams) {
	if len(v.Versions) == 0 {
		fmt.Fprintln(io.out, "no program was deployed here; deploy one: settle deploy FILE.star")
		return
	}
	s, _ := sheetFor(io.out)
	v.table(s)
}

func (v *versions) table(s sheet) {
	rows := make([][]cell, len(v.Versions))
	for i, x := range v.Versions {
		run := cell{text: "-", code: faint}
		if len(x.RunBy) > 0 {
			run = cell{text: strings.Join(x.RunBy, ", "), code: green}
		}
		rows[i] = []cell{{text: x.Program, code: bold}, {text: x.Version}, {text: s.when(x.At)}, {text: or(x.By, "-")}, {text: display.Grouped(uint64(x.Bytes)), right: true}, run, {text: oneLine(x.Note)}}
	}
	s.table([]string{"PROGRAM", "VERSION", "FIRST DEPLOYED", "BY", "BYTES", "RUN BY SPACES", "NOTE"}, rows)
	if len(v.Rules) == 0 {
		fmt.Fprintln(s.out, "\nno space runs any of them; settle pin SPACES NAME@VERSION")
		return
	}
	rows = make([][]cell, len(v.Rules))
	for i, r := range v.Rules {
		rows[i] = []cell{{text: r.Spaces, code: bold}, {text: r.text()}, {text: s.when(r.At)}, {text: or(r.By, "-")}, {text: r.remark()}}
	}
	fmt.Fprintln(s.out)
	s.table([]string{"SPACES", "RUN", "SINCE", "BY", "NOTE, AND WHAT RAN BEFORE"}, rows)
}

func (r *rule) text() string {
	text := r.Program + "@" + r.Version
	if r.Canary != nil {
		text += fmt.Sprintf(", %d%% of them %s", r.Canary.Percent, r.Canary.Version)
	}
	if r.Pinned {
		text += " (pinned)"
	}
	return text
}

// remark returns the note of a rule and its former version, as far as they fit on a line.
func (r *rule) remark() string {
	var said []string
	for _, h := range r.History {
		text := h.Version
		if h.Program != r.Program {
			text = h.Target.String()
		}
		if h.Target != (program.Target{}) && !slices.Contains(said, text) && text != r.Version {
			said = append(said, text)
		}
	}
	text := oneLine(r.Note)
	if len(said) > 0 {
		text = strings.TrimPrefix(text+"; before: "+clip(strings.Join(said, " "), 60), "; ")
	}
	return or(text, "-")
}

// when returns clock, on a terminal without the day if that is today: there is little room.
func (s sheet) when(then time.Time) string {
	if s.width == 0 || then.IsZero() {
		return clock(then)
	}
	return at(time.Now(), then)
}

// clock returns a time for people, in the local time zone.
func clock(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.Local().Format(time.DateTime)
}
