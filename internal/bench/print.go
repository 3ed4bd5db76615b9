package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the figures for people.
func (c Counter) Print(w io.Writer) {
	fmt.Fprintf(w, "counter, %d spaces, %d events, fsync %s\n", c.Spaces, c.Events, c.Fsync)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what, value, note string) { fmt.Fprintf(t, "%s\t%s\t%s\t\n", what, value, note) }
	row("plain create-only publishes", rate(c.PlainPublishes), "a JetStream client, pipelined, no worker running")
	row("handled exactly once", rate(c.Handled), fmt.Sprintf("%.2f x the publishes; the same events, from the lanes to receipts in the log", c.Ratio))
	row("sent and handled together", rate(c.Together), "both at the same time")
	row("commits", fmt.Sprint(c.Commits), fmt.Sprintf("%.1f events each", c.EventsPerCommit))
	row("plain publish", c.Publish.String(), "acknowledged, one at a time")
	row("publish to delivery", c.Delivery.String(), "one at a time")
	row("send to receipt", c.Receipt.String(), fmt.Sprintf("%.2f x the medians of the two together", c.ReceiptRatio))
	_ = t.Flush() // an error of w shows when the caller closes it
	fmt.Fprintln(w)
}

func rate(perSecond float64) string { return fmt.Sprintf("%.0f/s", perSecond) }

func (p Percentiles) String() string { return fmt.Sprintf("p50 %.0f us, p99 %.0f us", p.P50, p.P99) }
