package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/settlehq/settle/internal/bench/hosted"
)

// benchHostedCmd is `settle bench hosted`.
type benchHostedCmd struct {
	Rounds int    `default:"200" help:"How often each graph is measured; the best result counts."`
	JSON   string `name:"json" help:"Write the figures as JSON to FILE; - is standard output." placeholder:"FILE"`
}

// Run measures, and fails if a hosted program exceeds its cost limit.
func (c *benchHostedCmd) Run(ctx context.Context, io streams) error {
	if c.Rounds < 1 {
		return usage(fmt.Errorf("bench hosted needs at least one round"))
	}
	var results []hosted.Result
	var above []string
	for _, s := range hosted.Shapes() {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(io.err, "%s ...\n", s.Name)
		r, err := hosted.Measure(s, c.Rounds)
		if err != nil {
			return err
		}
		results = append(results, r)
		if r.Ratio > hosted.Limit {
			above = append(above, s.Name)
		}
	}
	if c.JSON != "-" {
		c.print(io, results)
	}
	if err := writeJSON(io, c.JSON, results); err != nil {
		return err
	}
	if len(above) > 0 {
		return fmt.Errorf("hosted programs cost more than %d times those in Go on %v", hosted.Limit, above)
	}
	return nil
}

func (c *benchHostedCmd) print(io streams, results []hosted.Result) {
	w := tabwriter.NewWriter(io.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "shape\ta run in Go\thosted\tratio\t")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%v\t%v\t%.1f\t%s\n", r.Shape, r.GoRun, r.StarRun, r.Ratio, r.What)
	}
	_ = w.Flush() // an error of standard output cannot be reported
}
