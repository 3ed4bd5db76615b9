package live

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Known identifies the value that a watcher has, so that it receives only newer ones. A store that has lost
// its end assigns revisions again, so a value is identified by its revision and a hash of its content.
//
// In text and in JSON it is "17-8f03c1d2a9b4". A revision alone, as a JSON number or as text, is accepted as
// well, because earlier versions gave those to watchers; it does not distinguish two values with one
// revision.
type Known struct {
	Revision uint64
	Print    string // see printOf; "" if unknown
}

// At returns a Known with a revision and no print.
func At(revision uint64) Known { return Known{Revision: revision} }

// printBits is the length of a print: four bits per digit.
const printBits = 48

// printOf returns the print of a document: hexadecimal digits of a hash of its JSON text, which every worker
// encodes identically. A document that does not exist has the hash of the empty text.
func printOf(data []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(data) // never fails
	return fmt.Sprintf("%0*x", printBits/4, h.Sum64()>>(64-printBits))
}

// Known identifies the value of a value event, or a deletion.
func (e *Event) Known() Known { return Known{Revision: e.Revision, Print: e.Print} }

// Known identifies the value of an answer, for a watch that continues from it.
func (a *Answer) Known() Known { return Known{Revision: a.Revision, Print: printOf(a.Value)} }

// IsZero reports whether no value is known.
func (k Known) IsZero() bool { return k.Revision == 0 }

func (k Known) String() string {
	revision := strconv.FormatUint(k.Revision, 10)
	if k.Print == "" {
		return revision
	}
	return revision + "-" + k.Print
}

// MarshalText implements encoding.TextMarshaler.
func (k Known) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *Known) UnmarshalText(text []byte) error {
	revision, mark, more := strings.Cut(string(text), "-")
	n, err := strconv.ParseUint(revision, 10, 64)
	if err != nil || more && !isPrint(mark) {
		return fmt.Errorf("%q is no revision", text)
	}
	*k = Known{Revision: n, Print: mark}
	return nil
}

func isPrint(s string) bool {
	return len(s) == printBits/4 && strings.Trim(s, "0123456789abcdef") == ""
}

// MarshalJSON encodes a Known without a print as a number, which earlier versions accept.
func (k Known) MarshalJSON() ([]byte, error) {
	if k.Print == "" {
		return []byte(k.String()), nil
	}
	return []byte(`"` + k.String() + `"`), nil
}

// UnmarshalJSON accepts a number or a string.
func (k *Known) UnmarshalJSON(data []byte) error {
	return k.UnmarshalText([]byte(strings.Trim(string(data), `"`)))
}
