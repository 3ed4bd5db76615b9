package dev_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/dev"
)

func TestDev_TheContextOfAnotherThatRunsIsLeftAlone(t *testing.T) {
	quietHome(t)
	one := start(t, t.TempDir(), nil)
	two := start(t, t.TempDir(), nil)
	if got := bus.ContextURL(dev.ContextName); got != one.server.NATS {
		t.Errorf("the context names %s, not %s", got, one.server.NATS)
	}
	if !strings.Contains(two.out.String(), "nats --context settle-dev-") {
		t.Errorf("the second says nothing of its context:\n%s", two.out)
	}
}
