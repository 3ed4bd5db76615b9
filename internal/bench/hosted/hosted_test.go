package hosted

import "testing"

// TestShapes_ComeToTheSameInBothLanguages: Measure checks the results.
func TestShapes_ComeToTheSameInBothLanguages(t *testing.T) {
	for _, s := range Shapes() {
		if _, err := Measure(s, 2); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkHosted reports the cost of a hosted update, and as x-go its ratio to the same update in Go.
func BenchmarkHosted(b *testing.B) {
	for _, s := range Shapes() {
		b.Run(s.Name, func(b *testing.B) {
			for b.Loop() {
				r, err := Measure(s, 100)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.GoRun.Nanoseconds()), "go-ns/run")
				b.ReportMetric(float64(r.StarRun.Nanoseconds()), "star-ns/run")
				b.ReportMetric(r.Ratio, "x-go")
			}
		})
	}
}
