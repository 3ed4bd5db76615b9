package live

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
)

// Known is the value that a watcher has: it is given what is newer. A store that has lost its end gives revisions out again, so the
// value is named by its revision and by a print of its content.
//
// As text, and in JSON, it is "17-8f03c1d2a9b4". A revision alone is understood as well, as a JSON number or as text: what earlier versions
// have given to watchers. It does not tell two values of one revision apart.
type Known struct {
	Revision uint64
	Print    string // see printOf; "" if it is not known
}

// At is what a watcher has that knows a revision and no more.
func At(revision uint64) Known { return Known{Revision: revision} }

// printBits is how much of a hash a print has: four bits a digit.
const printBits = 48

// printOf is the print of a document: hexadecimal digits of a hash of its JSON text, which is the same for the same
// value, whichever worker writes it. That of no document is the hash of no text.
func printOf(data []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(data) // which cannot fail
	return fmt.Sprintf("%0*x", printBits/4, h.Sum64()>>(64-printBits))
}

// Known is the value that an event has brought.
func (e *Event) Known() Known { return Known{Revision: e.Revision, Print: e.Print} }

// Known is the answer as one may watch from.
func (a *Answer) Known() Known { return Known{Revision: a.Revision, Print: printOf(a.Value)} }

// IsZero reports whether nothing is known.
func (k Known) IsZero() bool { return k.Revision == 0 }

func (k Known) String() string {
	revision := strconv.FormatUint(k.Revision, 10)
	if k.Print == "" {
		return revision
	}
	return revision + "-" + k.Print
}

// MarshalText writes it.
func (k Known) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads it.
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

// MarshalJSON writes a number where there is nothing else: earlier versions understand that.
func (k Known) MarshalJSON() ([]byte, error) {
	if k.Print == "" {
		return []byte(k.String()), nil
	}
	return []byte(`"` + k.String() + `"`), nil
}

// UnmarshalJSON reads a number or a string.
func (k *Known) UnmarshalJSON(data []byte) error {
	return k.UnmarshalText([]byte(strings.Trim(string(data), `"`)))
}
