package space

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

// Tasks that fail while their document is full still end, and the document still fits into a message, which
// has room for two commits.
func TestTask_EndsWithoutRoomLeaveADocumentThatCanBeSaved(t *testing.T) {
	const limit = 32 << 10
	p := newProgram(t).handle("start", func(tx *Tx, ev *model.Event) any {
		tx.StartTask("pay", ev.ID, model.Value{}) // the smallest possible entry
		return nil
	}).handle("forget", func(tx *Tx, ev *model.Event) any {
		tx.ForgetTask("pay", ev.Payload.String())
		return nil
	})
	pay := &ActionSpec{Name: "pay", Done: func(*Tx, Task) error { return errors.New(strings.Repeat("no ", 100)) }}
	if err := p.Action(pay); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.MaxCommitBytes = limit })
	const tasks = 2000
	for i := range tasks {
		w.send(home, "start", fmt.Sprint(i), nil)
	}
	h.run()
	started := int(h.core.Stats().Handled)
	if started < 500 || started == tasks {
		t.Fatalf("%d of %d tasks are started; want the document to be full", started, tasks)
	}
	for i := range started {
		c := Completion{Key: fmt.Sprint(i)}
		w.send(home, "pay", fmt.Sprint("end-", i), c.Value())
	}
	h.run()
	doc := h.core.Value("pay")
	if n := len(doc.AppendJSON(nil)); n > 2*limit-ledger.FrameBytes {
		t.Errorf("the document has %d bytes, a message takes %d", n, 2*limit)
	}
	full := 0
	for key, entry := range doc.Get(inTasks).All() {
		task := TaskOf(key, entry)
		if task.State != TaskFailed || !task.Unhandled || task.Err == "" {
			t.Fatalf("there is %+v", task)
		}
		if strings.Contains(task.Err, "no room") {
			full++
		}
	}
	if full == 0 {
		t.Errorf("all of the %d ends had room for the reason", started)
	}
	// The document can be reduced again, one task at a time.
	for i := range started {
		w.send(home, "forget", fmt.Sprint("forget-", i), i)
	}
	h.run()
	if n := h.core.Value("pay").Get(inTasks).Len(); n != 0 {
		t.Errorf("%d tasks are left when all were to be forgotten", n)
	}
}

// What a failed end adds is counted: another write does not fit because of it.
func TestTask_AFailedEndIsCountedInTheSizeOfItsDocument(t *testing.T) {
	const limit = 32 << 10
	p := newProgram(t).handle("start", func(tx *Tx, ev *model.Event) any {
		tx.StartTask("pay", ev.ID, model.Value{}) // the smallest possible entry
		return nil
	})
	pay := &ActionSpec{Name: "pay", Done: func(tx *Tx, _ Task) error {
		tx.Set("big", strings.Repeat("x", limit)) // too large, and reported after the document of the tasks
		return nil
	}}
	if err := p.Action(pay); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.MaxCommitBytes = limit })
	for i := range 300 {
		key := fmt.Sprint(i)
		w.send(home, "start", key, nil)
		c := Completion{Key: key}
		w.send(home, "pay", "end-"+key, c.Value())
	}
	h.run()
	if n := len(h.core.Value("pay").AppendJSON(nil)); n > limit {
		t.Errorf("the document has %d bytes, %d are allowed", n, limit)
	}
	if n := h.core.Value("pay").Get(inTasks).Len(); n < 50 || n == 300 {
		t.Errorf("%d of 300 tasks were started; want some to find the document full", n)
	}
}

// A value that arrives for a new key while the document of an input is full stays wanted: a failure to store
// it would go unnoticed, and the document would grow with every key.
func TestTask_AnInputWithoutRoomStaysWanted(t *testing.T) {
	const limit = 32 << 10
	p := newProgram(t).handle("want", func(tx *Tx, ev *model.Event) any {
		tx.WantTask("rate", ev.ID)
		return nil
	}).handle("forget", func(tx *Tx, _ *model.Event) any {
		tx.ForgetTask("rate", "0")
		return nil
	})
	if err := p.Action(&ActionSpec{Name: "rate", Input: true}); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	h := w.owner("w1", p.Program, func(c *Config) { c.MaxCommitBytes = limit })
	size := func() int { return len(h.core.Value("rate").AppendJSON(nil)) }
	tell := func(key, id string) {
		c := Completion{Key: key, Out: model.String(strings.Repeat("x", 10_000))}
		w.send(home, "rate", id, c.Value())
		h.run()
	}
	for i := range 400 {
		w.send(home, "want", fmt.Sprint(i), nil)
		h.run()
		tell(fmt.Sprint(i), fmt.Sprint("came-", i))
	}
	if n := size(); n > limit {
		t.Errorf("the document has %d bytes, %d are allowed", n, limit)
	}
	if h.core.Value("rate-wanted").Get("399").IsAbsent() {
		t.Fatal("a value that arrived but could not be stored is no longer wanted")
	}
	w.send(home, "forget", "forget", nil)
	h.run()
	tell("399", "came-again")
	if task := TaskOf("399", h.core.Value("rate").At(PathOfTask("399"))); task.State != TaskDone {
		t.Errorf("with room the task is %+v", task)
	}
}
