package sim

import (
	"time"

	"github.com/settlehq/settle/model"
)

// In some of the worlds of TestRewinds a single partition goes back: its log and its state, with or
// without its lane.

func (w *past) unlessAlone(n int) int {
	if w.alone {
		return 0
	}
	return n
}

// goBackIn restores the log and the state of one partition from the newest snapshot, under running
// processes or while there are none. If its lane stays, no acknowledged event is lost.
func (w *past) goBackIn(list []kept, partition int, nothing bool) {
	if len(list) == 0 {
		return
	}
	all := []string{"w1", "w2", "c1"}
	if nothing {
		w.count("logs that went back while nothing ran")
		for _, who := range all {
			w.procs[who].kill()
		}
	}
	to := list[len(list)-1]
	w.note("the log of partition %d goes back to %v (alone: %v)", partition, to.at, nothing)
	lane := keyed(w.seed, "lane", int(w.now())).below(2) == 0
	if lane {
		w.rewinds = append(w.rewinds, rewound{to.at, w.now(), partition})
		w.count("logs that went back with their lanes")
	}
	w.server.GoBackIn(partition, to.Snapshot, lane)
	w.count("logs that went back")
	if !nothing {
		return
	}
	w.pass(keyed(w.seed, "dark", int(w.now())).between(time.Millisecond, 500*time.Millisecond))
	for _, who := range all {
		w.start(who)
	}
}

func (w *past) concerns(r rewound, e *sentEvent) bool {
	return r.partition == allOfIt || r.partition == model.PartitionOf(e.space, w.server.Partitions())
}

// countRepeated counts the events that ended like an earlier event with the same replay key.
func (w *past) countRepeated() {
	for _, of := range w.spaces {
		seen := map[uint64]bool{}
		for _, entry := range w.server.History(of) {
			c, err := model.DecodeCommit(entry.Data)
			if err != nil {
				w.violate("space %s: %v", of, err)
				continue
			}
			for i := range c.Txs {
				rc := c.Txs[i].Receipt
				if rc == nil || rc.ReplayKey == 0 || rc.Outcome != model.Handled {
					continue
				}
				if seen[rc.ReplayKey] {
					w.count("events that were sent again under another id")
				}
				seen[rc.ReplayKey] = true
			}
		}
	}
}
