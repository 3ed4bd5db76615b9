package main

import (
	"context"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/upgrade"
)

type nameV1 struct {
	Name string `json:"name"`
}

type nameV2 struct {
	First string `json:"first"`
}

// wantUpgrades is want for a table, whatever the widths of its columns.
func wantUpgrades(t *testing.T, code int, parts string, args ...string) {
	t.Helper()
	got, out, errs := command(t.Context(), t, args...)
	if got != code {
		t.Errorf("settle %s: code %d, want %d", strings.Join(args, " "), got, code)
	}
	text := strings.Join(strings.Fields(out+errs), " ")
	for part := range strings.SplitSeq(parts, " | ") {
		if !strings.Contains(text, part) {
			t.Errorf("settle %s does not print %q:\n%s%s", strings.Join(args, " "), part, out, errs)
		}
	}
}

// A document is written by the program that knows version 1. With the program of version 2, the report counts it as older until the event
// that is sent to all spaces has written it.
func TestUpgrades_ReportWhatIsLeftUntilAMigrationHasWrittenIt(t *testing.T) {
	t.Parallel()
	before := settle.NewCell[nameV1]("profile")
	person, people := settle.NewCell[nameV2]("profile"), settle.NewRows[nameV2]("people")
	step := upgrade.From(1, func(old nameV1) (nameV2, error) { return nameV2{First: strings.Fields(old.Name)[0]}, nil })
	person, people = person.Version(2, step), people.Version(2, step)
	join, migrate := settle.NewTrigger("join"), settle.NewTrigger("migrate")
	first, second := settle.NewProgram("names"), settle.NewProgram("names")
	join.Handle(first, func(tx *settle.Tx) error {
		before.Set(tx, nameV1{"Ann Lee"})
		tx.Set("people", map[string]nameV1{"a": {"Ann Lee"}, "b": {"Bo Ray"}})
		return nil
	})
	join.Handle(second, func(tx *settle.Tx) error {
		person.Update(tx, func(*nameV2) {})
		people.Update(tx, "a", func(*nameV2) {})
		return nil
	})
	migrate.Handle(second, func(tx *settle.Tx) error {
		if stored, ok := person.Lookup(tx); ok {
			person.Set(tx, stored)
		}
		for key, row := range people.All(tx) {
			people.Set(tx, key, row)
		}
		return nil
	})
	dir := t.TempDir()
	serve := func(p *settle.Program, then func()) {
		d, err := settle.Start(t.Context(), settle.Config{
			Programs: settle.Always(p), Bus: bus.Config{Partitions: 2},
			Server: embedded.Config{StoreDir: dir, Fsync: embedded.FsyncInterval, Listen: ":0"},
		})
		if err != nil {
			t.Fatal(err)
		}
		pointAt(t, d.Server().ClientURL())
		then()
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	serve(first, func() {
		for _, space := range []string{"shop-1", "shop-2", "shop-3"} {
			want(t, 0, "handled", "send", space, "join", "--wait")
		}
		wantUpgrades(t, 0, "none of 3 spaces has a document in a version above 1 | settle upgrades DOCUMENT=VERSION", "upgrades")
		wantUpgrades(t, 1, "profile 2 3 3 3 of version 1 | 3 documents are older", "upgrades", "profile=2")
	})
	serve(second, func() { // what was written before the restart, and what is written now
		want(t, 0, "handled", "send", "shop-2", "join", "--wait")
		wantUpgrades(t, 1, "people/* 2 5 3 5 of version 1, 1 of version 2 | profile 2 2 2 2 of version 1, 1 of version 2 | people/* shop-2 1 1 | profile shop-1 1 1 | "+
			"profile shop-3 1 1 | 3 spaces read | 7 documents are older than their present version; settle send --all", "upgrades")
		wantUpgrades(t, 1, `{"documents":"profile","in":[{"older":1,"oldest":1,"space":"shop-1"}],"older":2,"spaces":2,"stored":{"1":2,"2":1},"version":2}`,
			"upgrades", "profile=2", "--json", "--list", "1")
		wantUpgrades(t, 1, "people/* 2 1 1 | 1 document is older", "upgrades", "people/*=2", "--spaces", "shop-2")
		want(t, 0, "3 spaces: 3 handled", "send", "--all", "*", "migrate", "--id", "migrate-2", "--wait")
		wantUpgrades(t, 0, "people/* 2 0 0 6 of version 2 | profile 2 0 0 3 of version 2 | 3 spaces read", "upgrades", "profile=2", "people/*=2")
		wantUpgrades(t, 0, `"documents":"people/*","in":[],"older":0 | "documents":"profile","in":[],"older":0`, "upgrades", "--json")
		wantUpgrades(t, 0, "profile 2 0 0 none", "upgrades", "profile=2", "--spaces", "lot-*")
	})
	for arg, text := range map[string]string{
		"profile": "as in profile=2", "profile=1": "from 2 to 1000000", "pro file=2": "pro file", "profile=x": "as in profile=2", "--list=-1": "--list is from 0 to 1000",
	} {
		wantUpgrades(t, 2, text, "upgrades", arg)
	}
}
