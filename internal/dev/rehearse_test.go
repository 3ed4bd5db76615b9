package dev

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

func source(text string) star.Source {
	return star.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": text}}
}

func TestSuggest_AChainOfEventsEndsEarly(t *testing.T) {
	const text = `
steps = [cell("step%d" % i, {}) for i in range(100)]
def step(e):
    steps[e.n]["done"] = True
    send(space(), "step", {"n": e.n + 1})
handle("step", step, payload = {"n": int})
`
	s := suggest(t.Context(), source(text), "p")
	if s == nil || s.Stream != "step" || len(s.changes) != rehearsalChain {
		t.Errorf("%+v; want step, and as many changes as events before the end of a chain of %d", s, rehearsalChain)
	}
}

// Without a limit on rehearsals this would take hours.
func TestSuggest_AllRehearsalsTogetherComeToAnEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString("def spin():\n    for _ in range(3):\n        send(space(), 's0')\n    for _ in range(100000):\n        pass\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "handle('s%d', spin)\n", i)
	}
	src := source(b.String())
	p, err := star.Compile(src, star.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := program.NewVersion(src, byDev, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	d := &dev{cfg: Config{Rehearsal: rehearsalTime}, programs: []*hosted{{file: "p.star", name: "p", program: p, version: v}}}
	d.suggest(t.Context())
}
