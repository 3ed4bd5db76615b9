package display

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTexts(t *testing.T) {
	for _, c := range [][2]string{
		{Count(0, "worker"), "0 workers"},
		{Count(1, "worker"), "1 worker"},
		{Count(2, "worker"), "2 workers"},
		{Grouped(0), "0"},
		{Grouped(999), "999"},
		{Grouped(20_000), "20,000"},
		{Grouped(-1_234_567), "-1,234,567"},
		{Grouped(int64(math.MinInt64)), "-9,223,372,036,854,775,808"},
		{Grouped(uint64(math.MaxUint64)), "18,446,744,073,709,551,615"},
		{Bytes(0), "0 bytes"},
		{Bytes(1023), "1023 bytes"},
		{Bytes(1536), "1.5 KiB"},
		{Bytes(3 << 20), "3.0 MiB"},
		{Bytes(5 << 29), "2.5 GiB"},
		{Duration(90 * time.Second), "1m30s"},
		{Duration(time.Minute), "1m"},
		{Duration(150 * time.Minute), "2h30m"},
		{Duration(time.Hour), "1h"},
		{Duration(0), "0s"},
		{FirstLine("one\ntwo"), "one"},
		{FirstLine(strings.Repeat("a", 199) + "ä"), strings.Repeat("a", 199) + "..."},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
