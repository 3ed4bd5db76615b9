// Package soak keeps the records of a long run that is made in pieces: for each piece, the handled
// events, the injected faults, and the result. The records are a file of JSON lines, so that a run can
// be continued on another day or machine.
package soak

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/internal/display"
)

// Piece is the record of one piece.
type Piece struct {
	// Profile is the kind of the piece, Seed the seed of its faults.
	Profile string `json:"profile"`
	Seed    uint64 `json:"seed"`
	// At is when it began, Commit the commit that was run, with a + for uncommitted changes.
	At     time.Time `json:"at"`
	Commit string    `json:"commit"`
	// Seconds is the time with faults, in seconds.
	Seconds int `json:"seconds"`
	// Acked counts events that were acknowledged to clients, Handled those that have a receipt.
	Acked   int `json:"acked"`
	Handled int `json:"handled"`
	// Kills of single processes by SIGKILL; All are the kills of all servers of a cluster at once,
	// whose servers count as well; Cuts are power cuts.
	Workers      int `json:"workers,omitempty"`
	Coordinators int `json:"coordinators,omitempty"`
	Servers      int `json:"servers,omitempty"`
	All          int `json:"all,omitempty"`
	Cuts         int `json:"cuts,omitempty"`
	// Faults counts the other faults, by kind.
	Faults map[string]int `json:"faults,omitempty"`
	// LostToPower counts events that servers had acknowledged but not synced to disk when the power was
	// cut: Settle cannot recover them.
	LostToPower int `json:"lost_to_power,omitempty"`
	// Violations counts broken promises by rule: none in a piece that is sound.
	Violations map[string]int `json:"violations,omitempty"`
}

// Sound reports whether no promise was broken.
func (p *Piece) Sound() bool { return len(p.Violations) == 0 }

// Goal is the goal of a run.
type Goal struct{ Handled, Workers, Servers, All, Cuts int }

// Full is the goal of the run that docs/durability.md reports.
var Full = Goal{Handled: 10_000_000, Workers: 1000, Servers: 300, All: 50, Cuts: 100}

// Read reads a file of records; a file that does not exist is empty.
func Read(file string) ([]Piece, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var pieces []Piece
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var p Piece
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		pieces = append(pieces, p)
	}
	return pieces, lines.Err()
}

// Add appends a piece to a file of records.
func Add(file string, p *Piece) error {
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// Sum returns the sum of pieces; its Profile is empty.
func Sum(pieces []Piece) (sum Piece) {
	sum.Faults, sum.Violations = map[string]int{}, map[string]int{}
	for i := range pieces {
		p := &pieces[i]
		sum.Seconds += p.Seconds
		sum.Acked += p.Acked
		sum.Handled += p.Handled
		sum.Workers += p.Workers
		sum.Coordinators += p.Coordinators
		sum.Servers += p.Servers
		sum.All += p.All
		sum.Cuts += p.Cuts
		sum.LostToPower += p.LostToPower
		for kind, n := range p.Faults { // any order: sums
			sum.Faults[kind] += n
		}
		for rule, n := range p.Violations { // any order: sums
			sum.Violations[rule] += n
		}
	}
	return sum
}

// Reached reports whether the pieces reach a goal.
func Reached(pieces []Piece, g Goal) bool {
	s := Sum(pieces)
	return s.Handled >= g.Handled && s.Workers >= g.Workers && s.Servers >= g.Servers && s.All >= g.All && s.Cuts >= g.Cuts
}

// Report returns the table for the docs: a row for each profile, and the totals.
func Report(pieces []Piece, g Goal) string {
	if len(pieces) == 0 {
		return "No piece has been run yet.\n"
	}
	by := map[string][]Piece{}
	for _, p := range pieces {
		by[p.Profile] = append(by[p.Profile], p)
	}
	var b strings.Builder
	b.WriteString("| profile | pieces, seeds | minutes | events handled | SIGKILL of workers, coordinators, servers | all servers at once | power cuts | other faults | broken promises |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, profile := range slices.Sorted(maps.Keys(by)) {
		row(&b, profile, by[profile])
	}
	row(&b, "**all**", pieces)
	s := Sum(pieces)
	first, last := pieces[0].At, pieces[0].At
	commits := map[string]bool{}
	for _, p := range pieces {
		if p.At.Before(first) {
			first = p.At
		}
		if p.At.After(last) {
			last = p.At
		}
		commits[p.Commit] = true
	}
	fmt.Fprintf(&b, "\nRun from %s to %s, at %s. ", first.Format(time.DateOnly), last.Format(time.DateOnly), listed("commit", slices.Sorted(maps.Keys(commits))))
	if Reached(pieces, g) {
		b.WriteString("The goal is reached: ")
	} else {
		b.WriteString("The goal is not reached yet: ")
	}
	fmt.Fprintf(&b, "%s of %s events, %d of %d kills of workers, %d of %d of servers, %d of %d of all servers at once, %d of %d power cuts.",
		display.Grouped(s.Handled), display.Grouped(g.Handled), s.Workers, g.Workers, s.Servers, g.Servers, s.All, g.All, s.Cuts, g.Cuts)
	if s.LostToPower > 0 {
		fmt.Fprintf(&b, " %s events were acknowledged by servers that had not written them to the disk when its power was cut, and are gone with it (fsync interval; see above).", display.Grouped(s.LostToPower))
	}
	b.WriteString("\n")
	return b.String()
}

func row(b *strings.Builder, name string, pieces []Piece) {
	s := Sum(pieces)
	broken := "none"
	if len(s.Violations) > 0 {
		broken = kinds(s.Violations)
	}
	seeds := fmt.Sprint(len(pieces))
	if name != "**all**" {
		var list []string
		for _, p := range pieces {
			list = append(list, fmt.Sprint(p.Seed))
		}
		seeds += ": " + strings.Join(list, " ")
	}
	others := 0
	for _, n := range s.Faults { // any order: a sum
		others += n
	}
	fmt.Fprintf(b, "| %s | %s | %d | %s | %d, %d, %d | %d | %d | %d | %s |\n",
		name, seeds, (s.Seconds+30)/60, display.Grouped(s.Handled), s.Workers, s.Coordinators, s.Servers, s.All, s.Cuts, others, broken)
}

func kinds(of map[string]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(of)) {
		list = append(list, fmt.Sprintf("%s %d", kind, of[kind]))
	}
	return strings.Join(list, ", ")
}

func listed(what string, list []string) string {
	if len(list) > 1 {
		what += "s"
	}
	return what + " " + strings.Join(list, ", ")
}
