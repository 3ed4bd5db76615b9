package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/settlehq/settle/model"
)

// Positions arrive far too early: a space sends many events to another one while the coordinators are
// cut off, and another process releases the last of them first, as any reader of the log may.

func (p *plan) early() {
	for i := range p.times("early", 2) {
		c := keyed(p.seed, "early", i)
		at := c.between(0, p.chaos*3/4)
		p.add(item{
			at: at, do: "send", who: anyUser(c), space: p.anySpace(c), stream: "burst", id: fmt.Sprint("b", i+1),
			payload: fmt.Sprintf(`{"to":%q,"k":%d}`, p.anySpace(c), 12+c.below(40)),
		})
		for k := range coordinators {
			p.add(item{at: at + time.Duration(k+1), do: "cut", who: fmt.Sprint("c", k+1), span: c.between(200*time.Millisecond, time.Second), a: true})
		}
		p.add(item{at: at + c.between(20*time.Millisecond, 400*time.Millisecond), do: "rush", who: anyUser(c)})
	}
}

// ofEarly are its streams.
var ofEarly = map[string]func(v view, ev *model.Event) (model.Value, error){
	"burst": func(v view, ev *model.Event) (model.Value, error) {
		to, k := target(ev)
		for range k {
			v.Send(to, "add", 1)
		}
		return count(v, 1), nil
	},
}

// rush releases, in reverse order, the last sends of each space that are not in a lane yet.
func (w *world) rush(p *process) {
	w.mu.Lock()
	var list []model.Send
	for i := range w.plan.spaces {
		f := w.folds[spaceName(i)]
		for id, s := range f.sends { // any order: sorted below
			if _, there := w.server.FindEvent(s.send.To, s.send.Stream, id); !there && s.send.To != f.space {
				list = append(list, s.send)
			}
		}
	}
	w.mu.Unlock()
	slices.SortFunc(list, func(a, b model.Send) int {
		return cmp.Or(cmp.Compare(b.Position, a.Position), cmp.Compare(a.ID, b.ID))
	})
	for i := range list[:(len(list)+1)/2] {
		s := &list[i]
		m := model.Message{Space: s.To, Stream: s.Stream, ID: s.ID, Position: s.Position, Depth: s.Depth, NotBefore: s.NotBefore}
		if !s.Payload.IsAbsent() {
			m.Payload = s.Payload.AppendJSON(nil)
		}
		p.bus.Send(m, func(model.SendResult, error) {}) // coordinators send it, too
	}
}

// farTooEarly is the distance of such a position from the last handled one.
const farTooEarly = 10

func (f *fold) noteEarly(m *model.Message) {
	if origin, minted := model.OriginOf(m.ID); minted && m.Position > f.inbound[origin.Space]+farTooEarly {
		f.w.count("positions that came far too early")
	}
}
