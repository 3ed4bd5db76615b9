// Package meter counts the work of a run of a program: steps for executed instructions and visited
// values, bytes for allocations. An operation is charged before it acts, so a run is stopped at the same
// place on every worker; meter reads no clock and does not look at the memory of the process.
package meter

import (
	"fmt"
	"math"

	"go.starlark.net/starlark"
)

// Bounds limit one run.
type Bounds struct {
	// Steps is how many instructions the run may execute, and Memory how many bytes it may allocate.
	Steps  uint64
	Memory int64
	// Output is how many bytes a value that leaves the run may have, and Depth how deep it may be nested.
	Output, Depth int
}

// stepBytes is how many bytes a step counts as: no instruction allocates more on average.
const stepBytes = 32

// What values cost, in bytes, beside what they hold.
const (
	DictBytes  = 576
	EntryBytes = 100
	SlotBytes  = 16 // of a list
	// textStep is how many bytes of a string count as a step.
	TextStep = 64
)

// Meter counts the steps and bytes of one run, on the thread that executes it.
type Meter struct {
	Thread starlark.Thread
	Bounds Bounds
	Mem    int64 // bytes allocated, beside those that the steps stand for
	keys   hashCounts
	// cancelled is set if the meter has cancelled the thread.
	cancelled bool
}

// Start begins the count of a run.
func (m *Meter) Start() {
	m.Mem, m.keys = 0, hashCounts{}
	m.Thread.Steps = 0
	if m.cancelled {
		m.cancelled = false
		m.Thread.Uncancel()
	}
	m.allow()
}

// Used returns the steps and the bytes of the run, each step with the bytes that it stands for.
func (m *Meter) Used() (steps, bytes uint64) {
	return m.Thread.Steps, uint64(max(m.Mem, 0)) + m.Thread.Steps*stepBytes
}

// allow sets how many instructions the interpreter may still execute: those of Bounds.Steps, or
// fewer if they would use up Bounds.Memory.
func (m *Meter) allow() {
	room := uint64(max(m.Bounds.Memory-m.Mem, 0)) / stepBytes
	m.Thread.SetMaxExecutionSteps(max(min(m.Bounds.Steps, room), 1))
}

// Exhaust cancels the thread, and returns the error that names the limit which has been reached.
func (m *Meter) Exhaust() error {
	err := fmt.Errorf("the run has used up its %d steps", m.Bounds.Steps)
	if m.Mem+int64(min(m.Thread.Steps, m.Bounds.Steps))*stepBytes >= m.Bounds.Memory {
		err = fmt.Errorf("the run has used up its memory of %s", BytesText(m.Bounds.Memory))
	}
	m.cancelled = true
	m.Thread.Cancel(err.Error()) // the run ends even if the operation's caller drops the error
	return err
}

// Charge counts an operation before it acts: steps for what it goes through, bytes for what it
// allocates. After an error the operation must not act.
func (m *Meter) Charge(steps int, bytes int) error {
	if bytes > 0 {
		m.Mem += int64(min(bytes, math.MaxInt32*1024))
		m.allow()
	}
	m.Thread.Steps += uint64(steps)
	if m.Thread.Steps >= m.Bounds.Steps || m.Mem+int64(m.Thread.Steps)*stepBytes > m.Bounds.Memory {
		return m.Exhaust()
	}
	return nil
}

// maxKeyValues is how many values a tuple that is a key may have, those in inner tuples included.
const maxKeyValues = 1000

// ChargeKey charges for hashing a key, and refuses a tuple that is too large for a key.
func (m *Meter) ChargeKey(k starlark.Value) error {
	switch k := k.(type) {
	case starlark.String:
		if len(k) > TextStep {
			return m.Charge(1+len(k)/TextStep, 0)
		}
	case starlark.Tuple:
		room := maxKeyValues
		if err := m.chargeTuple(k, &room); err != nil {
			return err
		}
		return m.chargeCollisions(k)
	case starlark.Int, starlark.Float:
		return m.chargeCollisions(k)
	}
	return nil
}

func (m *Meter) chargeTuple(t starlark.Tuple, room *int) error {
	if *room -= len(t) + 1; *room < 0 {
		return fmt.Errorf("a tuple of more than %d values cannot be a key", maxKeyValues)
	}
	if err := m.Charge(1+len(t), 0); err != nil {
		return err
	}
	for _, e := range t {
		if inner, ok := e.(starlark.Tuple); ok {
			if err := m.chargeTuple(inner, room); err != nil {
				return err
			}
		} else if err := m.ChargeKey(e); err != nil {
			return err
		}
	}
	return nil
}

// chargeCollisions counts the comparing of a key with the keys of the same hash.
func (m *Meter) chargeCollisions(k starlark.Value) error {
	same, first := m.keys.add(k)
	if first {
		if err := m.Charge(1, EntryBytes); err != nil {
			return err
		}
	}
	if same >= 16 {
		return m.Charge(same/8, 0)
	}
	return nil
}

// CheckDepth refuses values that are nested deeper than Bounds.Depth.
func (m *Meter) CheckDepth(depth int) error {
	if depth <= m.Bounds.Depth {
		return nil
	}
	return fmt.Errorf("the values are nested more than %d deep", m.Bounds.Depth)
}
