package history

import "time"

// observer watches one document, in one session after the other.
type observer struct {
	docKey
	sessions []session
	// newest is set if it receives the newest value when it is ready, and may skip earlier ones.
	newest bool
}

// session has the deliveries of one call of Watch.
type session struct {
	number int
	seen   []shown
}

// shown is a delivery of a watch, and its time. An unsure version may have been lost since.
type shown struct {
	version
	at     time.Time
	unsure bool
}

// Watched records a delivery of a watch: a revision, and a hash of the value's text. A
// session is one call of Watch; those of an observer, and what each delivers, come in
// their order. at is when it was delivered.
func (c *Checker) Watched(number, in int, space, doc string, revision uint64, value uint32, at time.Time) {
	key := docKey{space, doc}
	c.watched[key] = true
	o := c.observers[number]
	if o == nil {
		o = &observer{docKey: key, newest: c.newest[number]}
		c.observers[number] = o
	}
	if n := len(o.sessions); n == 0 || o.sessions[n-1].number != in {
		o.sessions = append(o.sessions, session{number: in})
		c.Counts.Sessions++
	}
	s := &o.sessions[len(o.sessions)-1]
	s.seen = append(s.seen, shown{version{revision, value}, at, c.showing(at)})
	c.Counts.Deliveries++
}

// Asked records that a document was watched, without its deliveries.
func (c *Checker) Asked(space, doc string) { c.asked[docKey{space, doc}] = true }

// ShowsNewest declares, before the first Watched, that an observer receives states: if it is slower than
// the changes, it skips some of them, but never the last.
func (c *Checker) ShowsNewest(number int) { c.newest[number] = true }

// watches compares the deliveries with the versions in the log.
func (c *Checker) watches() {
	for number, o := range c.observers { // any order: each on its own
		var last, surely uint64
		for i := range o.sessions {
			s := &o.sessions[i]
			if first := s.seen[0]; first.seq < surely && !first.unsure {
				c.violate(Regression, "observer %d of %s/%s: session %d begins with revision %d, the one before had shown %d", number, o.space, o.doc, s.number, first.seq, surely)
			}
			c.session(number, o, s)
			for _, got := range s.seen {
				if last = got.seq; !got.unsure {
					surely = last
				}
			}
		}
		texts := c.spaces[o.space].texts[o.doc]
		if n := len(texts); n > 0 && last != texts[n-1].seq {
			c.violate(Watches, "observer %d of %s/%s: ended up at revision %d, the document is at %d", number, o.space, o.doc, last, texts[n-1].seq)
		}
	}
}

// session checks that every version since the first delivered one was delivered, and nothing else.
// Unsure versions may be lost, and after a loss the watch begins again with the current version.
func (c *Checker) session(number int, o *observer, s *session) {
	texts := c.spaces[o.space].texts[o.doc]
	var before *shown   // versions that certainly existed
	var heard time.Time // the first delivery after servers came back from a loss
	at := 0
	for i := range s.seen {
		got := &s.seen[i]
		if i > 0 && c.back(s.seen[i-1].at, got.at) {
			heard = got.at
		}
		anew := before == nil || i > 0 && c.between(s.seen[i-1].at, got.at) || got.at.Sub(heard) < Noticing
		if got.unsure {
			continue
		}
		if before != nil && (got.seq < before.seq || got.seq == before.seq && !anew) {
			c.violate(Regression, "observer %d of %s/%s: revision %d after %d", number, o.space, o.doc, got.seq, before.seq)
			return
		}
		again := before != nil && got.seq == before.seq
		before = got
		if got.seq == 0 || again {
			continue // there was no version yet, or it is unchanged
		}
		from := at
		for at < len(texts) && texts[at].seq < got.seq {
			at++
		}
		switch {
		case at == len(texts) || texts[at].seq != got.seq || texts[at].hash != got.hash:
			c.violate(Watches, "observer %d of %s/%s: was shown revision %d, which the log does not have so", number, o.space, o.doc, got.seq)
		case i > 0 && at > from && !o.newest && !anew:
			c.violate(Watches, "observer %d of %s/%s: %d versions before revision %d were left out", number, o.space, o.doc, at-from, got.seq)
		}
		if at < len(texts) && texts[at].seq == got.seq {
			at++
		}
	}
}
