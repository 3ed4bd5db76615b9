package star

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/interp"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/receipts"
)

// testBuiltins are the builtins of tests. One that has the name of a builtin of programs replaces it.
var testBuiltins = func() builtinTable {
	table := maps.Clone(spaceBuiltins)
	maps.Copy(table, builtinTable{
		"send": func(inst *instance) builtinFunc { return inst.testSend }, "send_to": func(inst *instance) builtinFunc { return inst.testSendTo },
		"advance": func(inst *instance) builtinFunc { return inst.testAdvance }, "now": func(inst *instance) builtinFunc { return inst.testNow },
		"expect": func(inst *instance) builtinFunc { return inst.testExpect }, "equal": func(inst *instance) builtinFunc { return inst.testEqual },
		"check": func(inst *instance) builtinFunc { return inst.testCheck }, "runs": func(inst *instance) builtinFunc { return inst.testRuns },
		"ran": func(inst *instance) builtinFunc { return inst.testRan }, "mark": func(inst *instance) builtinFunc { return inst.testMark },
		"why": func(inst *instance) builtinFunc { return inst.testWhy }, "watch": func(inst *instance) builtinFunc { return inst.testWatch },
		"problems": func(inst *instance) builtinFunc { return inst.testProblems }, "log": func(inst *instance) builtinFunc { return inst.testLog },
		"space": func(inst *instance) builtinFunc { return inst.testSpaceName }, "restart": func(inst *instance) builtinFunc { return inst.testRestart },
		"replay": func(inst *instance) builtinFunc { return inst.testReplay }, "mock": func(inst *instance) builtinFunc { return inst.testMock },
		"calls": func(inst *instance) builtinFunc { return inst.testCalls }, "failure": func(inst *instance) builtinFunc { return inst.testFailure },
		"program":        func(inst *instance) builtinFunc { return inst.testProgram },
		"start_workflow": func(inst *instance) builtinFunc { return inst.testStartWorkflow },
	})
	return table
}()

// spaceNamed returns a space of the test's world, the test's own if name is "".
func (inst *instance) spaceNamed(b *starlark.Builtin, name string) (TestSpace, error) {
	if inst.test.world == nil {
		return nil, fmt.Errorf("%s: there is no space while the file is loaded; call it in a function whose name begins with test_", b.Name())
	}
	if name == "" {
		name = testSpace
	}
	return inst.test.world.Space(name)
}

// expected is how a test expects an event to end: handled, unless one of its fields is set.
type expected struct {
	// fails is nil, or words of the error with which the event ends.
	fails starlark.Value
	// rejects is the code of the rejection, "" if there is none.
	rejects string
}

// testSend is send(stream, payload = None, space = "", fails = "", id = "", rejects = "", by = "", origin = "", wait = True): it returns the result of the receipt. With
// fails, the event must fail with an error that contains these words, which is returned; with rejects, its handler
// must reject it with this code, and the data of the rejection is returned. With by, that principal sends it; with origin, that space sends it, and otherwise a client. With
// wait = False, the event is handled with what the test does next.
func (inst *instance) testSend(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	e := testEvent{payload: starlark.None, wait: true}
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"stream", &e.stream, "payload?", &e.payload, "space?", &e.to}, e.more()...)...); err != nil {
		return nil, err
	}
	return inst.sendEvent(b, &e)
}

// testSendTo is send_to(space, stream, payload = None, fails = "", id = "", rejects = "", by = "", origin = "", wait = True).
func (inst *instance) testSendTo(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	e := testEvent{payload: starlark.None, wait: true}
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, append([]any{"space", &e.to, "stream", &e.stream, "payload?", &e.payload}, e.more()...)...); err != nil {
		return nil, err
	}
	return inst.sendEvent(b, &e)
}

// testEvent is an event that a test sends, and how it is to end.
type testEvent struct {
	to, stream, id, by, origin string
	payload                    starlark.Value
	want                       expected
	wait                       bool
}

func (e *testEvent) more() []any {
	return []any{"fails?", &e.want.fails, "id?", &e.id, "rejects?", &e.want.rejects, "by?", &e.by, "origin?", &e.origin, "wait?", &e.wait}
}

func (inst *instance) sendEvent(b *starlark.Builtin, e *testEvent) (starlark.Value, error) {
	s, err := inst.spaceNamed(b, e.to)
	if err != nil {
		return nil, err
	}
	v, err := inst.Run.ToModel(e.payload)
	if err != nil {
		return nil, fmt.Errorf("%s: payload: %w", b.Name(), err)
	}
	if !e.wait {
		return starlark.None, inst.queue(b, s, e, v)
	}
	rc, ok, err := inst.sendAs(b, s, e, v)
	if err == nil && ok {
		err = inst.performMocked()
	}
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%s %s: the event is not handled: %s", b.Name(), e.stream, s.Pending())
	}
	v, err = e.want.check(&rc)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", b.Name(), e.stream, err)
	}
	return value.FromModel(v), nil
}

// queue sends an event that is handled with what the test does next.
func (inst *instance) queue(b *starlark.Builtin, to TestSpace, e *testEvent, payload model.Value) error {
	if e.want.fails != nil || e.want.rejects != "" || e.origin != "" {
		return fmt.Errorf("%s %s: with wait = False there is no end of the event yet, and no space that sends it; leave out fails, rejects and origin. Sent again under its id, the event is waited for", b.Name(), e.stream)
	}
	inst.test.queued = true
	if err := to.Queue(e.by, e.stream, e.id, payload); err != nil {
		return fmt.Errorf("%s %s: %w", b.Name(), e.stream, err)
	}
	return nil
}

// sendAs sends an event as a client, perhaps in the name of a principal, or as the space that is its origin.
func (inst *instance) sendAs(b *starlark.Builtin, to TestSpace, e *testEvent, payload model.Value) (model.Receipt, bool, error) {
	if e.origin == "" {
		return to.SendAs(e.by, e.stream, e.id, payload, time.Time{})
	}
	if e.id != "" || e.by != "" {
		return model.Receipt{}, false, fmt.Errorf("%s %s: an event that space %s sends has neither a principal nor an id that the test chooses; leave out origin, or id and by", b.Name(), e.stream, e.origin)
	}
	from, err := inst.spaceNamed(b, e.origin)
	if err != nil {
		return model.Receipt{}, false, err
	}
	return from.SendTo(cmp.Or(e.to, testSpace), e.stream, payload)
}

// check returns what a send returns: the result, the error, or the data of the rejection.
func (e *expected) check(rc *model.Receipt) (model.Value, error) {
	words, _ := starlark.AsString(e.fails)
	switch {
	case e.rejects != "" && e.fails != nil:
		return model.Value{}, errors.New("use either fails or rejects")
	case e.rejects != "" && (rc.Outcome != model.Rejected || rc.Code != e.rejects):
		return model.Value{}, fmt.Errorf("the event was expected to be rejected with the code %q, but is %s: %s", e.rejects, rc.Outcome, receipts.Reason(rc))
	case e.rejects != "":
		return rc.Result, nil
	case e.fails != nil && rc.Outcome == model.Handled:
		return model.Value{}, fmt.Errorf("the event was expected to fail, but was handled with the result %s", rc.Result)
	case e.fails != nil && !strings.Contains(rc.Error, words):
		return model.Value{}, fmt.Errorf("the event was expected to fail with %q, but failed with %q", words, rc.Error)
	case e.fails != nil:
		return model.String(rc.Error), nil
	case rc.Outcome != model.Handled:
		return model.Value{}, fmt.Errorf("the event is %s: %s", rc.Outcome, receipts.Reason(rc))
	}
	return rc.Result, nil
}

// testAdvance is advance("24h"): everything due on the way is done at its time.
func (inst *instance) testAdvance(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var by starlark.String
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "by", &by); err != nil {
		return nil, err
	}
	d, err := durationOf("advance", by)
	if err == nil && inst.test.world == nil {
		_, err = inst.spaceNamed(b, "")
	}
	if err != nil {
		return nil, err
	}
	return starlark.None, inst.advanceMocked(d)
}

func (inst *instance) testNow(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if _, err := inst.spaceNamed(b, ""); err != nil {
		return nil, err
	}
	return starlark.MakeInt64(inst.test.world.Now().UnixMilli()), nil
}

// testExpect is expect(document or place, value, space = ""): it fails if the value at the place, up to
// date, is another one.
func (inst *instance) testExpect(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var what, want starlark.Value
	var in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "doc", &what, "value", &want, "space?", &in); err != nil {
		return nil, err
	}
	p, ok := what.(*value.Place)
	if name, isName := what.(starlark.String); isName {
		p, ok = &value.Place{Cur: &inst.Current, Doc: string(name), Stored: true}, true
	}
	if !ok {
		return starlark.None, inst.current().expectEqual(what, want, "the value")
	}
	if in != "" {
		own := *p
		own.Space = in
		p = &own
	}
	if err := model.CheckName("document", p.Doc); err != nil {
		return nil, fmt.Errorf("expect: %w; it takes the name of a document, or a place, and equal(...) compares values", err)
	}
	v, err := p.Read()
	if err != nil {
		return nil, err
	}
	if v.IsAbsent() && p != what && p.Doc == inst.Run.LastText {
		return nil, fmt.Errorf("expect: document %s is not there. If %q was read from a document just now: equal(...) compares what was read. If a document is meant: expect(doc(%q), ...)", p.Doc, p.Doc, p.Doc)
	}
	err = inst.current().expectEqual(value.FromModel(v), want, "document "+p.String())
	if err != nil && v.IsAbsent() && p != what {
		err = fmt.Errorf("%w. A name has no default. To compare with the default of a cell, load the cell from the program and give it to expect", err)
		if _, text := want.(starlark.String); text {
			err = fmt.Errorf("%w; equal(...) compares strings that were read", err)
		}
	}
	return starlark.None, err
}

// testEqual is equal(a, b).
func (inst *instance) testEqual(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var have, want starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "have", &have, "want", &want); err != nil {
		return nil, err
	}
	return starlark.None, inst.current().expectEqual(have, want, "the value")
}

// expectEqual returns an error if two values are not equal. what names the first one.
func (c *call) expectEqual(have, want starlark.Value, what string) error {
	same, err := interp.Equal(&c.Run, have, want, 0)
	if err != nil || same {
		return err
	}
	a, b := interp.ShortText(&c.Run, have), interp.ShortText(&c.Run, want)
	text := fmt.Sprintf("%s is %s; %s was expected", what, a, b)
	x, err1 := c.ToModel(have)
	y, err2 := c.ToModel(want)
	if err1 == nil && err2 == nil && value.IsContainer(x) && value.IsContainer(y) {
		var at []string
		version := 0
		for _, w := range model.Diff("", y, x) {
			if len(w.Path) > 0 { // otherwise the first line shows the difference
				at = append(at, fmt.Sprintf("\n  %s: %s, not %s", w.Path, x.At(w.Path), y.At(w.Path)))
				if w.Path[len(w.Path)-1] == model.VersionKey && y.At(w.Path).IsAbsent() {
					version = model.VersionIn(x.At(w.Path))
				}
			}
		}
		text += strings.Join(at[:min(len(at), 10)], "")
		if version > 1 {
			text += "\nIt is compared as it is stored. To compare its present form, " + presentForm(version)
		}
	}
	return fmt.Errorf("%s", text)
}

// testCheck is check(condition, message...).
func (inst *instance) testCheck(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil, fmt.Errorf("check: it takes a condition, and an optional message")
	}
	if args[0].Truth() {
		return starlark.None, nil
	}
	parts := []string{"the condition is false"}
	for _, a := range args[1:] {
		if s, ok := starlark.AsString(a); ok {
			parts = append(parts, s)
		} else {
			parts = append(parts, interp.ShortText(inst.Run, a))
		}
	}
	if len(parts) > 1 {
		parts = parts[1:]
	}
	return nil, fmt.Errorf("%s", strings.Join(parts, " "))
}

// documentOf returns the name that a builtin of tests was given, or that of the document whose place it was given, and the space.
func documentOf(b *starlark.Builtin, x starlark.Value, in string) (doc, space string, err error) {
	switch x := x.(type) {
	case starlark.String:
		return string(x), in, nil
	case *value.Place:
		if len(x.Path) == 0 {
			return x.Doc, cmp.Or(in, x.Space), nil
		}
		return "", "", fmt.Errorf("%s: %s is a part of a document; give the document", b.Name(), x)
	}
	return "", "", fmt.Errorf("%s: the first argument must be a name, or what cell, doc or compute returned, not %s", b.Name(), meter.Article(x.Type()))
}

// nodeArguments reads the arguments (node, space = "").
func (inst *instance) nodeArguments(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (string, TestSpace, error) {
	var of starlark.Value
	var in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "node", &of, "space?", &in); err != nil {
		return "", nil, err
	}
	node, in, err := documentOf(b, of, in)
	if err != nil {
		return "", nil, err
	}
	s, err := inst.spaceNamed(b, in)
	if _, is := of.(*value.Place); is {
		node = inst.test.deriving(node)
	}
	if err == nil && !s.Has(node) && s.Runs(node) == 0 {
		err = fmt.Errorf("%s: there is no node %s", b.Name(), node)
	}
	return node, s, err
}

// testRuns is runs(node, space = ""): how often it has run since mark, or since the test began.
func (inst *instance) testRuns(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	node, s, err := inst.nodeArguments(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return starlark.MakeInt(s.Runs(node)), nil
}

// testRan is ran(space = ""): the nodes that have run, in order.
func (inst *instance) testRan(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	s, err := inst.spaceArgument(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	ran := slices.DeleteFunc(s.Ran(), func(id string) bool { return strings.ContainsAny(id, ":=") })
	return interp.StringList(inst.Run, ran)
}

func (inst *instance) spaceArgument(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (TestSpace, error) {
	var in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "space?", &in); err != nil {
		return nil, err
	}
	return inst.spaceNamed(b, in)
}

// testMark is mark(space = ""): it resets the counts of runs.
func (inst *instance) testMark(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	s, err := inst.spaceArgument(b, args, kwargs)
	if err == nil {
		s.Mark()
	}
	return starlark.None, err
}

// testWhy is why(node, space = ""): why the node ran, or why it does not run.
func (inst *instance) testWhy(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	node, s, err := inst.nodeArguments(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return starlark.String(s.Why(node)), nil
}

// testWatch is watch(doc, space = ""): it observes the document from now on.
func (inst *instance) testWatch(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var of starlark.Value
	var in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "doc", &of, "space?", &in); err != nil {
		return nil, err
	}
	doc, in, err := documentOf(b, of, in)
	if err != nil {
		return nil, err
	}
	s, err := inst.spaceNamed(b, in)
	if err != nil {
		return nil, err
	}
	return starlark.None, s.Watch(doc)
}

// testProblems is problems(): the problems of the spaces since the last call. A problem that was
// returned does not fail the test.
func (inst *instance) testProblems(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if _, err := inst.spaceNamed(b, ""); err != nil {
		return nil, err
	}
	var texts []string
	for _, p := range inst.test.world.TakeProblems() {
		texts = append(texts, p.Text)
	}
	return interp.StringList(inst.Run, texts)
}

func (inst *instance) testLog(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var parts []string
	for _, a := range args {
		s, err := interp.Text(inst.Run, a)
		if err != nil {
			return nil, err
		}
		parts = append(parts, s)
	}
	inst.test.log = append(inst.test.log, strings.Join(parts, " "))
	return starlark.None, nil
}

func (inst *instance) testSpaceName(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return starlark.String(testSpace), nil
}

// testRestart is restart(after = ""): every process of the world ends and starts again, at once or some time later.
func (inst *instance) testRestart(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var after starlark.String
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "after?", &after); err != nil {
		return nil, err
	}
	d, err := durationOf("after", after)
	if err == nil {
		_, err = inst.spaceNamed(b, "")
	}
	switch {
	case err != nil:
		return nil, err
	case d == 0:
		return starlark.None, inst.test.world.Restart()
	}
	if err := inst.test.world.Outage(d); err != nil {
		return nil, err
	}
	return starlark.None, inst.performMocked()
}

// testReplay is replay(lines): it repeats what happened in a space, at the same times, in a world that
// replaces the test's. The test fails if a result differs. Functions run once, and their errors do not
// fail the test, since production had them too.
func (inst *instance) testReplay(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var list *starlark.List
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "lines", &list); err != nil {
		return nil, err
	}
	if inst.test.world == nil {
		return nil, fmt.Errorf("%s: call it in a function whose name begins with test_", b.Name())
	}
	var lines []string
	for i := range list.Len() {
		text, ok := starlark.AsString(list.Index(i))
		if !ok {
			return nil, fmt.Errorf("%s: line %d is a %s; `settle replay` writes strings", b.Name(), i+1, list.Index(i).Type())
		}
		lines = append(lines, text)
	}
	x := inst.test
	w, r, err := x.engine.Replay(x.program.Space(), lines, x.addLog)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Name(), err)
	}
	x.start, x.world = r.Start, w
	x.world.TakeProblems() // production had them too
	if len(r.Differences) > 0 {
		return nil, fmt.Errorf("%s of space %s: %s", b.Name(), r.Space, strings.Join(r.Differences, "\n  "))
	}
	return starlark.None, nil
}
