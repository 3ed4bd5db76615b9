package flow

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// Document is a place in the documents of the run's own space: a settle.Cell or a settle.Derived, or a field of one.
type Document[T any] interface {
	Address() space.Address
	Decode(v settle.Value) (T, error)
}

// Until waits for a condition of a document, and has the document's value with which it holds. The function is executed when
// the wait begins and whenever the document changes; no other change costs anything. Of a derived document, the wait is an
// observer: it is computed until the wait ends.
func Until[T any](b *Builder, doc Document[T], is func(T) bool) Value[T] {
	v := b.variable()
	n := b.until(doc.Address(), nil, holds(doc, is))
	n.Into = b.assign(v, workflow.ResultName+"[0]", workflow.ResultName)
	b.step(n)
	return Value[T]{v}
}

// TryUntil is Until with a timeout, after which the value has a TimeoutError.
func TryUntil[T any](b *Builder, doc Document[T], is func(T) bool, timeout time.Duration) Value[Outcome[T]] {
	v := b.variable()
	n := b.until(doc.Address(), &timeout, holds(doc, is))
	n.Attempt, n.Into = true, b.untilOutcome(v)
	b.step(n)
	return Value[Outcome[T]]{v}
}

// UntilWith is Until with a condition that uses a value of the run, as it is when the wait begins.
func UntilWith[A, T any](b *Builder, with Value[A], doc Document[T], is func(A, T) bool) Value[T] {
	v := b.variable()
	n := b.until(doc.Address(), nil, holdsWith(doc, is), with.name)
	n.Into = b.assign(v, workflow.ResultName+"[0]", workflow.ResultName)
	b.step(n)
	return Value[T]{v}
}

// TryUntilWith is UntilWith with a timeout, after which the value has a TimeoutError.
func TryUntilWith[A, T any](b *Builder, with Value[A], doc Document[T], is func(A, T) bool, timeout time.Duration) Value[Outcome[T]] {
	v := b.variable()
	n := b.until(doc.Address(), &timeout, holdsWith(doc, is), with.name)
	n.Attempt, n.Into = true, b.untilOutcome(v)
	b.step(n)
	return Value[Outcome[T]]{v}
}

// untilOutcome returns the assignment of the result of an attempted wait, whose value is in a list.
func (b *Builder) untilOutcome(v string) *workflow.Code {
	r := workflow.ResultName
	return b.assign(v, `{"value": `+r+`.value[0] if `+r+`.ok else None, "error": `+r+`.error}`, r)
}

// until returns a node that waits for a condition of a place. f gets the values of variables and behind them that of the place,
// and returns the latter in a list if the condition holds, so that it is true whatever it is.
func (b *Builder) until(at space.Address, timeout *time.Duration, f func(args starlark.Tuple) (starlark.Value, error), reads ...string) workflow.Node {
	if at.Space != "" && b.err == nil {
		b.err = fmt.Errorf("line %d: the condition of a wait is about documents of the run's own space, and %s is of another one; derive a document from it", line(), at)
	}
	path := []string{strconv.Quote(at.Doc)}
	for _, key := range at.Path {
		path = append(path, strconv.Quote(key))
	}
	limit := "None"
	if timeout != nil {
		limit = strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64)
	}
	args := append(append([]string{}, reads...), "get("+strings.Join(path, ", ")+")")
	return workflow.Node{Kind: workflow.Wait, Code: b.code("(None), (" + limit + ")"), Until: b.code(b.function(f)+"("+strings.Join(args, ", ")+")", reads...)}
}

func holds[T any](doc Document[T], is func(T) bool) func(args starlark.Tuple) (starlark.Value, error) {
	return func(args starlark.Tuple) (starlark.Value, error) {
		t, err := decoded(doc, args[0])
		if err != nil || !is(t) {
			return starlark.None, err
		}
		return listOf(t)
	}
}

func holdsWith[A, T any](doc Document[T], is func(A, T) bool) func(args starlark.Tuple) (starlark.Value, error) {
	return func(args starlark.Tuple) (starlark.Value, error) {
		a, err := toGo[A](args[0])
		if err != nil {
			return nil, err
		}
		t, err := decoded(doc, args[1])
		if err != nil || !is(a, t) {
			return starlark.None, err
		}
		return listOf(t)
	}
}

// decoded decodes the value of a place; None is that there is none.
func decoded[T any](doc Document[T], v starlark.Value) (t T, err error) {
	if v == starlark.None {
		return doc.Decode(model.Value{})
	}
	data, err := workflow.ToJSON(v)
	if err != nil {
		return t, err
	}
	x, err := model.ParseValue(data)
	if err != nil {
		return t, err
	}
	return doc.Decode(x)
}

func listOf(x any) (starlark.Value, error) {
	v, err := fromGo(x)
	if err != nil {
		return nil, err
	}
	return starlark.NewList([]starlark.Value{v}), nil
}
