package history

import (
	"slices"

	"github.com/settlehq/settle/model"
)

// Letter records a dead letter about an event.
func (c *Checker) Letter(space, stream, id string) {
	k := deadKey{space, stream, id}
	c.Counts.Letters++
	if !c.dead[k] {
		c.violate(Dead, "there is a letter about %s %s of %s, which ended well or has one already", stream, id, space)
	}
	delete(c.dead, k)
}

// Saved records the state of a space in its STATE bucket, after its owner has saved it and left.
func (c *Checker) Saved(space string, st model.SpaceState) {
	s := c.spaces[space]
	if st.Mark.Seq != s.rep.Seq {
		c.violate(State, "%s: saved up to %d, the log ends at %d", space, st.Mark.Seq, s.rep.Seq)
		return
	}
	stored := map[string]model.Value{}
	for _, d := range st.Docs {
		v, err := model.ParseValue(d.Data)
		if err != nil && len(d.Data) > 0 {
			c.violate(State, "%s/%s: %v", space, d.Doc, err)
			continue
		}
		if !v.IsAbsent() {
			stored[d.Doc] = v
		}
	}
	for _, id := range s.rep.DocIDs() {
		if want := s.rep.Doc(id).Value; !model.Equal(stored[id], want) {
			c.violate(State, "%s/%s: the bucket has %v, the log %v", space, id, stored[id], want)
		}
		delete(stored, id)
	}
	for id, v := range stored { // any order: each is reported
		c.violate(State, "%s/%s: the bucket has %v, the log nothing", space, id, v)
	}
}

// Finish makes the checks that need the complete data.
func (c *Checker) Finish() {
	c.lanes()
	c.endTakeovers()
	for _, s := range c.inOrder() {
		c.unhandled(s)
		c.documents(s)
		for target, sent := range s.out { // any order: each on its own
			c.pair(s.name, target, sent, c.spaces[target].in[s.name])
		}
		for origin, took := range s.in { // any order: each on its own
			if o := c.spaces[origin]; o == nil || len(o.out[s.name]) == 0 {
				c.violate(Unsent, "%s has handled %d events from %s, which has sent none", s.name, len(took), origin)
			}
		}
	}
	c.watches()
	for k := range c.dead { // any order: each is reported
		c.violate(Dead, "there is no letter about %s %s of %s, which failed or was refused", k.stream, k.id, k.space)
	}
}

// unhandled checks for events of a space without a receipt.
func (c *Checker) unhandled(s *spaceHistory) {
	for i, h := range s.clients { // any order: each on its own
		for k, seq := range h.laned {
			if n := uint32(k + 1); seq > 0 && (n > h.last || h.late[n]) {
				c.violate(Lost, "%s: %s stands in the lane at %d, and has no receipt", s.name, EventID(i, n), seq)
			}
		}
		for n := range h.seen { // any order: each is reported
			if h.unsure[n] {
				continue
			}
			c.violate(Answers, "%s: a client received a receipt of %s, and the log has none", s.name, EventID(i, n))
		}
	}
	for id := range s.own { // any order: each is reported
		c.violate(Lost, "%s: follow-up %s has no receipt", s.name, id)
	}
	for id := range s.waits { // any order: each is reported
		c.violate(Lost, "%s: %s, which was to wait for its time, has no receipt", s.name, id)
	}
	for key := range s.jobs { // any order: each is reported
		c.violate(Lost, "%s: the end of task %s has no receipt", s.name, key)
	}
	for id := range s.notices { // any order: each is reported
		c.violate(Lost, "%s: notice %s has no receipt", s.name, id)
	}
}

// pair compares the events that one space has sent to another with those that the other has handled.
func (c *Checker) pair(origin, target string, sent []sentEvent, took []tookEvent) {
	if n := len(sent) - len(took); n > 0 {
		for range n {
			c.violate(Lost, "%s has sent %d events to %s, which has handled %d", origin, len(sent), target, len(took))
		}
	}
	for range len(took) - len(sent) {
		c.violate(Unsent, "%s has sent %d events to %s, which has handled %d", origin, len(sent), target, len(took))
	}
	for i := range min(len(sent), len(took)) {
		switch a, b := sent[i], took[i]; {
		case b == tookEvent{}:
			c.violate(Lost, "number %d from %s to %s has no receipt", i+1, origin, target)
		case a.key != b.key:
			c.violate(Unsent, "number %d from %s to %s was handled as another event than was sent", i+1, origin, target)
		case b.at < a.at:
			c.violate(Causality, "number %d from %s to %s was handled %d ns before the commit that sent it", i+1, origin, target, a.at-b.at)
		case b.onward > 0 && b.onward != a.depth:
			c.violate(Effects, "number %d from %s to %s was sent with depth %d and handled with %d", i+1, origin, target, a.depth, b.onward)
		}
	}
}

// documents compares the documents in the log with the sums of the receipts.
func (c *Checker) documents(s *spaceHistory) {
	want := s.expect()
	for _, id := range []string{DocSum, DocSeen, DocMark} {
		if got := s.rep.Doc(id).Value; !model.Equal(got, want[id]) {
			c.violate(Sums, "%s/%s is %v, the receipts add up to %v", s.name, id, got, want[id])
		}
	}
	if c.watched[docKey{s.name, DocView}] {
		if got, want := s.rep.Doc(DocView).Value, View(s.sum); !model.Equal(got, want) {
			c.violate(Sums, "%s/%s is %v, and should be %v", s.name, DocView, got, want)
		}
	}
	if c.watched[docKey{s.name, DocMarked}] {
		next := model.Value{}
		if to := c.spaces[Linked(s.mark)]; to != nil {
			next = View(to.sum)
		}
		if got, want := s.rep.Doc(DocMarked).Value, Marked(s.mark, next); !model.Equal(got, want) {
			c.violate(Sums, "%s/%s is %v, and should be %v", s.name, DocMarked, got, want)
		}
	}
	if c.watched[docKey{s.name, DocPair}] {
		i, _ := c.work.SpaceNumber(s.name)
		other := c.spaces[c.work.Space(i+1)].sum
		if got, want := s.rep.Doc(DocPair).Value, Pair(s.sum, View(other)); !model.Equal(got, want) {
			c.violate(Sums, "%s/%s is %v, and should be %v", s.name, DocPair, got, want)
		}
	}
}

// View returns the content of DocView.
func View(sum Sum) model.Value {
	return model.Object(model.F("n", sum.N), model.F("odd", sum.N%2 == 1), model.F("h", int64(sum.H)))
}

// MarkOf returns the content of DocMark that an event to a space writes: the client and, except for the program
// in Starlark, a link to the view of one of the next spaces, which moves with each mark.
func (w Workload) MarkOf(space, id string) model.Value {
	by := model.F("by", id)
	i, _ := w.SpaceNumber(space)
	if w.IsHosted(i) {
		return model.Object(by)
	}
	to := w.Space(i + 1 + int(Hash(id))%w.reach())
	return model.Object(by, model.F("next", model.Link{Space: to, Doc: DocView}.Value()))
}

// reach returns the number of spaces to which the link of a mark may lead.
func (w Workload) reach() int { return min(3, w.Spaces-1) }

// Linked returns the space whose view a mark links to, "" for none.
func Linked(mark model.Value) string {
	link, _ := mark.Get("next").AsLink()
	return link.Space
}

// Marked returns the content of DocMarked, given DocMark, which may be absent, and the target of its link.
func Marked(mark, next model.Value) model.Value {
	by, _ := mark.Get("by").AsString()
	fields := []model.Field{model.F("is", !mark.IsAbsent()), model.F("by", by)}
	if mark.Get("next").IsLink() {
		fields = append(fields, model.F("at", Linked(mark)), model.F("next", next.Get("n")))
	}
	return model.Object(fields...)
}

// Pair returns the content of DocPair, given the view of the next space.
func Pair(sum Sum, next model.Value) model.Value {
	return model.Object(model.F("mine", sum.N), model.F("next", next.Get("n")))
}

// Slowest returns the takeover times of partitions that pass a filter, in ascending order.
func (n *Counts) Slowest(of func(Takeover) bool) (all []Takeover) {
	for _, t := range n.TakeOver {
		if of(t) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Takeover) int { return int(a.After - b.After) })
	return all
}
