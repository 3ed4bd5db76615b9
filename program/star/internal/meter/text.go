package meter

import (
	"fmt"
	"strings"
)

// BytesText writes a number of bytes in the largest unit that it is a multiple of.
func BytesText(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// maxMessage bounds the text of an error in bytes: it becomes part of a receipt.
const maxMessage = 2000

// Clip cuts a text for an error message.
func Clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + "..."
}

// Article returns a noun with its indefinite article.
func Article(noun string) string {
	if noun != "" && strings.ContainsAny(noun[:1], "aeio") {
		return "an " + noun
	}
	return "a " + noun
}
