package hosted

import "testing"

// TestShapes_ComeToTheSameInBothLanguages: drive checks what has come out.
func TestShapes_ComeToTheSameInBothLanguages(t *testing.T) {
	for _, s := range Shapes() {
		s.Updates = 20
		if _, err := Measure(s, 1); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkHosted reports what a hosted update costs, and as x-go how many times that of
// the same in Go.
func BenchmarkHosted(b *testing.B) {
	for _, s := range Shapes() {
		b.Run(s.Name, func(b *testing.B) {
			for b.Loop() {
				r, err := Measure(s, 3)
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
