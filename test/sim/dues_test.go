package sim

import (
	"fmt"
	"time"

	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
)

// Applications set timers in a space while its owner saves it. Both save the time at which the space
// wants to be woken.

func (p *plan) dues() {
	for i := range p.times("dues", 2) {
		c := keyed(p.seed, "dues", i)
		who := fmt.Sprint("a", i+1)
		start := item{at: c.between(0, p.chaos/2), do: "start", who: who, space: p.anySpace(c), a: c.below(2) == 0}
		p.add(start)
		at := start.at
		for k := range 3 + c.below(4) {
			at += c.between(10*time.Millisecond, 600*time.Millisecond)
			p.add(item{at: at, do: "transact", who: who, id: fmt.Sprintf("%sT%d", who, 20+k)})
			p.add(item{
				at: at - c.between(0, 60*time.Millisecond), do: "send", who: anyUser(c), space: start.space,
				stream: oneOf(c, "add", "set", "unset"), id: fmt.Sprint("q", i+1, "x", k), payload: fmt.Sprintf(`{"name":"t1","ms":%d,"k":0}`, 100+c.below(900)),
			})
			if it := &p.items[len(p.items)-1]; it.stream == "add" {
				it.payload = "1"
			}
		}
	}
}

// saving tracks the saves in progress, by space.
func (w *world) saving(p *process, s membus.Step) {
	if s.Label != "save" {
		return
	}
	if w.saves[s.Space] == nil {
		w.saves[s.Space] = map[*process]int{}
	}
	switch s.Moment {
	case membus.Leaves:
		w.saves[s.Space][p]++
	case membus.Answered:
		w.saves[s.Space][p] = 0
	}
}

// noteDue counts wake-up times that applications save while the owner saves the space.
func (w *world) noteDue(p *process, s membus.Step) {
	if s.Doc.Doc != model.DueKey || p.who[0] != 'a' {
		return
	}
	for q, n := range w.saves[s.Space] { // any order: whether there is one
		if q != p && q.worker != nil && q.died == 0 && n > 0 {
			w.count("due items of applications while an owner saved")
			return
		}
	}
}
