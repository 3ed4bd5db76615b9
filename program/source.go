package program

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// Source is the text of a program: one or more files that know of nothing else.
type Source struct {
	// Name names the program.
	Name string
	// Entry is the file that is executed.
	Entry string
	// Files are the texts by name.
	Files map[string]string
}

// hash is a short hash of a program's text: 12 hexadecimal digits.
func hash(s Source) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", s.Name, s.Entry)
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		fmt.Fprintf(h, "%q %q\n", name, s.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
