package console

import (
	"math"
	"strings"
	"testing"
)

// A chart begins with ten minutes, and grows to an hour; a gap stays a gap, and what is drawn ends at the right edge.
func TestChart_GrowsAndKeepsGaps(t *testing.T) {
	for n, want := range map[int]string{0: "10 min", 50: "10 min", 51: "15 min", 75: "15 min", 76: "20 min", 275: "55 min", 276: "1 h", 300: "1 h"} {
		if got := (&chart{Span: spanOf(n)}).Since(); got != want {
			t.Errorf("%d points take %s, want %s", n, got, want)
		}
	}
	line, area := pathsOf([]float64{1, 2, math.NaN(), 4}, 4, 50)
	if strings.Count(line, "M") != 2 || strings.Count(area, "Z") != 2 || !strings.Contains(line, "M600.0 4.0") {
		t.Errorf("the line is %s, the area %s", line, area)
	}
	if line, _ := pathsOf([]float64{1}, 1, 50); line != "M600.0 4.0h-4" {
		t.Errorf("a point alone is %s", line)
	}
	if c := (&chart{Series: []series{{Points: []float64{math.NaN()}}}}); !c.Empty() {
		t.Error("a chart of nothing is not empty")
	}
}
