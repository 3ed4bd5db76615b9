package star

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// testSpace is the space of a test, unless the test names another one.
const testSpace = "test"

// testRun is the state of a test that runs.
type testRun struct {
	program *Program // that is tested
	// others are the programs of some spaces, by the pattern of their names; compile makes one from a file.
	others  map[string]*Program
	compile func(file string) (*Program, error)
	start   time.Time
	engine  Engine
	world   World
	log     []string
	mocks   mocks
	queued  bool // an event was sent without waiting
}

// testsAmong returns the tests among the globals of a file, in the order of the file.
func testsAmong(g starlark.StringDict) (tests []*starlark.Function) {
	for _, v := range g {
		if fn, ok := v.(*starlark.Function); ok && strings.HasPrefix(fn.Name(), "test_") {
			tests = append(tests, fn)
		}
	}
	slices.SortFunc(tests, func(a, b *starlark.Function) int { return int(a.Position().Line) - int(b.Position().Line) })
	return tests
}

// addLog keeps a line that the program logs. Warnings are not of the program.
func (x *testRun) addLog(i space.ConsoleInfo) {
	if i.Warning {
		return
	}
	x.log = append(x.log, strings.TrimSpace(i.Space+": "+i.Message+" "+pairsText(i.Args)))
}

func pairsText(args []any) string {
	var b strings.Builder
	for i := 0; i+1 < len(args); i += 2 {
		fmt.Fprintf(&b, "%v=%v ", args[i], args[i+1])
	}
	return strings.TrimSpace(b.String())
}

// testDocs are the documents of a test. A read is demand, so it returns the value up to date.
type testDocs struct {
	test *testRun
	name string
	err  error
}

func (d *testDocs) Space() string { return d.name }
func (d *testDocs) Err() error    { return d.err }

// Declares returns true: a test may write every document.
func (d *testDocs) Declares(string, ...string) bool { return true }

func (d *testDocs) read(in string, f func(tx *space.Tx) model.Value) (v model.Value) {
	s, err := d.test.world.Space(in)
	if err == nil {
		_, err = s.Read(func(tx *space.Tx) error {
			v = f(tx)
			return nil
		})
	}
	d.note(err)
	return v
}

func (d *testDocs) note(err error) {
	if d.err == nil && err != nil {
		d.err = err
	}
}

func (d *testDocs) write(f func(tx *space.Tx)) {
	s, err := d.test.world.Space(d.name)
	if err == nil {
		err = s.Write(func(tx *space.Tx) error {
			f(tx)
			return tx.Err()
		})
	}
	d.note(err)
}

// Get reads a document of the test's space.
func (d *testDocs) Get(doc string, path ...string) model.Value {
	return d.read(d.name, func(tx *space.Tx) model.Value { return tx.Get(doc, path...) })
}

// GetShallow is Get: a test has no dependencies.
func (d *testDocs) GetShallow(doc string, path ...string) model.Value { return d.Get(doc, path...) }

// Writes returns what a test may write.
func (d *testDocs) Writes() string {
	return `a test writes documents of its space "test"; send the other space an event`
}

// Fail ends the test.
func (d *testDocs) Fail(err error) {
	if newer := (*model.NewerError)(nil); errors.As(err, &newer) {
		err = fmt.Errorf("the test uses version %d of %s, and version %d is stored: %s", newer.Known, newer.Place, newer.Version, presentForm(newer.Version))
	}
	d.note(err)
}

// presentForm returns how a test reads the present form of a document or a row that is stored in a version.
func presentForm(version int) string {
	return fmt.Sprintf("load the cell from the program, or name the version: cell(NAME, version = %d), with rows = True if its rows have the version", version)
}

// StoredVersion returns the version of what is stored.
func (d *testDocs) StoredVersion(in, doc string, path ...string) int {
	return model.VersionOf(d.GetFrom(cmp.Or(in, d.name), doc, path...))
}

// Peek is Get.
func (d *testDocs) Peek(doc string, path ...string) model.Value { return d.Get(doc, path...) }

// Link reads a link itself.
func (d *testDocs) Link(doc string, path ...string) (l model.Link, is bool) {
	d.read(d.name, func(tx *space.Tx) model.Value {
		l, is = tx.Link(doc, path...)
		return model.Value{}
	})
	return l, is
}

// GetFrom reads a document of another space in that space.
func (d *testDocs) GetFrom(in, doc string, path ...string) model.Value {
	return d.read(in, func(tx *space.Tx) model.Value { return tx.Get(doc, path...) })
}

// Set writes a document.
func (d *testDocs) Set(doc string, v any, path ...string) {
	d.write(func(tx *space.Tx) { tx.Set(doc, v, path...) })
}

// Delete deletes a document or a part of one.
func (d *testDocs) Delete(doc string, path ...string) {
	d.write(func(tx *space.Tx) { tx.Delete(doc, path...) })
}
