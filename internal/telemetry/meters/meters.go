package meters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Set registers the instruments of one table.
type Set struct {
	meter metric.Meter
	table []Instrument
	err   error
}

// NewSet returns a set whose instruments a meter makes.
func NewSet(meter metric.Meter, table []Instrument) *Set { return &Set{meter: meter, table: table} }

// Err returns the errors of the functions called so far.
func (s *Set) Err() error { return s.err }

// Distribution is a histogram of the table. A nil one records nothing.
type Distribution struct {
	h metric.Float64Histogram
	// by has the options for each value as the list that Record passes on, which is not made anew for each number.
	by map[string][]metric.RecordOption
}

// Distribution returns a histogram of the table.
func (s *Set) Distribution(name string) *Distribution {
	i := s.find(name)
	h, err := s.meter.Float64Histogram(name, metric.WithUnit(i.Unit), metric.WithDescription(i.Help), metric.WithExplicitBucketBoundaries(i.Bounds...))
	s.err = errors.Join(s.err, err)
	d := &Distribution{h, map[string][]metric.RecordOption{}}
	for value, o := range options(i) { // any order: a map
		d.by[value] = []metric.RecordOption{o}
	}
	return d
}

// options returns the attributes for each value of an instrument.
func options(i *Instrument) map[string]metric.MeasurementOption {
	by := map[string]metric.MeasurementOption{"": metric.WithAttributeSet(attribute.NewSet())}
	for _, v := range i.Values {
		by[v] = metric.WithAttributeSet(attribute.NewSet(attribute.String(i.Attribute, v)))
	}
	return by
}

// Record adds a number. value is one of the instrument's Values, "" if it has no attribute; a number with another value is left out. The
// span in ctx is what an exemplar names.
func (d *Distribution) Record(ctx context.Context, value string, n float64) {
	if d == nil {
		return
	}
	if o, known := d.by[value]; known {
		d.h.Record(ctx, n, o...)
	}
}

// RecordWith is Record for an instrument with more than one attribute. The caller bounds their values.
func (d *Distribution) RecordWith(ctx context.Context, n float64, with ...attribute.KeyValue) {
	if d != nil {
		d.h.Record(ctx, n, metric.WithAttributes(with...))
	}
}

// Counts is a counter of the table that is incremented where something happens. A nil one counts nothing.
type Counts struct {
	c  metric.Int64Counter
	by map[string]metric.MeasurementOption
}

// Counts returns a counter of the table. Observe leaves it out.
func (s *Set) Counts(name string) *Counts {
	i := s.find(name)
	c, err := s.meter.Int64Counter(name, metric.WithUnit(i.Unit), metric.WithDescription(i.Help))
	s.err = errors.Join(s.err, err)
	n := &Counts{c, options(i)}
	for _, v := range i.Values {
		c.Add(context.Background(), 0, n.by[v]) // it is there before it is needed
	}
	return n
}

// Add counts one. value is one of the instrument's Values, "" if it has no attribute.
func (n *Counts) Add(value string) {
	if n == nil {
		return
	}
	if o, known := n.by[value]; known {
		n.c.Add(context.Background(), 1, o)
	}
}

// Put stores the present value of a counter or a gauge. value is one of the instrument's Values, "" if it has no
// attribute.
type Put func(name, value string, n int64)

// Observe makes the counters and gauges of the table, and calls read for their values each time they are collected.
func (s *Set) Observe(read func(Put)) (stop func()) {
	made := map[string]metric.Int64Observable{}
	options := map[string]map[string]metric.ObserveOption{}
	var all []metric.Observable
	for i := range s.table {
		t := &s.table[i]
		if t.Kind == Histogram {
			continue
		}
		o, err := s.observable(t)
		if err != nil {
			s.err = errors.Join(s.err, err)
			continue
		}
		made[t.Name], options[t.Name] = o, map[string]metric.ObserveOption{"": metric.WithAttributes()}
		for _, v := range t.Values {
			options[t.Name][v] = metric.WithAttributes(attribute.String(t.Attribute, v))
		}
		all = append(all, o)
	}
	r, err := s.meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		read(func(name, value string, n int64) {
			if o, known := options[name][value]; known {
				to.ObserveInt64(made[name], n, o)
			}
		})
		return nil
	}, all...)
	if err != nil {
		s.err = errors.Join(s.err, err)
		return func() {}
	}
	return func() { _ = r.Unregister() }
}

func (s *Set) observable(i *Instrument) (metric.Int64Observable, error) {
	unit, help := metric.WithUnit(i.Unit), metric.WithDescription(i.Help)
	if i.Kind == Counter {
		return s.meter.Int64ObservableCounter(i.Name, unit, help)
	}
	return s.meter.Int64ObservableGauge(i.Name, unit, help)
}

func (s *Set) find(name string) *Instrument {
	at := slices.IndexFunc(s.table, func(i Instrument) bool { return i.Name == name })
	if at < 0 {
		s.err = errors.Join(s.err, fmt.Errorf("there is no metric %s", name))
		return &Instrument{}
	}
	return &s.table[at]
}
