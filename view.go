package settle

import (
	"fmt"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// Reader reads documents: the transaction of a handler (*Tx), the view of a computation or effect
// (*View), or the draft of a node that writes (*Draft).
type Reader interface {
	// Space returns the name of the space.
	Space() string
	// Get reads the value at a path of a document, see [space.Tx.Get]; GetFrom reads another space,
	// GetShallow depends on keys and length only, and Peek creates no dependency.
	Get(doc string, path ...string) Value
	GetFrom(space, doc string, path ...string) Value
	GetShallow(doc string, path ...string) Value
	Peek(doc string, path ...string) Value
	// Link reads a link itself, Follow reads what it points to.
	Link(doc string, path ...string) (model.Link, bool)
	Follow(l model.Link) Value
	// Fail fails the transaction or run; Err returns that error, nil if there is none.
	Err() error
	Fail(err error)
}

// Writer writes documents: the transaction of a handler, which may write anything that no
// computation derives, or the draft of a node, which may write the locations that it was registered
// with.
type Writer interface {
	Reader
	Set(doc string, v any, path ...string)
	Delete(doc string, path ...string)
}

// View is the read-only view that a computation or effect has of its space and of others. The node
// runs again when something that it read changes. A View is valid during the call that it was
// passed to: any use after that panics.
//
// It has no clock, no randomness and nothing to wait for, because the result of a computation must
// follow from what it reads.
type View space.Tx

// tx returns the transaction behind the view.
func (v *View) tx() *space.Tx { return (*space.Tx)(v) }

// Space returns the name of the space.
func (v *View) Space() string { return v.tx().Space() }

// Get reads the value at a path of a document of this space, absent if there is none; the
// node runs again when the value there changes. See [space.Tx.Get].
func (v *View) Get(doc string, path ...string) Value { return v.tx().Get(doc, path...) }

// GetFrom reads a document of another space, in its last confirmed state known here.
func (v *View) GetFrom(space, doc string, path ...string) Value {
	return v.tx().GetFrom(space, doc, path...)
}

// GetShallow reads like Get, but only a change of keys or length reruns the node.
func (v *View) GetShallow(doc string, path ...string) Value {
	return v.tx().GetShallow(doc, path...)
}

// Peek reads without a dependency: the node does not run again because of it.
func (v *View) Peek(doc string, path ...string) Value { return v.tx().Peek(doc, path...) }

// Link reads the link at a path itself, without following it.
func (v *View) Link(doc string, path ...string) (model.Link, bool) { return v.tx().Link(doc, path...) }

// Follow reads what a link points to, in this space or another.
func (v *View) Follow(l model.Link) Value { return v.tx().Follow(l) }

// Log writes a line for the operator, with key-value pairs as with log/slog.
func (v *View) Log(message string, args ...any) { v.tx().Log(message, args...) }

// Node registers a child of the running node, see [space.Tx.Node]. Each is the form for lists.
func (v *View) Node(n space.NodeSpec) { v.tx().Node(n) }

// Err returns the error that keeps the run from taking effect, or nil.
func (v *View) Err() error { return v.tx().Err() }

// Fail fails the run, as returning err would; what the function does after it has no effect.
func (v *View) Fail(err error) { v.tx().Fail(err) }

// Draft is a View of a node that also writes: to the locations that it was registered with (see
// Program.ComputeInto and Program.Materialize), and nowhere else.
type Draft space.Tx

func (d *Draft) view() *View { return (*View)(d) }

// Space returns the name of the space.
func (d *Draft) Space() string { return d.view().Space() }

// Get reads like View.Get.
func (d *Draft) Get(doc string, path ...string) Value { return d.view().Get(doc, path...) }

// GetFrom reads like View.GetFrom.
func (d *Draft) GetFrom(space, doc string, path ...string) Value {
	return d.view().GetFrom(space, doc, path...)
}

// GetShallow reads like View.GetShallow.
func (d *Draft) GetShallow(doc string, path ...string) Value {
	return d.view().GetShallow(doc, path...)
}

// Peek reads like View.Peek.
func (d *Draft) Peek(doc string, path ...string) Value { return d.view().Peek(doc, path...) }

// Link reads like View.Link.
func (d *Draft) Link(doc string, path ...string) (model.Link, bool) {
	return d.view().Link(doc, path...)
}

// Follow reads like View.Follow.
func (d *Draft) Follow(l model.Link) Value { return d.view().Follow(l) }

// Log writes a line for the operator.
func (d *Draft) Log(message string, args ...any) { d.view().Log(message, args...) }

// Node registers a child of the running node.
func (d *Draft) Node(n space.NodeSpec) { d.view().Node(n) }

// Err returns the error that keeps the run from taking effect, or nil.
func (d *Draft) Err() error { return d.view().Err() }

// Fail fails the run.
func (d *Draft) Fail(err error) { d.view().Fail(err) }

// Set writes a value at a path of a document that the node was registered with. Anywhere else it
// fails the run.
func (d *Draft) Set(doc string, v any, path ...string) {
	if d.declares(doc, path) {
		d.view().tx().Set(doc, v, path...)
	}
}

// Delete removes the value at such a path.
func (d *Draft) Delete(doc string, path ...string) {
	if d.declares(doc, path) {
		d.view().tx().Delete(doc, path...)
	}
}

func (d *Draft) declares(doc string, path model.Path) bool {
	ok := d.view().tx().Declares(doc, path...)
	if !ok {
		d.Fail(fmt.Errorf("write %s%s: the node was not registered with this place; name it in ComputeInto or Materialize", doc, path))
	}
	return ok
}
