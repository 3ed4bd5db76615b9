package model

import "fmt"

// MaxDepth is the maximum nesting of arrays and objects.
//
// Every document that can be written must be readable: one that ParseValue refused would make its
// space unloadable. So the limit that ParseValue needs against hostile input also holds for Set, Of
// and marshalling.
const MaxDepth = 1000

// A container's num holds its length in the lower 48 bits and its height in the upper 16, so that checking
// MaxDepth never walks a tree. The height of a scalar is 0, that of a container one more than its highest
// child's. Since it is a function of the content, it also distinguishes many unequal containers.
const (
	lenBits   = 48
	lenMask   = 1<<lenBits - 1
	maxHeight = 1<<16 - 1 // far above MaxDepth; greater heights are stored as this
)

func pack(n, height int) uint64 {
	return uint64(min(height, maxHeight))<<lenBits | uint64(n)
}

func (v Value) height() int {
	switch v.any.(type) {
	case arrayptr, objectptr:
		return int(v.num >> lenBits)
	}
	return 0
}

// heightOver returns the height of a container with these children.
func heightOver(children []Value) int {
	h := 0
	for _, c := range children {
		h = max(h, c.height())
	}
	return h + 1
}

// reheight returns heightOver(children) after one child of a container of the given height has changed from
// was to is. It rarely visits the other children.
func reheight(height int, was, is Value, children []Value) int {
	switch {
	case is.height()+1 >= height:
		return is.height() + 1
	case was.height()+1 < height:
		return height
	}
	return heightOver(children)
}

// checkDepth returns an error if v is too deep to be put at depth above.
func checkDepth(v Value, above int) error {
	if above+v.height() > MaxDepth {
		return fmt.Errorf("nested %d deep, %d is the limit", above+v.height(), MaxDepth)
	}
	return nil
}
