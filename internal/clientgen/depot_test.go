package clientgen_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/collection"
	"github.com/settlehq/settle/internal/clientgen"
	"github.com/settlehq/settle/internal/shape"
)

// crate has fields of all kinds.
type crate struct {
	Weight float64         `json:"weight"`
	Count  int             `json:"count,omitzero"`
	Notes  []string        `json:"notes"`
	Sizes  map[string]int  `json:"sizes,omitempty"`
	At     time.Time       `json:"at"`
	Within *crate          `json:"within"`
	Raw    []byte          `json:"raw,omitempty"`
	More   settle.Value    `json:"more"`
	Label  struct{ A int } `json:"the label"`
}

// What is generated for a program in Go, whose documents and results have types, is a module that the tests of the client in TypeScript check.
func TestGenerate_AProgramInGo(t *testing.T) {
	crates, heavy := settle.NewRows[crate]("crates"), settle.NewDerived[[]crate]("heavy")
	loads, total := collection.New[crate]("load-"), settle.NewDerived[int]("load-total")
	p := settle.NewProgram("depot").Documents(crates, loads)
	total.Compute(p, func(*settle.View) (int, error) { return 0, nil })
	settle.NewRequest[crate, string]("pack").Handle(p, func(*settle.Tx, crate) (string, error) { return "", nil })
	settle.NewTrigger("empty").Handle(p, func(*settle.Tx) error { return nil })
	heavy.Compute(p, func(*settle.View) ([]crate, error) { return nil, nil })
	text, err := p.Interface()
	if err != nil {
		t.Fatal(err)
	}
	var s shape.Program
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	same(t, "../../clients/typescript/test/depot.ts", clientgen.TypeScript(&s, "../dist/index.js"))
}
