package model

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	_ "github.com/settlehq/settle/internal/seeded" // see there
)

// agrees compares the quick decoder with the library. It reports whether the quick one has taken the input.
func agrees(t rapid.TB, data []byte) bool {
	t.Helper()
	quick := quickCommit(data)
	if quick == nil {
		return false
	}
	var want Commit
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("%s\nis decoded as %s, and is no commit: %v", data, AppendCommit(nil, quick, nil), err)
	}
	if got, want := AppendCommit(nil, quick, nil), AppendCommit(nil, &want, nil); !bytes.Equal(got, want) {
		t.Fatalf("%s\nis decoded as\n%s\nand by the library as\n%s", data, got, want)
	}
	return true
}

// Followers take the quick way for what Settle writes, except for what waits, and long lists of events that are set aside.
func TestQuickCommit_IsTheLibrarysForAllThatSettleWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genCommit().Draw(t, "commit")
		data := AppendCommit(nil, c, nil)
		if !agrees(t, data) && !c.Cursor.ranged() {
			t.Fatalf("%s is left to the library", data)
		}
		agrees(t, append(data, '}')) // which is no commit
	})
}

// A message with an error in it is no commit for the quick decoder either, or the same one.
func TestQuickCommit_TakesNothingThatTheLibraryReadsOtherwise(t *testing.T) {
	taken := 0
	for _, data := range stored(t, "commit") {
		for _, c := range flipped(data, 3000) {
			if agrees(t, c) {
				taken++
			}
		}
	}
	if taken < 100 {
		t.Errorf("only %d inputs were taken", taken)
	}
	rapid.Check(t, func(t *rapid.T) {
		data := AppendCommit(nil, genCommit().Draw(t, "commit"), nil)
		at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		part := rapid.SampledFrom([]string{"", " ", "0", "-", `"`, "\\", "1.0", "e1", ",", "[]", "{}", "null", "\x00", "\xff", `"n":1,`, "99999999999999999999"}).Draw(t, "part")
		agrees(t, append(append(bytes.Clone(data[:at]), part...), data[at+rapid.IntRange(0, 1).Draw(t, "in place"):]...))
	})
}

// Values in any nesting, and numbers and texts of any form.
func TestQuickCommit_ReadsValuesAsTheLibraryDoes(t *testing.T) {
	deep := func(n int) string {
		return string(bytes.Repeat([]byte("["), n)) + string(bytes.Repeat([]byte("]"), n))
	}
	for _, v := range []string{
		"0", "-0", "01", "-1", "1.5", "1.50", "1e3", "1E+3", "1e-400", "1e400", "9223372036854775807", "9223372036854775808", "-", "1.", ".5", "1e", "+1",
		`""`, `"\u00e9"`, `"\ud800"`, "\"\xff\"", "\"\t\"", `"\x"`, `"é"`, `"\/"`,
		`{}`, `{"a":1,"b":2}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":1,}`, `{"a"}`, `{1:2}`, `[1,]`, `[,1]`, `[1 ,2]`, "tru", "nul", "nulll", "",
		deep(MaxDepth), deep(MaxDepth + 1), deep(MaxDepth - 1), `{"a":` + deep(MaxDepth) + `}`,
	} {
		agrees(t, []byte(`{"v":1,"sp":"s","rt":"w","tx":[{"n":1,"by":"handle x","w":[["d","/a",`+v+`]]}],"cur":{}}`))
	}
}

func FuzzQuickCommit(f *testing.F) {
	for _, data := range stored(f, "commit") {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { agrees(t, data) })
}
