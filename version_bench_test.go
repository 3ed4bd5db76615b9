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

func BenchmarkTypedReads(b *testing.B) {
	for name, read := range plainReads {
		b.Run(name, func(b *testing.B) {
			inHandler(b, map[string]any{"person": nameV1{"Ann Lee"}, "people": map[string]nameV1{"a": {"Ann Lee"}}}, func(tx *settle.Tx) {
				b.ReportAllocs()
				for b.Loop() {
					read(tx)
				}
			})
		})
	}
}
