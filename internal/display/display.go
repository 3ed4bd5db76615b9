// Package display formats numbers, sizes, durations and texts for people, in the same way in all
// commands and errors.
package display

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Count formats a number with its noun: "1 worker", "2 workers".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Grouped formats a number with its digits in groups: "20,000".
func Grouped[N int | int64 | uint64](n N) string {
	digits, sign := strconv.FormatUint(uint64(n), 10), ""
	if n < 0 {
		digits, sign = strconv.FormatUint(uint64(-n), 10), "-"
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Bytes formats a size: "12 bytes", "1.5 MiB".
func Bytes(n int64) string {
	const k = 1024
	switch {
	case n >= k*k*k:
		return fmt.Sprintf("%.1f GiB", float64(n)/(k*k*k))
	case n >= k*k:
		return fmt.Sprintf("%.1f MiB", float64(n)/(k*k))
	case n >= k:
		return fmt.Sprintf("%.1f KiB", float64(n)/k)
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// Duration formats a duration as it is written after a flag: "1m" and "2h30m", not "1m0s".
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// maxLine is the largest number of bytes of a line that FirstLine returns.
const maxLine = 200

// FirstLine returns the first line of a text, cut off after 200 bytes.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") + "..."
	}
	return line
}
