package program_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
)

// save stores a record as any tool could.
func (w *world) save(key string, v any) {
	w.Helper()
	data, err := json.Marshal(v)
	w.must(err)
	there, err := w.Client.LoadRecord(w.ctx, key)
	w.must(err)
	_, err = w.Client.SaveRecord(w.ctx, model.Record{Key: key, Data: data, Rev: there.Rev})
	w.must(err)
}

// A different program stored under the name of a version, wherever it came from, is not accepted as that
// version.
func TestAVersionWithOtherFilesThanItsHashIsNotTakenForIt(t *testing.T) {
	w := newWorld(t)
	v := w.version("p", "text")
	other := v
	other.Files, other.By = map[string]string{v.Entry: "another text"}, "mallory"
	key := "version." + v.Program + "." + v.ID
	w.save(key, other)
	if _, _, err := program.Publish(w.ctx, w.Client, v); err == nil || !strings.Contains(err.Error(), "other files") {
		t.Errorf("published over %s with other files: %v", key, err)
	}
	w.save("version.p.abc", v)
	if _, err := program.Load(w.ctx, w.Client, program.Target{Program: "p", Version: "abc"}); err == nil || !strings.Contains(err.Error(), "contains") {
		t.Errorf("a record of another version: %v", err)
	}
}

func TestABeginningThatSeveralVersionsHaveIsNotGuessed(t *testing.T) {
	w := newWorld(t)
	seen := map[byte]bool{}
	for i := 0; ; i++ {
		id := w.publish("p", fmt.Sprintf("text %d", i)).Version
		if first := id[0]; seen[first] {
			found, err := program.Find(w.ctx, w.Client, program.Target{Program: "p", Version: id[:1]})
			if err == nil || !strings.Contains(err.Error(), "several versions") {
				t.Errorf("%s is taken for %s: %v", id[:1], found.ID, err)
			}
			return
		}
		seen[id[0]] = true
	}
}

// A rule applies to the spaces of the key under which it is stored.
func TestARuleAboutOtherSpacesThanItsRecordIsNone(t *testing.T) {
	w := newWorld(t)
	r := w.pinTo("a", w.publish("p", "one"))
	r.Spaces = "b"
	w.save("rule.space.c", r)
	table, err := program.Rules(w.ctx, w.Client)
	if err == nil || !strings.Contains(err.Error(), "rule.space.c") {
		t.Errorf("the error is %v", err)
	}
	if _, known := table.Of("b"); known {
		t.Error("the rule is taken for one about b")
	}
}

// A choice that differs only in Pinned is a change; the previous version is one of the same program.
func TestADecisionIsAboutPinsAndARollbackAboutOneProgram(t *testing.T) {
	w := newWorld(t)
	one, two, other := w.publish("p", "one"), w.publish("p", "two"), w.publish("q", "other")
	w.pinTo("*", one)
	w.pinTo("*", other)
	r := w.pinTo("*", two)
	if before, ok := r.Before(); !ok || before != one {
		t.Errorf("%s goes back to %s", two, before)
	}
	if r = w.pin("*", program.Choice{Target: two, Pinned: true}); !r.Pinned {
		t.Error("a pin changes nothing")
	}
}
