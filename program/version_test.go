package program_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/program"
)

func TestAVersionIsStoredOnceAndStaysWhoseItIs(t *testing.T) {
	w := newWorld(t)
	v := w.version("p", "text")
	stored, created, err := program.Publish(w.ctx, w.Client, v)
	if err != nil || !created || stored.By != "ann" {
		t.Fatalf("%v %v %+v", created, err, stored)
	}
	v.By, v.At = "bob", time.Unix(2_000_000, 0)
	stored, created, err = program.Publish(w.ctx, w.Client, v)
	if err != nil || created || stored.By != "ann" || !stored.At.Equal(time.Unix(1_000_000, 0)) {
		t.Errorf("again: %v %v %+v", created, err, stored)
	}
	loaded, err := program.Load(w.ctx, w.Client, v.Target())
	if err != nil || loaded.Files["p.star"] != "text" || loaded.By != "ann" {
		t.Errorf("loaded %+v, %v", loaded, err)
	}
}

func TestTestsAreNoPartOfAVersion(t *testing.T) {
	s := program.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": "x", "p_test.star": "y"}}
	with, err := program.NewVersion(s, "", "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	delete(s.Files, "p_test.star")
	without, err := program.NewVersion(s, "", "", time.Time{})
	if err != nil || with.ID != without.ID || len(with.Files) != 1 {
		t.Errorf("with %+v, without %+v, %v", with, without, err)
	}
}

func TestWhatCannotBeDeployedSaysWhy(t *testing.T) {
	for want, s := range map[string]program.Source{
		`program "a b"`:     {Name: "a b", Entry: "p", Files: map[string]string{"p": ""}},
		`no file "q"`:       {Name: "p", Entry: "q", Files: map[string]string{"p": ""}},
		"262144 is the lim": {Name: "p", Entry: "p", Files: map[string]string{"p": strings.Repeat("x", program.MaxSource+1)}},
	} {
		if _, err := program.NewVersion(s, "", "", time.Time{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
}

func TestVersionsAreListedByProgramAndTimeAndFoundByTheirBeginning(t *testing.T) {
	w := newWorld(t)
	for i, text := range []string{"three", "one", "two"} {
		v := w.version("p", text)
		v.At = time.Unix(int64([]int{30, 10, 20}[i]), 0)
		_, _, err := program.Publish(w.ctx, w.Client, v)
		w.must(err)
	}
	w.publish("q", "other")
	all, err := program.Versions(w.ctx, w.Client, "")
	w.must(err)
	var texts []string
	for _, v := range all {
		texts = append(texts, v.Files[v.Entry])
	}
	if got := strings.Join(texts, " "); got != "one two three other" {
		t.Errorf("listed %s", got)
	}
	found, err := program.Find(w.ctx, w.Client, program.Target{Program: "p", Version: all[1].ID[:6]})
	if err != nil || found.ID != all[1].ID {
		t.Errorf("found %s, %v", found.ID, err)
	}
	_, err = program.Find(w.ctx, w.Client, program.Target{Program: "p", Version: "nosuch"})
	if missing := (*program.MissingError)(nil); !errors.As(err, &missing) || !strings.Contains(err.Error(), all[0].ID) {
		t.Errorf("looked for what is not there: %v", err)
	}
	_, err = program.Find(w.ctx, w.Client, program.Target{Program: "r", Version: "x"})
	if err == nil || !strings.Contains(err.Error(), "never deployed") {
		t.Errorf("looked for a program that is not there: %v", err)
	}
}

func TestTargetsAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]program.Target{"p": {Program: "p"}, "p@v1": {Program: "p", Version: "v1"}} {
		if got, err := program.ParseTarget(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "@v", "p@", "p@v@w", "p q"} {
		if _, err := program.ParseTarget(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}
