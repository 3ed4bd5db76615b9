package star

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
)

// testDeeds are the builtins of tests. Those that have the name of one of the program's
// stand in its place.
var testDeeds map[string]func(m *machine) builtinFunc

func init() {
	testDeeds = map[string]func(m *machine) builtinFunc{
		"send": func(m *machine) builtinFunc { return m.testSend }, "send_to": func(m *machine) builtinFunc { return m.testSendTo },
		"advance": func(m *machine) builtinFunc { return m.testAdvance }, "now": func(m *machine) builtinFunc { return m.testNow },
		"expect": func(m *machine) builtinFunc { return m.testExpect }, "equal": func(m *machine) builtinFunc { return m.testEqual },
		"check": func(m *machine) builtinFunc { return m.testCheck }, "runs": func(m *machine) builtinFunc { return m.testRuns },
		"ran": func(m *machine) builtinFunc { return m.testRan }, "mark": func(m *machine) builtinFunc { return m.testMark },
		"why": func(m *machine) builtinFunc { return m.testWhy }, "watch": func(m *machine) builtinFunc { return m.testWatch },
		"problems": func(m *machine) builtinFunc { return m.testProblems }, "log": func(m *machine) builtinFunc { return m.testLog },
		"space": func(m *machine) builtinFunc { return m.testSpaceName }, "restart": func(m *machine) builtinFunc { return m.testRestart },
		"replay": func(m *machine) builtinFunc { return m.testReplay },
	}
}

// kitSpace is a space of the test's world, the test's own if name is "".
func (m *machine) kitSpace(b *starlark.Builtin, name string) (TestSpace, error) {
	if m.test.world == nil {
		return nil, fmt.Errorf("%s: there is no space while the file is loaded; call it in a function whose name begins with test_", b.Name())
	}
	if name == "" {
		name = testSpace
	}
	return m.test.world.Space(name)
}

// testSend is send(stream, payload = None, space = "", fails = "", id = ""): it returns the
// result of the receipt. With fails, the event is to fail, with these words in its error,
// which is returned.
func (m *machine) testSend(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var stream, in, id string
	var payload, fails starlark.Value = starlark.None, nil
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "stream", &stream, "payload?", &payload, "space?", &in, "fails?", &fails, "id?", &id); err != nil {
		return nil, err
	}
	return m.sent(b, in, stream, id, payload, fails)
}

// testSendTo is send_to(space, stream, payload = None, fails = "", id = "").
func (m *machine) testSendTo(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var stream, in, id string
	var payload, fails starlark.Value = starlark.None, nil
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "space", &in, "stream", &stream, "payload?", &payload, "fails?", &fails, "id?", &id); err != nil {
		return nil, err
	}
	return m.sent(b, in, stream, id, payload, fails)
}

func (m *machine) sent(b *starlark.Builtin, in, stream, id string, payload, fails starlark.Value) (starlark.Value, error) {
	s, err := m.kitSpace(b, in)
	if err != nil {
		return nil, err
	}
	v, err := m.cur.leave(payload)
	if err != nil {
		return nil, fmt.Errorf("%s: payload: %w", b.Name(), err)
	}
	rc, ok, err := s.Send(stream, id, v, time.Time{})
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("%s %s: the event is not handled: %s", b.Name(), stream, s.Pending())
	case fails != nil && rc.Outcome == model.Handled:
		return nil, fmt.Errorf("%s %s: the event was to fail and was handled, with the result %s", b.Name(), stream, rc.Result)
	case fails != nil:
		words, _ := starlark.AsString(fails)
		if !strings.Contains(rc.Error, words) {
			return nil, fmt.Errorf("%s %s: the event was to fail with %q and did with %q", b.Name(), stream, words, rc.Error)
		}
		return starlark.String(rc.Error), nil
	case rc.Outcome != model.Handled:
		return nil, fmt.Errorf("%s %s: the event is %s: %s", b.Name(), stream, rc.Outcome, rc.Error)
	}
	return show(rc.Result), nil
}

// testAdvance is advance("24h"): what is due on the way is done at its time.
func (m *machine) testAdvance(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var by starlark.String
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "by", &by); err != nil {
		return nil, err
	}
	d, err := durationOf("advance", by)
	if err == nil && m.test.world == nil {
		_, err = m.kitSpace(b, "")
	}
	if err != nil {
		return nil, err
	}
	return starlark.None, m.test.world.Advance(d)
}

func (m *machine) testNow(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if _, err := m.kitSpace(b, ""); err != nil {
		return nil, err
	}
	return starlark.MakeInt64(m.test.world.Now().UnixMilli()), nil
}

// testExpect is expect(document or place, value, space = ""): the value is what follows from
// all that has happened.
func (m *machine) testExpect(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var what, want starlark.Value
	var in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "doc", &what, "value", &want, "space?", &in); err != nil {
		return nil, err
	}
	p, ok := what.(*place)
	if name, isName := what.(starlark.String); isName {
		p, ok = &place{m: m, doc: string(name)}, true
	}
	if !ok {
		return starlark.None, m.cur.differ(what, want, "the value")
	}
	if in != "" {
		own := *p
		own.space = in
		p = &own
	}
	if err := model.CheckName("document", p.doc); err != nil {
		return nil, fmt.Errorf("expect: %w; it takes the name of a document, or a place, and equal(...) compares values", err)
	}
	v, err := p.read()
	if err != nil {
		return nil, err
	}
	if v.IsAbsent() && p != what && p.doc == m.cur.got {
		return nil, fmt.Errorf("expect: document %s is not there. If %q was read from a document just now: equal(...) compares what was read. If a document is meant: expect(doc(%q), ...)", p.doc, p.doc, p.doc)
	}
	err = m.cur.differ(show(v), want, "document "+p.String())
	if err != nil && v.IsAbsent() && p != what {
		err = fmt.Errorf("%w. A name has no default: that of a cell counts if expect is given the place, which load takes from the program", err)
		if _, text := want.(starlark.String); text {
			err = fmt.Errorf("%w; equal(...) compares texts that were read", err)
		}
	}
	return starlark.None, err
}

// testEqual is equal(a, b).
func (m *machine) testEqual(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var have, want starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "have", &have, "want", &want); err != nil {
		return nil, err
	}
	return starlark.None, m.cur.differ(have, want, "the value")
}

// differ is an error if two values are not equal.
func (l *level) differ(have, want starlark.Value, what string) error {
	same, err := l.equal(have, want, 0)
	if err != nil || same {
		return err
	}
	a, b := l.shortText(have), l.shortText(want)
	text := fmt.Sprintf("%s is %s; %s was expected", what, a, b)
	x, err1 := l.leave(have)
	y, err2 := l.leave(want)
	if err1 == nil && err2 == nil && isContainer(x) && isContainer(y) {
		var at []string
		for _, w := range model.Diff("", y, x) {
			if len(w.Path) > 0 { // else the line above says it
				at = append(at, fmt.Sprintf("\n  %s: %s, not %s", w.Path, x.At(w.Path), y.At(w.Path)))
			}
		}
		text += strings.Join(at[:min(len(at), 10)], "")
	}
	return fmt.Errorf("%s", text)
}

// testCheck is check(condition, message...).
func (m *machine) testCheck(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || len(kwargs) > 0 {
		return nil, fmt.Errorf("check: it takes a condition, and what to say if that does not hold")
	}
	if args[0].Truth() {
		return starlark.None, nil
	}
	parts := []string{"the condition does not hold"}
	for _, a := range args[1:] {
		if s, ok := starlark.AsString(a); ok {
			parts = append(parts, s)
		} else {
			parts = append(parts, m.cur.shortText(a))
		}
	}
	if len(parts) > 1 {
		parts = parts[1:]
	}
	return nil, fmt.Errorf("%s", strings.Join(parts, " "))
}

// nodeIn reads the arguments (node, space = "").
func (m *machine) nodeIn(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (string, TestSpace, error) {
	var node, in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "node", &node, "space?", &in); err != nil {
		return "", nil, err
	}
	s, err := m.kitSpace(b, in)
	if err == nil && !s.Has(node) && s.Runs(node) == 0 {
		err = fmt.Errorf("%s: there is no node %s", b.Name(), node)
	}
	return node, s, err
}

// testRuns is runs(node, space = ""): how often it has run since mark, or since the test began.
func (m *machine) testRuns(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	node, s, err := m.nodeIn(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return starlark.MakeInt(s.Runs(node)), nil
}

// testRan is ran(space = ""): the nodes that have run, in order.
func (m *machine) testRan(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	s, err := m.inSpace(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	ran := slices.DeleteFunc(s.Ran(), func(id string) bool { return strings.ContainsAny(id, ":=") })
	return m.cur.strings(ran)
}

func (m *machine) inSpace(b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (TestSpace, error) {
	var in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "space?", &in); err != nil {
		return nil, err
	}
	return m.kitSpace(b, in)
}

// testMark is mark(space = ""): runs are counted from here on.
func (m *machine) testMark(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	s, err := m.inSpace(b, args, kwargs)
	if err == nil {
		s.Mark()
	}
	return starlark.None, err
}

// testWhy is why(node, space = ""): why it ran, or why it does not run.
func (m *machine) testWhy(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	node, s, err := m.nodeIn(b, args, kwargs)
	if err != nil {
		return nil, err
	}
	return starlark.String(s.Why(node)), nil
}

// testWatch is watch(doc, space = ""): from here on somebody watches the document.
func (m *machine) testWatch(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var doc, in string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "doc", &doc, "space?", &in); err != nil {
		return nil, err
	}
	s, err := m.kitSpace(b, in)
	if err != nil {
		return nil, err
	}
	return starlark.None, s.Watch(doc)
}

// testProblems is problems(): what has gone wrong in the spaces since it was asked last. What
// a test has asked for does not fail it.
func (m *machine) testProblems(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if _, err := m.kitSpace(b, ""); err != nil {
		return nil, err
	}
	var texts []string
	for _, p := range m.test.world.TakeProblems() {
		texts = append(texts, p.Text)
	}
	return m.cur.strings(texts)
}

func (m *machine) testLog(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var parts []string
	for _, a := range args {
		s, err := m.cur.text(a)
		if err != nil {
			return nil, err
		}
		parts = append(parts, s)
	}
	m.test.log = append(m.test.log, strings.Join(parts, " "))
	return starlark.None, nil
}

func (m *machine) testSpaceName(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return starlark.String(testSpace), nil
}

// testRestart is restart(): every process ends and starts again.
func (m *machine) testRestart(_ *starlark.Thread, b *starlark.Builtin, _ starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if _, err := m.kitSpace(b, ""); err != nil {
		return nil, err
	}
	return starlark.None, m.test.world.Restart()
}
