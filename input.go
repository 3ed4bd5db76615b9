package settle

import (
	"cmp"
	"context"
	"fmt"

	"github.com/settlehq/settle/internal/codec"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Input is a kind of value from outside, by key: the weather at an airport, an exchange rate, a
// model's answer to a prompt. Computations read it like a document; reading it makes a worker fetch
// it, and the computations run again when it has arrived. Like a Cell it is a name and holds no
// data.
//
//	var weather = settle.NewInput[Weather]("weather")
//
// Fetched values are kept in the document with the name of the input until they are refreshed or
// forgotten.
type Input[T any] struct {
	name  string
	value *codec.Codec[T]
}

// NewInput returns the input of that name. It panics like NewCell.
func NewInput[T any](name string) Input[T] {
	must(model.CheckName("input", name))
	return Input[T]{name: name, value: codecOf[T]("input " + name)}
}

// Name returns the name of the input, which is also that of its document and its stream.
func (i Input[T]) Name() string { return i.name }

// Address returns the document in which the fetched values are kept.
func (i Input[T]) Address() space.Address { return space.Address{Doc: i.name} }

// Async is a value that may not have arrived yet.
type Async[T any] struct {
	// Value is the last value that arrived, the zero value if none has.
	Value T
	// Arrived reports whether one has arrived.
	Arrived bool
	// Pending reports whether it is being fetched, for the first time or again.
	Pending bool
	// Err is why the last attempt to fetch it failed; nil if that succeeded or there was none yet.
	// While Pending is set, it is retried.
	Err error
}

// inputAttempts is the default number of attempts to fetch an input. A computation shows the error,
// and an observer can refresh the input; without a limit, values that nothing observes any more
// would be fetched forever.
const inputAttempts = 5

// Fetch registers the function that fetches values. A program that reads the input needs it. Like
// the function of Action.Perform it runs in the process of the worker that serves the space,
// outside any transaction, and it takes the same options.
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

// Get reads the value of a key and, if it was never fetched, requests it: it is fetched once the
// transaction is in the log. A computation must be registered with Using, and runs again when the
// value arrives.
func (i Input[T]) Get(from Reader, key string) Async[T] {
	t := i.read(from, key)
	a := Async[T]{Pending: t.State == space.TaskPending, Err: taskError(t.Err), Arrived: !t.Out.IsAbsent()}
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

// Refresh requests that the value of a key is fetched again. Until it arrives, Get returns the
// previous value, with Pending set.
func (i Input[T]) Refresh(tx *Tx, key string) { tx.RefreshTask(i.name, key) }

// Forget removes the value of a key. The next read requests it again.
func (i Input[T]) Forget(tx *Tx, key string) { tx.ForgetTask(i.name, key) }

// Completed returns the event by which another system supplies the value of a key that was
// requested: to the stream with the name of the input, with the payload {"key": KEY, "out": VALUE}.
func (i Input[T]) Completed(to Target, key string, value T) (Outgoing, error) {
	v, err := i.value.Encode(value)
	if err != nil {
		return Outgoing{}, fmt.Errorf("value %q of input %s: %w", key, i.name, err)
	}
	c := space.Completion{Key: key, Out: v}
	return Outgoing{Space: to.space, Stream: i.name, ID: completionID(), Payload: c.Value()}, nil
}

// Failed returns the event which reports that a value cannot be fetched, and why.
func (i Input[T]) Failed(to Target, key string, why error) Outgoing {
	c := space.Completion{Key: key, Err: errorText(why)}
	return Outgoing{Space: to.space, Stream: i.name, ID: completionID(), Payload: c.Value()}
}

// wants returns the location where requests for values are written.
func (i Input[T]) wants() space.Address {
	a := space.ActionSpec{Name: i.name, Input: true}
	return a.Wants()
}

// anyInput is an Input of any type.
type anyInput interface {
	Name() string
	wants() space.Address
}

// Using declares which inputs a computation or effect reads. Reading an input writes the request
// for it, and what a node may write is fixed when it is registered. An input in use without a Fetch
// function is a mistake in the program; see Program.Err.
func Using(inputs ...anyInput) Option {
	return func(n *nodeOptions) error {
		if len(n.Envelope) > 0 && len(inputs) > 0 {
			return fmt.Errorf("a materializer cannot use input %s: it may write only within its envelope; let a computation read the input", inputs[0].Name())
		}
		for _, i := range inputs {
			n.Writes = append(n.Writes, i.wants())
			n.inputs = append(n.inputs, i.Name())
		}
		return nil
	}
}
