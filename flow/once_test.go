package flow

import (
	"errors"
	"testing"

	"github.com/settlehq/settle"
)

func TestOnce_ReadsEachDocumentOnceAndAgainAfterAnError(t *testing.T) {
	reads := map[string]int{}
	read := once(func(doc string) (settle.Value, error) {
		reads[doc]++
		if doc == "b" && reads[doc] == 1 {
			return settle.Value{}, errors.New("not now")
		}
		return settle.ValueOf(doc)
	})
	for range 3 {
		for _, doc := range []string{"a", "b"} {
			_, _ = read(doc)
		}
	}
	if v, err := read("b"); err != nil || v.String() != `"b"` || reads["a"] != 1 || reads["b"] != 2 {
		t.Errorf("%v, %v after %v reads", v, err, reads)
	}
}
