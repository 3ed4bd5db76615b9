package star

import (
	"context"

	"github.com/settlehq/settle/program/star/internal/fingerprint"
)

// Compile compiles a program, executes its files once, under the limits, and collects what they
// register. The error is an *Error, except for a Source without a name or entry file, or one that is
// too large.
func Compile(src Source, o Options) (_ *Program, err error) {
	defer contain(src.Entry, &err)
	if err := src.check(); err != nil {
		return nil, err
	}
	p := &Program{version: Version(src), code: &code{
		name: src.Name, entry: src.Entry, bounds: o.Limits.bounds(), files: map[string]*file{}, bodies: fingerprint.Bodies{}, predeclared: spaceBuiltins.has, usage: o.Usage,
	}}
	if o.Context != nil {
		context.AfterFunc(o.Context, func() { p.Stop(context.Cause(o.Context).Error()) })
	}
	if isTest(src.Entry) {
		return nil, &Error{File: src.Entry, Message: "a file of tests is no program"}
	}
	if err := p.code.read(src, src.names()...); err != nil {
		return nil, err
	}
	p.doc = p.code.files[src.Entry].doc
	inst, _, err := instantiate(p.code, spaceBuiltins, nil)
	if err != nil {
		return nil, err
	}
	if err := p.register(inst); err != nil {
		return nil, err
	}
	p.addDocuments(inst)
	p.idle = append(p.idle, inst)
	return p, nil
}
