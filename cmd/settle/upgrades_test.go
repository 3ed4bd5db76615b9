package main

import (
	"context"
	"errors"
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

// servedBy calls then while a deployment in the directory runs the program.
func servedBy(t *testing.T, dir string, p *settle.Program, then func()) {
	t.Helper()
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
	servedBy(t, dir, first, func() {
		for _, space := range []string{"shop-1", "shop-2", "shop-3"} {
			want(t, 0, "handled", "send", space, "join", "--wait")
		}
		wantUpgrades(t, 0, "none of 3 spaces has a document in a version above 1 | settle upgrades DOCUMENT=VERSION", "upgrades")
		wantUpgrades(t, 1, "profile 2 3 3 3 of version 1 | 3 documents in an older version", "upgrades", "profile=2")
	})
	servedBy(t, dir, second, func() { // what was written before the restart, and what is written now
		want(t, 0, "handled", "send", "shop-2", "join", "--wait")
		wantUpgrades(t, 1, "people/* 2 5 3 5 of version 1, 1 of version 2 | profile 2 2 2 2 of version 1, 1 of version 2 | people/* shop-2 1 1 | profile shop-1 1 1 | "+
			"profile shop-3 1 1 | 3 spaces read | 7 documents in an older version; settle send --all", "upgrades")
		wantUpgrades(t, 1, `{"documents":"profile","in":[{"older":1,"oldest":1,"space":"shop-1"}],"older":2,"spaces":2,"stored":{"1":2,"2":1},"version":2}`,
			"upgrades", "profile=2", "--json", "--list", "1")
		wantUpgrades(t, 1, "people/* 2 1 1 | 1 document in an older version", "upgrades", "people/*=2", "--spaces", "shop-2")
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

// namesProgram is a program over one version of a document: rename writes it, other does not touch it.
func namesProgram[T any](profile settle.Cell[T], rename func(*T)) *settle.Program {
	p := settle.NewProgram("names")
	settle.NewTrigger("rename").Handle(p, func(tx *settle.Tx) error {
		profile.Update(tx, rename)
		return nil
	})
	settle.NewTrigger("other").Handle(p, func(tx *settle.Tx) error {
		tx.Set("other", 1)
		return nil
	})
	settle.NewDerived[T]("shown").Compute(p, func(v *settle.View) (T, error) { return profile.Get(v), nil })
	return p
}

// A rollback to a program that lacks the version stops the spaces in which the new form was written, and no others. Their lanes go on with a
// program that knows the version, such as one that has the form and nothing else that is new.
func TestUpgrades_ARollbackStopsTheSpacesThatHaveTheNewForm(t *testing.T) {
	t.Parallel()
	first := func(old nameV1) (nameV2, error) { return nameV2{First: strings.Fields(old.Name)[0]}, nil }
	before := namesProgram(settle.NewCell[nameV1]("profile"), func(n *nameV1) { n.Name = "Ann Lee" })
	form := namesProgram(settle.NewCell[nameV2]("profile").Version(2, upgrade.From(1, first)), func(n *nameV2) { n.First = "Ann" })
	after := namesProgram(settle.NewCell[nameV2]("profile").Version(2, upgrade.From(1, first)), func(n *nameV2) { n.First = "Bo" })
	dir := t.TempDir()
	servedBy(t, dir, before, func() {
		want(t, 0, "handled", "send", "new", "rename", "--wait")
		want(t, 0, "handled", "send", "old", "rename", "--wait")
		want(t, 0, `{"name":"Ann Lee"}`, "get", "new", "shown")
	})
	servedBy(t, dir, after, func() { want(t, 0, "handled", "send", "new", "rename", "--wait") })
	servedBy(t, dir, before, func() {
		want(t, 0, "stored", "send", "new", "rename", "--id", "r-1")
		want(t, 0, "stored", "send", "new", "other", "--id", "o-1")
		want(t, 0, "handled", "send", "old", "rename", "--wait")
		wantSoon(t, 0, "r-1 | tried again without a limit | profile has version 2, and this program reads version 1 | deploy that program | , without a limit | o-1", "lane", "new")
		want(t, 0, `{"$version":2,"first":"Bo"}`, "get", "new", "profile") // it reads no form
		want(t, 0, `{"name":"Ann Lee"} | not up to date: shown could not be computed: profile has version 2, and this program reads version 1`, "get", "new", "shown")
		wantInVain(t, "TIMEOUT", "send", "new", "other", "--id", "o-1", "--wait")
	})
	servedBy(t, dir, form, func() {
		want(t, 0, "handled", "send", "new", "other", "--id", "o-1", "--wait")
		want(t, 0, `r-1 | handled`, "receipts", "new")
		want(t, 0, `{"$version":2,"first":"Ann"}`, "get", "new", "profile")
		want(t, 0, `{"first":"Ann"}`, "get", "new", "shown")
	})
}

// An event that has met an upgrade that fails is a dead letter, and nothing is written. It is redriven when the upgrade is corrected.
func TestUpgrades_AnEventIsRedrivenWhenTheUpgradeIsCorrected(t *testing.T) {
	t.Parallel()
	name := settle.NewCell[nameV2]("profile")
	wrong := name.Version(2, upgrade.From(1, func(old nameV1) (n nameV2, err error) {
		if !strings.Contains(old.Name, " ") {
			err = errors.New("a name has two parts")
		}
		return n, err
	}))
	right := name.Version(2, upgrade.From(1, func(old nameV1) (nameV2, error) { return nameV2{First: old.Name}, nil }))
	dir := t.TempDir()
	servedBy(t, dir, namesProgram(settle.NewCell[nameV1]("profile"), func(n *nameV1) { n.Name = "Ann" }), func() {
		want(t, 0, "handled", "send", "s", "rename", "--wait")
	})
	servedBy(t, dir, namesProgram(wrong, func(*nameV2) {}), func() {
		want(t, 1, "failed | upgrade profile from version 1: a name has two parts", "send", "s", "rename", "--id", "r-1", "--wait")
		want(t, 0, "handled", "send", "s", "other", "--wait") // the lane does not wait for it
		want(t, 0, `{"name":"Ann"}`, "get", "s", "profile")
	})
	servedBy(t, dir, namesProgram(right, func(*nameV2) {}), func() {
		want(t, 0, "sent again to s/rename as r-1:r1", "redrive", "s", "r-1")
		wantSoon(t, 0, "r-1:r1 | handled", "receipts", "s")
		want(t, 0, `{"$version":2,"first":"Ann"}`, "get", "s", "profile")
	})
}
