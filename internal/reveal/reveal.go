// Package reveal lets other packages of this module see what the root package keeps from its
// users: the program in the form in which a core runs it. The root package sets the functions;
// nobody outside of the module can import this one.
package reveal

import "github.com/settlehq/settle/space"

// Program returns what a *settle.Program is made of, and the first mistake in it.
var Program func(p any) (*space.Program, error)
