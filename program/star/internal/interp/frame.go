package interp

import "go.starlark.net/syntax"

// frame is what a call of a function takes: the interpreter makes room for its variables, and
// for what is written out in a list, when the function is called, and counts nothing for it.
type frame struct {
	names    map[string]bool // variables
	literals int             // elements of lists and tuples that are written out
}

func newFrame() *frame { return &frame{names: map[string]bool{}} }

// smallFrame is how many values a call has room for at the cost of its instructions.
const smallFrame = 128

// enter begins a function, and returns the frame of the one that it is in.
func (r *rewriter) enter(params []syntax.Expr) (outer *frame) {
	outer, r.frame = r.frame, newFrame()
	r.frame.literals = len(params)
	return outer
}

// charged is the expression that counts the call of a function with a large frame, and has the
// value of result, if there is one; nil for a function with a small frame.
func (r *rewriter) frameCharge(pos syntax.Position, result syntax.Expr) syntax.Expr {
	size := len(r.frame.names) + r.frame.literals
	if size <= smallFrame {
		return nil
	}
	n := &syntax.Literal{Token: syntax.INT, TokenPos: pos, Value: int64(size)}
	if result == nil {
		return r.call(pos, "%frame", n)
	}
	return r.call(pos, "%frame", n, result)
}
