package main

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// An event that somebody published into a partition that is not its space's is a matter for the
// workers' logs: commands print what they were asked for.
func TestCommands_DoNotPrintWhatTheBusNotices(t *testing.T) {
	d := running(t)
	wrong := "settle.lane." + []string{"1", "0"}[model.PartitionOf("shop", 2)] + ".shop.order.astray"
	if _, err := d.Bus().JetStream().Publish(t.Context(), wrong, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"fleet"}, {"where", "shop"}, {"send", "shop", "order", "--wait"}, {"receipts", "shop"}} {
		if code, _, stderr := command(t.Context(), args...); code != 0 || strings.Contains(stderr, "level=") {
			t.Errorf("settle %s: code %d\n%s", strings.Join(args, " "), code, stderr)
		}
	}
}
