package model

import "sync"

// pool reuses decoders with their tables, and buffers for text, instead of leaving them to the garbage
// collector.
//
// It is the only use of package sync in the core, and therefore in a file of its own. Values are parsed on
// any goroutine, so no single owner could keep these objects. The pool never blocks, and no result depends on
// which object it returns.
type pool[T any] struct{ free sync.Pool }

// get returns a T that was put back, or a new one.
func (p *pool[T]) get() *T {
	if x, ok := p.free.Get().(*T); ok {
		return x
	}
	return new(T)
}

func (p *pool[T]) put(x *T) { p.free.Put(x) }
