package space_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// model.DerivedDocument decodes two members of the saved observation of a node.
func TestObservation_NamesTheDocumentThatItsNodeDerives(t *testing.T) {
	for _, c := range []struct {
		what string
		o    space.Observation
		doc  string
		ok   bool
	}{
		{"a plain computation", space.Observation{Node: "total", Version: "v2", Basis: 7, Reads: []space.Observed{{Doc: "cart", Print: 9}}}, "total", true},
		{"a node that writes elsewhere", space.Observation{Node: "writer", Shape: 12, Basis: 7}, "", false},
	} {
		data, err := json.Marshal(c.o)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		if doc, ok := model.DerivedDocument(&model.StateDoc{Data: data}); doc != c.doc || ok != c.ok {
			t.Errorf("%s: %q, %v, want %q, %v", c.what, doc, ok, c.doc, c.ok)
		}
	}
	if _, ok := model.DerivedDocument(&model.StateDoc{Data: []byte("{")}); ok {
		t.Error("an item that is not JSON names a document")
	}
}
