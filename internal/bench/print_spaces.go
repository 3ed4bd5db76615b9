package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the figures for people.
func (s Spaces) Print(w io.Writer) {
	fmt.Fprintf(w, "%d spaces, %d active at a time, which leave memory after %s at rest, fsync %s\n", s.Spaces, s.Active, s.Idle, s.Fsync)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what, value, note string) { fmt.Fprintf(t, "%s\t%s\t%s\t\n", what, value, note) }
	for _, f := range []struct {
		what string
		of   Footprint
	}{
		{"before", s.Start},
		{fmt.Sprintf("the first %d active", s.First.Awake), s.First},
		{"all seen", s.Last},
		{"all dormant", s.AtRest},
	} {
		row(f.what, megabytes(f.of.Heap)+" heap", fmt.Sprintf("%s stacks, %d goroutines, %d spaces awake; server %s heap",
			megabytes(f.of.Stacks), f.of.Goroutines, f.of.Awake, megabytes(f.of.Server)))
	}
	row("most awake at a time", fmt.Sprint(s.MostAwake), "")
	row("an awake space", fmt.Sprintf("%.1f kB", s.PerAwake/1000), "heap and stacks of the worker's process")
	row("a dormant space", fmt.Sprintf("%.0f bytes", s.PerDormant), fmt.Sprintf("of the same; %.0f bytes of the server's heap", s.ServerPerSpace))
	row("assets before", s.Before.String(), "")
	row("assets after", s.After.String(), "")
	row("activations", rate(s.Activations), "dormant spaces that were loaded, handled two events each, and left")
	row("send to receipt, dormant", s.Dormant.String(), "one at a time")
	row("send to receipt, awake", s.Awake.String(), fmt.Sprintf("one at a time; a dormant space takes %.1f x as long", s.Ratio))
	_ = t.Flush() // an error of w shows when the caller closes it
	fmt.Fprintln(w)
}

func (a Assets) String() string {
	return fmt.Sprintf("%d streams, %d consumers, %d subscriptions", a.Streams, a.Consumers, a.Subscriptions)
}

func megabytes(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
