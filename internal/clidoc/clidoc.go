// Package clidoc renders the command-line reference, docs/cli.md, from the models of the commands,
// and compares the page with them.
//
// Each command owns one section of the page, between two marks. A test in the directory of the
// command calls Check with its model: it fails when the section is stale, and rewrites the section
// when the test runs with -update:
//
//	go test -p 1 ./cmd/... -run TestCLIPage -update
package clidoc

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write the section of docs/cli.md instead of comparing it")

// Check compares the section of an application in docs/cli.md with its model. It is called from
// a directory two levels below the root of the repository.
func Check(t *testing.T, app *kong.Application) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", "cli.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+app.Name+" -->\n", "<!-- /"+app.Name+" -->"
	before, rest, ok := strings.Cut(string(data), begin)
	section, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("docs/cli.md has no section between %s and %s", strings.TrimSpace(begin), end)
	}
	want := Markdown(app)
	switch {
	case section == want:
	case *update:
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the section of docs/cli.md about %s is stale; write it with\n\tgo test -p 1 ./cmd/... -run TestCLIPage -update\nfirst difference: %s", app.Name, firstDifference(section, want))
	}
}

// Markdown renders the reference of an application: its own flags, those that many commands
// share, and every command that is not hidden.
func Markdown(app *kong.Application) string {
	p := &page{shared: map[string]bool{}}
	leaves := app.Leaves(true)
	p.intro(app, leaves)
	group := ""
	for _, leaf := range leaves {
		if g := leaf.ClosestGroup(); g != nil && g.Title != group {
			group = g.Title
			fmt.Fprintf(&p.text, "### %s\n\n", group)
		}
		p.command(leaf)
	}
	return p.text.String()
}

// page is a section under construction.
type page struct {
	text strings.Builder
	// shared are the keys of flags that the introduction describes for all commands.
	shared map[string]bool
}

// sharedBy is the number of commands that must have a flag for the introduction to describe it.
const sharedBy = 10

func key(f *kong.Flag) string { return f.Name + "\x00" + f.Help + "\x00" + f.Default }

// intro writes the heading, the description, and the flags of the application and of many commands.
func (p *page) intro(app *kong.Application, leaves []*kong.Node) {
	fmt.Fprintf(&p.text, "## %s\n\n%s\n\n", app.Name, strings.ReplaceAll(sentence(app.Help), "\n\n", " "))
	flags := visible(app.Flags)
	count := map[string]int{}
	for _, leaf := range leaves {
		for _, f := range visible(leaf.Flags) {
			if count[key(f)]++; count[key(f)] == sharedBy {
				p.shared[key(f)] = true
				flags = append(flags, f)
			}
		}
	}
	if len(leaves) > 0 {
		p.text.WriteString("Flags of every command, and those of every command that connects:\n\n")
	}
	p.flags(flags)
}

// command writes one command.
func (p *page) command(n *kong.Node) {
	args := ""
	optional := 0
	for _, a := range n.Positional {
		name := strings.ToUpper(a.Name)
		if a.IsCumulative() {
			name += "..."
		}
		if a.Required {
			args += " " + name
			continue
		}
		args += " [" + name
		optional++
	}
	args += strings.Repeat("]", optional)
	fmt.Fprintf(&p.text, "#### %s\n\n%s\n\n```\n%s%s [flags]\n```\n\n", fullName(n), sentence(n.Help), fullName(n), args)
	if n.Detail != "" {
		fmt.Fprintf(&p.text, "%s\n\n", n.Detail)
	}
	if len(n.Positional) > 0 {
		p.text.WriteString("| argument | |\n|---|---|\n")
		for _, a := range n.Positional {
			fmt.Fprintf(&p.text, "| `%s` | %s |\n", strings.ToUpper(a.Name), cell(a.Help))
		}
		p.text.WriteString("\n")
	}
	own := visible(n.Flags)
	connects := false
	kept := own[:0:0]
	for _, f := range own {
		if p.shared[key(f)] {
			connects = connects || f.Name == "nats"
			continue
		}
		kept = append(kept, f)
	}
	p.flags(kept)
	if connects {
		p.text.WriteString("Takes the connection flags above.\n\n")
	}
}

// flags writes a table of flags, and nothing if there are none.
func (p *page) flags(flags []*kong.Flag) {
	if len(flags) == 0 {
		return
	}
	p.text.WriteString("| flag | default | environment | |\n|---|---|---|---|\n")
	for _, f := range flags {
		name := "`--" + f.Name + "`"
		if f.Short != 0 {
			name = fmt.Sprintf("`-%c`, %s", f.Short, name)
		}
		fmt.Fprintf(&p.text, "| %s | %s | %s | %s |\n", name, code(f.Default), code(strings.Join(f.Envs, " ")), cell(f.Help+choices(f)))
	}
	p.text.WriteString("\n")
}

// choices returns the values that a flag allows, unless its help lists them.
func choices(f *kong.Flag) string {
	if f.Enum == "" || strings.Contains(f.OrigHelp, "${enum}") {
		return ""
	}
	return " One of: " + strings.Join(f.EnumSlice(), ", ") + "."
}

// visible returns the flags that the help shows.
func visible(all []*kong.Flag) (flags []*kong.Flag) {
	for _, f := range all {
		if !f.Hidden {
			flags = append(flags, f)
		}
	}
	return flags
}

// fullName returns the words that call a command.
func fullName(n *kong.Node) string {
	if n.Parent == nil {
		return n.Name
	}
	return fullName(n.Parent) + " " + n.Name
}

func sentence(text string) string {
	return cmp.Or(strings.TrimSpace(text), "No description.")
}

// cell returns a text that does not end its table cell.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// firstDifference returns the first line in which two texts differ.
func firstDifference(have, want string) string {
	a, b := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("the page has %q, the command %q", a[i], b[i])
		}
	}
	return "one of the texts ends early"
}
