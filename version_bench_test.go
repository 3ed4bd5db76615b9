//go:build !invariants && !race

package settle_test

import (
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// inHandler calls f in a transaction of a space that has the stored documents.
func inHandler(t testing.TB, stored map[string]any, f func(tx *settle.Tx)) {
	t.Helper()
	p, called := settle.NewProgram("p"), false
	settle.NewTrigger("do").Handle(p, func(tx *settle.Tx) error {
		if !called {
			called = true
			f(tx)
		}
		return nil
	})
	s := settletest.New(t, p).Space("s")
	for doc, v := range stored { // any order: each is on its own
		s.Set(doc, v)
	}
	s.Send("do", nil)
}

// plainReads are typed reads of documents without versions.
var plainReads = map[string]func(tx *settle.Tx){
	"field":  func(tx *settle.Tx) { plainField.Get(tx) },
	"row":    func(tx *settle.Tx) { plainRows.Get(tx, "a") },
	"exists": func(tx *settle.Tx) { plainCell.Exists(tx) },
	"peek":   func(tx *settle.Tx) { plainCell.Peek(tx) },
	"cell":   func(tx *settle.Tx) { plainCell.Get(tx) },
}

var (
	plainCell  = settle.NewCell[nameV1]("person")
	plainField = settle.Field[string](plainCell, "name")
	plainRows  = settle.NewRows[nameV1]("people")
)

// versionedReads are typed reads of documents of version 3.
var versionedReads = map[string]func(tx *settle.Tx){
	"cell":   func(tx *settle.Tx) { versionedCells.person.Get(tx) },
	"field":  func(tx *settle.Tx) { versionedField.Get(tx) },
	"row":    func(tx *settle.Tx) { versionedCells.people.Get(tx, "a") },
	"exists": func(tx *settle.Tx) { versionedCells.person.Exists(tx) },
}

var (
	versionedCells = versions()
	versionedField = settle.Field[int](versionedCells.person, "seen")
)

// sameReads are reads of the same types without versions.
var sameReads = map[string]func(tx *settle.Tx){
	"cell": func(tx *settle.Tx) { sameCell.Get(tx) },
	"row":  func(tx *settle.Tx) { sameRows.Get(tx, "a") },
}

var (
	sameCell = settle.NewCell[nameV3]("person")
	sameRows = settle.NewRows[nameV3]("people")
)

func benchmarkReads(b *testing.B, stored any, reads map[string]func(tx *settle.Tx)) {
	for name, read := range reads {
		b.Run(name, func(b *testing.B) {
			inHandler(b, map[string]any{"person": stored, "people": map[string]any{"a": stored}}, func(tx *settle.Tx) {
				b.ReportAllocs()
				for b.Loop() {
					read(tx)
				}
			})
		})
	}
}

func BenchmarkTypedReads(b *testing.B)           { benchmarkReads(b, stored1, plainReads) }
func BenchmarkTypedReadsVersioned(b *testing.B)  { benchmarkReads(b, stored3, versionedReads) }
func BenchmarkTypedReadsOlder(b *testing.B)      { benchmarkReads(b, stored1, versionedReads) }
func BenchmarkTypedReadsOfThatForm(b *testing.B) { benchmarkReads(b, ann, sameReads) }

// A read of a document without a version costs no allocation for the versions of others: the most are those that decoding makes. One of a
// document in the present form costs what removing the key of the version does, and one of a part of it the path of that key.
func TestVersion_ReadsAllocateNoMoreThanTheyMust(t *testing.T) {
	for _, c := range []struct {
		what   string
		stored any
		reads  map[string]func(tx *settle.Tx)
		most   map[string]float64
	}{
		{"without a version", stored1, plainReads, map[string]float64{"cell": 1, "field": 0, "row": 2, "exists": 0, "peek": 1}},
		{"in the present form", stored3, versionedReads, map[string]float64{"cell": 6, "field": 1, "row": 7, "exists": 0}},
	} {
		inHandler(t, map[string]any{"person": c.stored, "people": map[string]any{"a": c.stored}}, func(tx *settle.Tx) {
			for name, read := range c.reads { // any order: each is on its own
				if got := testing.AllocsPerRun(100, func() { read(tx) }); got != c.most[name] {
					t.Errorf("a read of a %s %s makes %v allocations, want %v", name, c.what, got, c.most[name])
				}
			}
		})
	}
}
