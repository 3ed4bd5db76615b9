package host

import (
	"context"
	"slices"

	"github.com/settlehq/settle/model"
)

// reads are the pending reads of this host, and the counters that they wait by. They belong to its
// loop.
type reads struct {
	waiting []*documentRead
	// confirmed and refused count appends by outcome, integrated the commits of other runtimes.
	confirmed, refused, integrated uint64
	// reading reports that a read of the log is in flight, dry is the number of successive
	// empty reads.
	reading bool
	dry     int
}

// documentRead is a request for documents of one space, as the log has them.
type documentRead struct {
	ctx     context.Context // the caller's context
	docs    []string
	current bool // model.ReadRequest.Current: the documents are observed while the read waits
	// host receives the host that will answer, or nil if there is none.
	host chan *loop
	// head is the end of the log at the time of the request: the answer reflects at least that.
	head uint64
	// done receives the answer, or is closed if this host cannot give one.
	done chan []model.DocumentState
	// late reports that the present values must be returned now.
	late bool
	// seen is the state of the documents as of a number of refused appends and of integrated commits. It is valid
	// once due appends are confirmed.
	seen                     []Freshness
	due, refused, integrated uint64
}

// over reports whether the caller has given up.
func (r *documentRead) over() bool { return r.ctx.Err() != nil }

// holds reports whether a read keeps the space in memory.
func (q *reads) holds() bool {
	return slices.ContainsFunc(q.waiting, func(r *documentRead) bool { return r.current })
}

// freshCore has the states of documents.
type freshCore interface {
	Freshness(doc string) Freshness
	// Unconfirmed is the number of appends until everything is in the log.
	Unconfirmed() int
}

// look records the state of the documents here; only the confirmation of its commits in the log is
// missing then.
func (r *documentRead) look(core freshCore, of *reads) {
	r.seen = r.seen[:0]
	for _, doc := range r.docs {
		r.seen = append(r.seen, core.Freshness(doc))
	}
	r.due, r.refused, r.integrated = of.confirmed+uint64(core.Unconfirmed()), of.refused, of.integrated
}

// outdated reports whether what was seen may have changed: work was undone, or another runtime has changed what the
// documents follow from.
func (r *documentRead) outdated(of *reads) bool {
	return r.refused != of.refused || r.integrated != of.integrated
}

// pending reports whether a current read waits for work on a document.
func (r *documentRead) pending() bool {
	return r.current && slices.ContainsFunc(r.seen, func(f Freshness) bool { return f.Pending })
}
