package settletest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/space"
)

// Expect reads a document, or the value at a path in it, and fails the test with the differences if it is not
// want. want is anything that encodes to JSON, or a settle.Value; nil means null, and settle.Value{} means
// that there is no value.
func (s *Space) Expect(doc string, want any, path ...string) {
	s.w.t.Helper()
	wanted, err := settle.ValueOf(want)
	if err != nil {
		s.w.t.Fatalf("settletest: the value wanted of %s: %v", doc, err)
	}
	if got := s.Get(doc, path...); !model.Equal(got, wanted) {
		differs(s, space.Address{Doc: doc, Path: path}, diff(got, wanted), "")
	}
}

func equal(a, b settle.Value) bool { return model.Equal(a, b) }

func jsonOf(x any) settle.Value {
	v, err := settle.ValueOf(x)
	if err != nil {
		return model.String(fmt.Sprintf("%#v", x))
	}
	return v
}

// differs fails the test with how a value differs from the wanted one, and possible causes.
func differs(s Subject, at space.Address, how, note string) {
	s.tb().Helper()
	if at.Space == "" {
		at.Space = s.Space()
	}
	text := fmt.Sprintf("settletest: %s is not what is wanted", at)
	for _, more := range []string{how, note, s.doubt(at.Doc)} {
		if more != "" {
			text += "\n" + indent(more)
		}
	}
	s.tb().Errorf("%s", text)
}

// absent describes a place without a value, and the keys beside it.
func absent(s Subject, at space.Address) string {
	s.tb().Helper()
	if len(at.Path) == 0 {
		return "there is no such document"
	}
	last := len(at.Path) - 1
	beside := at
	beside.Path = at.Path[:last]
	keys := read(s, beside).Keys()
	if len(keys) == 0 {
		return "nothing is there or beside it"
	}
	return fmt.Sprintf("nothing is at %s; there are %s", strconv.Quote(at.Path[last]), list(keys))
}

// emptyMap reports whether x is a map without entries: absent rows are read as an empty map.
func emptyMap(x any) bool {
	v := reflect.ValueOf(x)
	return v.Kind() == reflect.Map && v.Len() == 0
}

// without returns the keys of some that are not in others, sorted.
func without(some, others []string) []string {
	out := slices.DeleteFunc(slices.Clone(some), func(key string) bool { return slices.Contains(others, key) })
	slices.Sort(out)
	return slices.Compact(out)
}

// list formats keys, at most a readable number of them.
func list(keys []string) string {
	text := make([]string, 0, shown)
	for i, key := range keys {
		if i == shown {
			return strings.Join(text, ", ") + fmt.Sprintf(" and %d more", len(keys)-shown)
		}
		text = append(text, strconv.Quote(key))
	}
	return strings.Join(text, ", ")
}

// doubt explains why a document may differ from what a test expects: it is not up to date, or work
// is left to do.
func (s *Space) doubt(doc string) string {
	var lines []string
	if doc != "" {
		if stale, err := s.s.Stale(doc); err == nil && stale != "" {
			lines = append(lines, stale)
		}
	}
	if p := s.Pending(); p != "" {
		lines = append(lines, "left to do: "+p)
	}
	for _, a := range s.s.Program().Actions() {
		if tasks := s.pending(a); len(tasks) > 0 {
			lines = append(lines, fmt.Sprintf("tasks of %s are pending, %s; nothing performs them but Perform, Complete and GiveUp", a.Name, keysOf(tasks)))
		}
	}
	lines = append(lines, runs.FailedIn(s.Space(), s.s.Value, shown)...)
	for _, p := range s.w.problems {
		if p.Space == s.Space() {
			lines = append(lines, "went wrong before: "+p.String())
			break
		}
	}
	return strings.Join(lines, "\n")
}

// shown is the largest number of places that a difference lists.
const shown = 20

// diff lists the places at which two values differ.
func diff(got, want settle.Value) string {
	if got.IsAbsent() || want.IsAbsent() {
		return "got   " + text(got) + "\nwant  " + text(want)
	}
	var lines []string
	places := model.Diff("", want, got)
	for i, w := range places {
		if i == shown {
			lines = append(lines, fmt.Sprintf("... and %d more", len(places)-shown))
			break
		}
		at := w.Path.String()
		if at == "" {
			return "got   " + text(got) + "\nwant  " + text(want)
		}
		lines = append(lines, fmt.Sprintf("%s\n    got   %s\n    want  %s", at, text(got.At(w.Path)), text(want.At(w.Path))))
	}
	if len(lines) == 0 {
		return "got   " + text(got) + "\nwant  " + text(want) + "\n(their JSON is equal, but they differ in Go: a nil and an empty slice, or a field that is not encoded)"
	}
	return strings.Join(lines, "\n")
}

func text(v settle.Value) string {
	if v.IsAbsent() {
		return "nothing"
	}
	return v.String()
}

func (s *Space) watch(doc string) *simkit.Watch {
	s.w.t.Helper()
	x, err := s.s.Watch(doc)
	s.w.check(err)
	return x
}

// WatchedDoc is the view of a client that watches a document by its name.
type WatchedDoc struct {
	s *Space
	w *simkit.Watch
}

// Watch watches a document from now on. The function Watch is the form for cells and derived
// documents.
func (s *Space) Watch(doc string) *WatchedDoc {
	s.w.t.Helper()
	return &WatchedDoc{s, s.watch(doc)}
}

// Values returns the values seen so far: the initial one, and each change.
func (w *WatchedDoc) Values() []settle.Value { return w.w.Values() }

// Stop ends the watch.
func (w *WatchedDoc) Stop() {
	w.s.w.t.Helper()
	w.s.w.check(w.w.Stop())
}
