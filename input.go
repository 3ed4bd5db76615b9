package settle

import (
	"cmp"
	"context"
	"fmt"

	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Input is a kind of value that comes from outside, by key: the weather at an airport, a rate
// of exchange, what a model answers to a prompt. Computations read it as if it were there; it is
// fetched when one does, and they run again when it has come. Like a Cell it is a name and
// holds nothing.
//
//	var weather = settle.NewInput[Weather]("weather")
//
// What was fetched is kept in the document named as the input until it is refreshed or
// forgotten.
type Input[T any] struct {
	name  string
	value *shape.Shape[T]
}

// NewInput names an input. It panics like NewCell.
func NewInput[T any](name string) Input[T] {
	must(model.CheckName("input", name))
	return Input[T]{name: name, value: shapeOf[T]("input " + name)}
}

// Name is the name of the input, and of the document in which it is kept.
func (i Input[T]) Name() string { return i.name }

// Address is where what was fetched is kept.
func (i Input[T]) Address() Address { return Address{Doc: i.name} }

// Async is a value that may not have come yet.
type Async[T any] struct {
	// Value is the last that has come, the zero value if none has.
	Value T
	// Came says that one has.
	Came bool
	// Pending says that it is being fetched, for the first time or again.
	Pending bool
	// Err is why the last attempt to fetch it has failed; nil if that has not, or there was
	// none yet. If Pending is set it is tried again.
	Err error
}

// inputAttempts is how often an input is fetched until it is an error. A computation shows that
// there is one, and who looks at it can ask for another; without an end, what nobody looks at any
// more would be asked for.
const inputAttempts = 5

// Fetch registers the function that fetches values. A program that reads the input needs it. It
// runs in the process of the worker that serves the space, outside of any transaction, like one of
// Action.Perform, and takes the same options.
func (i Input[T]) Fetch(p *Program, fetch func(ctx context.Context, key string) (T, error), options ...ActionOption) {
	o := applyActionOptions(options)
	o.Attempts = cmp.Or(o.Attempts, inputAttempts)
	if fetch != nil {
		o.Do = func(ctx context.Context, key string, _ Value) (Value, error) {
			t, err := fetch(ctx, key)
			if err != nil {
				return Value{}, err
			}
			v, err := i.value.Encode(t)
			return v, Permanent(err)
		}
	}
	p.perform(i.name, true, o)
}

// Get reads the value of a key, and has it fetched if it is not there, once the transaction is
// in the log. A computation must have been registered with Using, and runs again when the value
// has come.
func (i Input[T]) Get(from Reader, key string) Async[T] {
	t := i.read(from, key)
	a := Async[T]{Pending: t.State == Pending, Err: taskError(t.Err), Came: !t.Out.IsAbsent()}
	var err error
	if a.Value, err = i.value.Decode(t.Out); err != nil {
		from.Fail(fmt.Errorf("read %q of input %s: %w", key, i.name, err))
	}
	return a
}

func (i Input[T]) read(from Reader, key string) space.Task {
	switch from := from.(type) {
	case *Tx:
		return from.WantTask(i.name, key)
	case *View:
		return from.tx().WantTask(i.name, key)
	case *Draft:
		return from.view().tx().WantTask(i.name, key)
	}
	return space.TaskOf(key, from.Get(i.name, space.PathOfTask(key)...))
}

// Refresh has the value of a key fetched, again if it is there. Until it has come, Get returns
// what was there, and that it is pending.
func (i Input[T]) Refresh(tx *Tx, key string) { tx.RefreshTask(i.name, key) }

// Forget removes the value of a key. It is fetched again when somebody reads it.
func (i Input[T]) Forget(tx *Tx, key string) { tx.ForgetTask(i.name, key) }

// Completed is the event that says from outside what the value of a key is, if somebody wants it:
// to the stream named as the input, with the payload {"key": KEY, "out": VALUE}. to is the space.
func (i Input[T]) Completed(to, key string, value T) (Outgoing, error) {
	v, err := i.value.Encode(value)
	if err != nil {
		return Outgoing{}, fmt.Errorf("value %q of input %s: %w", key, i.name, err)
	}
	c := space.Completion{Key: key, Out: v}
	return Outgoing{Space: to, Stream: i.name, ID: tellingID(), Payload: c.Value()}, nil
}

// Failed is the event that says that a value cannot be fetched, and why.
func (i Input[T]) Failed(to, key string, why error) Outgoing {
	c := space.Completion{Key: key, Err: errorText(why)}
	return Outgoing{Space: to, Stream: i.name, ID: tellingID(), Payload: c.Value()}
}

// wants is where it is written that a value is wanted.
func (i Input[T]) wants() Address {
	a := space.ActionSpec{Name: i.name, Input: true}
	return a.Wants()
}

// AnyInput is an Input of any type.
type AnyInput interface {
	Name() string
	wants() Address
}

// Using says which inputs a computation or effect reads. To read one is to want it, which is
// a write beside what the node derives, and what a node may write is fixed when it is
// registered. That nobody fetches one of them is a mistake in the program; see Program.Err.
func Using(inputs ...AnyInput) Option {
	return func(n *nodeOptions) error {
		if len(n.Envelope) > 0 && len(inputs) > 0 {
			return fmt.Errorf("a materializer cannot use input %s: what it writes beside its envelope would be nobody's; have a computation read it", inputs[0].Name())
		}
		for _, i := range inputs {
			n.Writes = append(n.Writes, i.wants())
			n.inputs = append(n.inputs, i.Name())
		}
		return nil
	}
}
