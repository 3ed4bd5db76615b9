package flow

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
	"github.com/settlehq/settle/workflow"
)

// Reader reads a run again and again, for what follows it. The first reading makes the run again from its documents; a further one costs what
// has happened since, however much the run has done before. It is not safe for concurrent use.
type Reader struct {
	id    string
	space settle.Space
	docs  *history.Documents // nil before the first reading
	run   *runs.Reader
	ctx   context.Context //nolint:containedctx // of the present call, for what the run reads
}

// Reader returns a reader of a run.
func (r Runs) Reader(id string) *Reader {
	x := &Reader{id: id, space: r.space}
	x.run = runs.NewReader(id, func(doc string) (settle.Value, error) {
		v, _, err := x.docs.Get(x.ctx, doc)
		return v, err
	})
	x.run.Ahead = func(docs []string) { _ = x.docs.Load(x.ctx, docs) } // what fails is read again, and fails then
	return x
}

// Status returns the state of the run, as the log has it, and what it waits for.
func (x *Reader) Status(ctx context.Context) (*Status, error) { return readRun(ctx, x, x.run.Status) }

// refresh moves on to what the log has now.
func (x *Reader) refresh(ctx context.Context) (err error) {
	if err := runs.CheckID(x.id); err != nil {
		return err
	}
	if x.docs == nil {
		if x.docs, err = x.space.Reading(ctx, runs.ReadsOf(x.id)); err != nil {
			return err
		}
	}
	return x.docs.Refresh(ctx)
}

// Revision returns the revision of the document of the run, which each of its steps changes; 0 if there is no such run.
func (x *Reader) Revision(ctx context.Context) (uint64, error) {
	if err := x.refresh(ctx); err != nil {
		return 0, err
	}
	_, at, err := x.docs.Get(ctx, runs.Doc(x.id))
	return at, err
}

// View is all that there is to say of a run. Its timeline and its history are valid until the reader is used again.
type View struct {
	Status   *Status
	Timeline *Timeline
	// Untimed is why there is no timeline, nil if there is one.
	Untimed error
	History *History
}

// View returns the state of the run with its attempts and its steps.
func (x *Reader) View(ctx context.Context) (*View, error) {
	return readRun(ctx, x, func() (*View, error) {
		v := &View{}
		v.Timeline, v.Untimed = x.run.Timeline()
		var err, failed error
		v.Status, err = x.run.Status()
		v.History, failed = x.run.History()
		return v, errors.Join(err, failed)
	})
}

// Progress returns what the performers of some calls that the run waits for have reported last, absent where there is nothing; see Runs.Progress.
func (x *Reader) Progress(ctx context.Context, s *Status, calls []workflow.Open) ([]settle.Value, error) {
	docs := map[string]bool{}
	for i := range calls {
		if doc := s.TaskDoc(x.space.Name(), &calls[i]); doc != "" {
			docs[doc] = true
		}
	}
	list := make([]settle.Value, len(calls))
	if len(docs) == 0 {
		return list, nil
	}
	reading, err := x.space.Reading(ctx, func(doc string) bool { return docs[doc] })
	if err == nil {
		err = reading.Refresh(ctx)
	}
	if err == nil {
		err = reading.Load(ctx, slices.Sorted(maps.Keys(docs)))
	}
	if err != nil {
		return nil, err
	}
	for i := range calls {
		var err error
		list[i], err = s.Progress(x.space.Name(), &calls[i], func(doc string) (settle.Value, error) {
			v, _, err := reading.Get(ctx, doc)
			return v, err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// inspections bounds how often the documents of a run that changes meanwhile are read.
const inspections = 20

// readRun reads something of a run from several of its documents, again if they have changed meanwhile.
func readRun[T any](ctx context.Context, x *Reader, get func() (T, error)) (none T, err error) {
	x.ctx = ctx
	defer func() { x.ctx = nil }()
	for n := 1; ; n++ {
		if err := x.refresh(ctx); err != nil {
			return none, err
		}
		before, _, err := x.docs.Get(ctx, runs.Doc(x.id))
		if err != nil && !errors.Is(err, model.ErrRewound) {
			return none, err
		}
		out, err := get()
		if err == nil || errors.Is(err, ErrNoRun) || ctx.Err() != nil || n == inspections {
			return out, err
		}
		if x.docs.Refresh(ctx) != nil {
			return out, err
		}
		after, _, failed := x.docs.Get(ctx, runs.Doc(x.id))
		if rewound := errors.Is(err, model.ErrRewound); !rewound && (failed != nil || before.String() == after.String()) {
			return out, err
		}
	}
}
