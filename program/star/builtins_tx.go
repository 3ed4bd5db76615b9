package star

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program/star/internal/interp"
	"github.com/settlehq/settle/program/star/internal/meter"
	"github.com/settlehq/settle/program/star/internal/value"
	"github.com/settlehq/settle/space"
)

// eventTime are the arguments that set when an event is handled.
type eventTime struct {
	after starlark.String
	at    starlark.Value
	// expires is how long from now the event may be handled, "" without end.
	expires starlark.String
}

// due returns the time from which the event may be handled, and false if that is now.
func (w *eventTime) due(tx *space.Tx) (time.Time, bool, error) {
	switch {
	case w.after != "" && w.at != nil:
		return time.Time{}, false, fmt.Errorf("after and at both set the time; use one of them")
	case w.after != "":
		d, err := durationOf("after", w.after)
		return tx.Now().Add(d), true, err
	case w.at == nil || w.at == starlark.None:
		return time.Time{}, false, nil
	}
	t, err := asTime(w.at)
	return t, true, err
}

// expiry returns the option that sets until when the event may be handled.
func (w *eventTime) expiry(tx *space.Tx) (space.SendOption, error) {
	d, err := durationOf("expires", w.expires)
	if d == 0 || err != nil {
		return space.ExpiresAt(time.Time{}), err
	}
	return space.ExpiresAt(tx.Now().Add(d)), nil
}

// asTime reads a time: milliseconds since 1970, or RFC 3339.
func asTime(x starlark.Value) (time.Time, error) {
	switch x := x.(type) {
	case starlark.Int:
		if ms, ok := x.Int64(); ok {
			return time.UnixMilli(ms).UTC(), nil
		}
	case starlark.String:
		if t, err := time.Parse(time.RFC3339, string(x)); err == nil {
			return t.UTC(), nil
		}
		return time.Time{}, fmt.Errorf("%q is not a time; write it like \"2026-11-22T09:00:00Z\"", meter.Clip(string(x)))
	}
	return time.Time{}, fmt.Errorf("a time is milliseconds since 1970, as now() returns, or an RFC 3339 string, not %s", meter.Article(x.Type()))
}

const sendsOnly = "only handlers send events; let a handler write what this node reads, or send from the handler"

// send is send(space, stream, payload = None, after = "24h", at = time, expires = "90s").
func (inst *instance) send(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var to, stream string
	var payload starlark.Value = starlark.None
	var w eventTime
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "space", &to, "stream", &stream, "payload?", &payload, "after?", &w.after, "at?", &w.at, "expires?", &w.expires); err != nil {
		return nil, err
	}
	tx, err := inst.inHandler(b, sendsOnly)
	if err != nil {
		return nil, err
	}
	if to == "" {
		return nil, fmt.Errorf("send: the space is \"\"; this one is space()")
	}
	v, err := inst.Run.ToModel(payload)
	if err != nil {
		return nil, fmt.Errorf("send: payload: %w", err)
	}
	at, waits, err := w.due(tx)
	expires, wrong := w.expiry(tx)
	switch err = cmp.Or(err, wrong); {
	case err != nil:
		return nil, fmt.Errorf("send: %w", err)
	case waits:
		tx.SendAt(to, stream, at, v, expires)
	default:
		tx.Send(to, stream, v, expires)
	}
	return starlark.None, tx.Err()
}

// setTimer is set_timer(name, stream, payload = None, after = ..., at = ..., expires = ...).
func (inst *instance) setTimer(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name, stream string
	var payload starlark.Value = starlark.None
	var w eventTime
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name, "stream", &stream, "payload?", &payload, "after?", &w.after, "at?", &w.at, "expires?", &w.expires); err != nil {
		return nil, err
	}
	tx, err := inst.inHandler(b, "only handlers use timers")
	if err != nil {
		return nil, err
	}
	v, err := inst.Run.ToModel(payload)
	if err != nil {
		return nil, fmt.Errorf("set_timer %s: payload: %w", name, err)
	}
	at, waits, err := w.due(tx)
	expires, wrong := w.expiry(tx)
	if err = cmp.Or(err, wrong); err == nil && !waits {
		err = fmt.Errorf("it needs a time: after = \"10m\", or at = now() + 600000")
	}
	if err != nil {
		return nil, fmt.Errorf("set_timer %s: %w", name, err)
	}
	tx.SetTimer(name, stream, at, v, expires)
	return starlark.None, tx.Err()
}

func (inst *instance) cancelTimer(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name); err != nil {
		return nil, err
	}
	tx, err := inst.inHandler(b, "only handlers use timers")
	if err != nil {
		return nil, err
	}
	tx.CancelTimer(name)
	return starlark.None, tx.Err()
}

// timer is timer(name): the time for which a timer is set, None if it is not set.
func (inst *instance) timer(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name); err != nil {
		return nil, err
	}
	tx, err := inst.inHandler(b, "only handlers use timers")
	if err != nil {
		return nil, err
	}
	if at, set := tx.Timer(name); set {
		return starlark.MakeInt64(at.UnixMilli()), nil
	}
	return starlark.None, nil
}

// now is now(): the time, in milliseconds since 1970.
func (inst *instance) now(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	tx, err := inst.inHandler(b, "a node does not run again when time passes; let a handler write the time that the node reads")
	if err != nil {
		return nil, err
	}
	return starlark.MakeInt64(tx.Now().UnixMilli()), tx.Err()
}

// event is event(): the id and stream of the event that is handled, its origin (the space that sent it,
// None for a client), the principal in whose name a client has sent it, and its timer (the name); both are None for other events.
func (inst *instance) event(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	if _, err := inst.inHandler(b, "only a handler has an event"); err != nil {
		return nil, err
	}
	ev := inst.current().ev
	orNull := func(s string) model.Value {
		if s == "" {
			return model.Null()
		}
		return model.String(s)
	}
	return &value.View{Closed: "an event", V: model.Object(
		model.Field{Key: "by", Value: orNull(ev.By())}, model.Field{Key: "id", Value: model.String(ev.ID)}, model.Field{Key: "origin", Value: orNull(ev.Origin())},
		model.Field{Key: "stream", Value: model.String(ev.Stream)}, model.Field{Key: "timer", Value: orNull(ev.Timer)},
	)}, nil
}

func (inst *instance) spaceName(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs(b.Name(), args, kwargs); err != nil {
		return nil, err
	}
	tx, err := inst.transaction(b)
	if err != nil {
		return nil, err
	}
	return starlark.String(tx.Space()), nil
}

// group is group(name): the handler's changes are in a change group, whose nodes they do not
// invalidate.
func (inst *instance) group(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var name string
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "name", &name); err != nil {
		return nil, err
	}
	tx, err := inst.inHandler(b, "the group of a node is set with group = ... where it is registered")
	if err == nil {
		tx.Group(name)
	}
	return starlark.None, err
}

// log is log(message, key = value): a line in the log of the worker.
func (inst *instance) log(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	c := inst.current()
	var parts []string
	for _, a := range args {
		s, err := interp.Text(&c.Run, a)
		if err != nil {
			return nil, err
		}
		parts = append(parts, s)
	}
	line := strings.Join(parts, " ")
	pairs := make([]any, 0, 2*len(kwargs))
	size := len(line)
	for _, kv := range kwargs {
		s, err := interp.Text(&c.Run, kv[1])
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, string(kv[0].(starlark.String)), s)
		size += len(s) + len(kv[0].(starlark.String))
	}
	c.lines, c.out = c.lines+1, c.out+size
	if limit := c.Bounds.Output; c.lines > maxLogLines || c.out > limit {
		return nil, fmt.Errorf("log: a run can log at most %d lines and %s", maxLogLines, meter.BytesText(int64(limit)))
	}
	if !utf8.ValidString(line) {
		line = strings.ToValidUTF8(line, "\uFFFD")
	}
	if c.tx != nil {
		c.tx.Log(line, pairs...)
	}
	return starlark.None, nil
}

// maxLink bounds the path of a link, in bytes.
const maxLink = 4096

// link is link(place), or link(doc, step, ..., space = name): a value that points there.
func (inst *instance) link(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var in string
	if err := starlark.UnpackArgs(b.Name(), nil, kwargs, "space?", &in); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		return nil, fmt.Errorf("link: it needs a place, or the name of a document")
	}
	if p, ok := args[0].(*value.Place); ok && len(args) == 1 && in == "" {
		if size := len(p.Path.String()); size > maxLink {
			return nil, fmt.Errorf("link: the path of a link can have at most %d bytes, not %d", maxLink, size)
		}
		return value.Link{Target: model.Link{Space: p.Space, Doc: p.Doc, Path: p.Path}}, nil
	}
	steps, size := make([]string, len(args)), 0
	for i, a := range args {
		s, ok := a.(starlark.String)
		if !ok {
			return nil, fmt.Errorf("link: the arguments must be names and keys, not %s", meter.Article(a.Type()))
		}
		steps[i] = string(s)
		size += len(s)
	}
	if size > maxLink {
		return nil, fmt.Errorf("link: the path of a link can have at most %d bytes, not %d", maxLink, size)
	}
	l := model.Link{Space: in, Doc: steps[0], Path: steps[1:]}
	if _, err := model.Of(l); err != nil {
		return nil, err
	}
	return value.Link{Target: l}, nil
}

// follow is follow(link): the place that a link points to.
func (inst *instance) follow(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "link", &x); err != nil {
		return nil, err
	}
	tx, err := inst.transaction(b)
	if err != nil {
		return nil, err
	}
	if p, ok := x.(*value.Place); ok { // reads follow links
		return p, nil
	}
	l, ok := x.(value.Link)
	if !ok {
		return nil, fmt.Errorf("follow: %s is not a link", meter.Article(x.Type()))
	}
	in := l.Target.Space
	if in == tx.Space() {
		in = ""
	}
	c := &value.Place{Cur: &inst.Current, Space: in, Doc: l.Target.Doc, Path: l.Target.Path}
	if len(c.Path) == 0 {
		return c, nil
	}
	up := &value.Place{Cur: &inst.Current, Space: in, Doc: c.Doc, Path: c.Path[:len(c.Path)-1]}
	return up.Member(c.Path[len(c.Path)-1])
}

// linkAt is link_at(place, key): the link that is stored there, None if there is none. Reading the
// place itself reads the target of the link.
func (inst *instance) linkAt(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x *value.Place
	var k starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "place", &x, "key?", &k); err != nil {
		return nil, err
	}
	tx, err := inst.transaction(b)
	if err != nil {
		return nil, err
	}
	if x, err = x.At(k); err != nil {
		return nil, err
	}
	if x.Space != "" {
		return nil, fmt.Errorf("link_at: %s is in another space", x)
	}
	if l, ok := tx.Link(x.Doc, x.Path...); ok {
		return value.Link{Target: l}, tx.Err()
	}
	return starlark.None, tx.Err()
}

// rfc3339 is rfc3339(time): the time as text.
func rfc3339(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var ms int64
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "time", &ms); err != nil {
		return nil, err
	}
	return starlark.String(time.UnixMilli(ms).UTC().Format(time.RFC3339Nano)), nil
}

// timeOf is time_of(text), in milliseconds since 1970.
func timeOf(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &x); err != nil {
		return nil, err
	}
	t, err := asTime(x)
	if err != nil {
		return nil, err
	}
	return starlark.MakeInt64(t.UnixMilli()), nil
}

// durationMillis is duration("24h"), in milliseconds.
func durationMillis(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var text starlark.String
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "text", &text); err != nil {
		return nil, err
	}
	d, err := durationOf("duration", text)
	return starlark.MakeInt64(d.Milliseconds()), err
}
