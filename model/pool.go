package model

import "sync"

// pool keeps what is worth using again instead of leaving it to the garbage
// collector: the decoder with its tables, and buffers for text.
//
// It is the one use of package sync in the core, and in a file of its own for
// that reason. Values are parsed by whoever has the bytes, on any goroutine, so
// there is no single owner who could keep these things. Nobody waits for anybody
// here, and no result depends on what the pool hands out.
type pool[T any] struct{ free sync.Pool }

// get is a T that was put here, or the zero T.
func (p *pool[T]) get() *T {
	if x, ok := p.free.Get().(*T); ok {
		return x
	}
	return new(T)
}

func (p *pool[T]) put(x *T) { p.free.Put(x) }
