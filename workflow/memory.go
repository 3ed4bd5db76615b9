package workflow

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

// The memory of a run is bounded by counting, not by measuring: the outcome must be the same on every worker and after each
// restart. What code allocates is counted before it does so (metered.go). From time to time, between two nodes, what the
// variables of the run hold is counted anew, and what was garbage does not count any more.

// Bounds of memory, in bytes.
const (
	// maxMemory bounds what the variables of a run hold, and what one piece of code allocates beside it.
	maxMemory = 256 << 20
	// maxConditionMemory bounds what one evaluation of a condition allocates.
	maxConditionMemory = 16 << 20
)

// What values count as, in bytes, beside what they refer to.
const (
	stepBytes  = 8 // of the interpreter: a value in a list
	slotBytes  = 16
	entryBytes = 100
	dictBytes  = 560
	partBytes  = 32 // a text in a list
)

// memory counts the bytes of a run.
type memory struct {
	// held is what the variables had when they were counted last, and used what was allocated since.
	held, used int
	limit      int
}

// memoryKey is the local variable of a thread that has its *memory. Code on a thread without one is not counted.
const memoryKey = "settle.memory"

// take counts bytes that are going to be allocated. After an error they must not be.
func (m *memory) take(n int) error {
	if m.used = min(m.used+max(n, 0), math.MaxInt/4); m.held+m.used <= m.limit {
		return nil
	}
	return &Failure{Name: LimitError, Message: fmt.Sprintf("the code of the workflow needs more than %d MiB of memory; keep what is large elsewhere, and do what needs much memory in an action", m.limit>>20)}
}

// take counts bytes for the code of a thread.
func take(t *starlark.Thread, n int) error {
	if m, is := t.Local(memoryKey).(*memory); is {
		return m.take(n)
	}
	return nil
}

// room returns how many bytes the code of a thread may still allocate.
func room(t *starlark.Thread) int {
	if m, is := t.Local(memoryKey).(*memory); is {
		return max(m.limit-m.held-m.used, 0)
	}
	return math.MaxInt / 4
}

// shallow returns the bytes of a value without what its elements refer to.
func shallow(v starlark.Value) int {
	switch v := v.(type) {
	case starlark.String:
		return len(v)
	case starlark.Bytes:
		return len(v)
	case starlark.Int:
		if _, small := v.Int64(); small {
			return 0
		}
		return v.BigInt().BitLen() / 8
	case *starlark.Dict:
		return dictBytes + v.Len()*entryBytes
	case *starlark.Set:
		return dictBytes + v.Len()*entryBytes
	case starlark.Sequence:
		return elements(v, slotBytes)
	}
	return 0
}

// elements returns the bytes of as many elements as a value has, 0 if it has none.
func elements(v starlark.Value, each int) int {
	n := starlark.Len(v)
	if n < 0 {
		return 0
	}
	if n > math.MaxInt/4/each {
		return math.MaxInt / 4
	}
	return n * each
}

// count counts what the variables of the run hold, once enough has been allocated. It returns an error if that is too much.
func (r *Run) count() *Failure {
	m := &r.memory
	if m.used < maxMemory/4 {
		return nil
	}
	c := counter{seen: map[starlark.Value]bool{}}
	for _, f := range r.frames { // any order: a sum
		for _, v := range f.vars { // any order: a sum
			c.add(v)
		}
		for i := range f.loops {
			c.add(f.loops[i].over)
		}
		if f.wait != nil {
			for _, v := range f.wait.results {
				c.add(v)
			}
		}
	}
	for _, w := range r.works { // any order: a sum
		c.bytes += len(w.args) + len(w.named)
	}
	if m.held, m.used = c.bytes, 0; m.held <= maxMemory {
		return nil
	}
	return &Failure{Name: LimitError, Message: fmt.Sprintf("the variables of the run have %d MiB; at most %d are possible: keep what is large elsewhere, and references to it in variables", m.held>>20, maxMemory>>20)}
}

// counter adds up values. A list, a dict or a set counts once, a text each time: a run that was loaded shares the same lists
// and other texts.
type counter struct {
	bytes int
	seen  map[starlark.Value]bool
}

func (c *counter) add(v starlark.Value) {
	todo := []starlark.Value{v}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if v == nil {
			continue
		}
		switch v := v.(type) {
		case *starlark.List:
			if c.met(v) {
				continue
			}
			for e := range v.Elements() {
				todo = append(todo, e)
			}
		case starlark.Tuple:
			todo = append(todo, v...)
		case *starlark.Set:
			if c.met(v) {
				continue
			}
			for e := range v.Elements() {
				todo = append(todo, e)
			}
		case *starlark.Dict:
			if c.met(v) {
				continue
			}
			for k, e := range v.Entries() {
				todo = append(todo, k, e)
			}
		case *Failure:
			c.bytes += len(v.Message)
			todo = append(todo, v.Detail)
		case *Result:
			todo = append(todo, v.Value)
			if v.Error != nil {
				todo = append(todo, v.Error)
			}
		case starlark.String, starlark.Bytes, starlark.Int:
		default: // ranges, functions
			continue
		}
		c.bytes += shallow(v)
	}
}

func (c *counter) met(v starlark.Value) bool {
	before := c.seen[v]
	c.seen[v] = true
	return before
}
