package access

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/internal/pause"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// List returns the rules that are stored. The error names those that cannot be decoded; they allow nothing, and close the deployment.
func List(ctx context.Context, records port.Records) (*Rules, error) {
	found, err := records.ListRecords(ctx, RuleKey)
	if err != nil {
		return nil, fmt.Errorf("read the rules about access: %w", err)
	}
	var all []Rule
	var errs []error
	for _, rec := range found {
		r, there, err := decode(rec)
		errs = append(errs, err)
		if there {
			all = append(all, r)
		}
	}
	return NewRules(all), errors.Join(errs...)
}

// Change changes the rule about a pattern of principals. change receives the present rule, which is empty if there is none; it is called
// again if the rule was changed at the same time.
func Change(ctx context.Context, records port.Records, principal string, change func(*Rule)) (Rule, error) {
	if err := CheckPrincipal(principal); err != nil {
		return Rule{}, err
	}
	for {
		rec, err := records.LoadRecord(ctx, keyOf(principal))
		if err != nil {
			return Rule{}, fmt.Errorf("read a rule about access: %w", err)
		}
		r, _, err := decode(rec)
		if err != nil {
			return Rule{}, err
		}
		r.Principal = principal
		change(&r)
		slices.Sort(r.Send)
		slices.Sort(r.Read)
		r.Send, r.Read = slices.Compact(r.Send), slices.Compact(r.Read)
		if err := r.check(); err != nil {
			return Rule{}, err
		}
		data, err := json.Marshal(&r)
		if err != nil {
			return Rule{}, err
		}
		_, err = records.SaveRecord(ctx, model.Record{Key: keyOf(principal), Data: data, Rev: rec.Rev})
		if !errors.Is(err, model.ErrOutdated) {
			return r, err
		}
		if err := ctx.Err(); err != nil {
			return Rule{}, err
		}
	}
}

// Book has the rules of a deployment, and follows their changes. A nil Book is a deployment without rules.
type Book struct {
	bus   any // notes what cannot be read, if it can
	rules atomic.Pointer[Rules]
	log   *slog.Logger
	stop  context.CancelFunc
	task  sync.WaitGroup
	known chan struct{} // closed when the stored rules have arrived
	byKey map[string]Rule
}

// Open returns a book when it has the rules that are stored; ctx bounds that only. Close ends it. A bus that stores no records has no rules.
func Open(ctx context.Context, bus any, log *slog.Logger) (*Book, error) {
	records, can := bus.(port.Records)
	if !can {
		return nil, nil
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	within, stop := context.WithCancel(context.Background())
	b := &Book{bus: bus, log: log, stop: stop, known: make(chan struct{}), byKey: map[string]Rule{}}
	b.rules.Store(NewRules(nil))
	b.task.Go(func() { b.follow(within, records) }) // ends with within, or with the bus
	select {
	case <-b.known:
		return b, nil
	case <-ctx.Done():
		b.Close()
		return nil, fmt.Errorf("read the rules about access: %w", ctx.Err())
	}
}

// Close ends the book. It keeps answering as it did last.
func (b *Book) Close() {
	if b != nil {
		b.stop()
		b.task.Wait()
	}
}

// Rules returns those that are known now.
func (b *Book) Rules() *Rules {
	if b == nil {
		return nil
	}
	return b.rules.Load()
}

// MaySend is Rules.MaySend, of the rules that are known now, and MayRead is Rules.MayRead.
func (b *Book) MaySend(principal, space, stream string) error {
	return b.Rules().MaySend(principal, space, stream)
}

// MayReport is Rules.MayReport, by the rules that are known now.
func (b *Book) MayReport(principal, space, stream string) error {
	return b.Rules().MayReport(principal, space, stream)
}

// MayRead is Rules.MayRead, of the rules that are known now.
func (b *Book) MayRead(principal, space, document string) error {
	return b.Rules().MayRead(principal, space, document)
}

// MayReadAll is Rules.MayReadAll, of the rules that are known now.
func (b *Book) MayReadAll(principal, space string) error {
	return b.Rules().MayReadAll(principal, space)
}

// again is how long to wait before the rules are followed again.
const again = 2 * time.Second

// follow keeps the rules up to date.
func (b *Book) follow(ctx context.Context, records port.Records) {
	known := sync.OnceFunc(func() { close(b.known) })
	for {
		there := map[string]Rule{} // those that were stored at the start; nil after that
		err := records.FollowRecords(ctx, RuleKey, func(rec model.Record) {
			into := there
			if into == nil {
				into = b.byKey
			}
			b.learn(into, rec)
			if there == nil {
				b.publish()
			}
		}, func() {
			if there != nil {
				b.byKey, there = there, nil
			}
			b.publish()
			known()
		})
		if ctx.Err() != nil || errors.Is(err, model.ErrStopped) {
			return
		}
		b.log.Error("the rules about access cannot be followed at the moment; those that are known remain in use", "error", err)
		if pause.For(ctx, again) != nil {
			return
		}
	}
}

// learn applies a record. One that cannot be decoded allows nothing: a rule that was meant to forbid must not be passed over.
func (b *Book) learn(into map[string]Rule, rec model.Record) {
	r, there, err := decode(rec)
	if err != nil {
		b.log.Error("a rule about access cannot be decoded, and allows nothing", "record", rec.Key, "error", err)
		port.PassRecordOver(b.bus, &rec, err.Error())
	}
	if !there {
		delete(into, rec.Key)
		return
	}
	into[rec.Key] = r
}

func (b *Book) publish() {
	var all []Rule
	for _, r := range b.byKey { // any order: NewRules sorts
		all = append(all, r)
	}
	b.rules.Store(NewRules(all))
}
