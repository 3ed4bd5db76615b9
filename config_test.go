package settle_test

import (
	"reflect"
	"testing"

	"go.opentelemetry.io/otel/metric"
	nometrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/worker"
)

// What has the same name and type in two configurations is the same thing.
func TestConfig_WhatIsSetArrivesAtTheWorker(t *testing.T) {
	var deployment settle.Config
	names := fill(t, reflect.ValueOf(&deployment).Elem(), reflect.TypeFor[settle.WorkerConfig]())
	wantSet(t, reflect.ValueOf(settle.WorkerOf(&deployment)), names)

	var own settle.WorkerConfig
	names = fill(t, reflect.ValueOf(&own).Elem(), reflect.TypeFor[worker.Config]())
	wantSet(t, reflect.ValueOf(settle.InnerOf(&own)), names)
}

// fill sets the fields that another configuration has, too, and returns their names.
func fill(t *testing.T, cfg reflect.Value, other reflect.Type) (names []string) {
	t.Helper()
	for i := range cfg.NumField() {
		f := cfg.Type().Field(i)
		if o, is := other.FieldByName(f.Name); !is || o.Type != f.Type {
			continue
		}
		names = append(names, f.Name)
		set(cfg.Field(i))
		if cfg.Field(i).IsZero() {
			t.Fatalf("the test cannot set %s", f.Name)
		}
	}
	return names
}

func set(f reflect.Value) {
	switch f.Kind() {
	case reflect.String:
		f.SetString("x")
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Int, reflect.Int64:
		f.SetInt(7)
	case reflect.Uint64:
		f.SetUint(7)
	case reflect.Float64:
		f.SetFloat(7)
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	case reflect.Func:
		f.Set(reflect.MakeFunc(f.Type(), nil))
	case reflect.Interface:
		if f.Type() == reflect.TypeFor[metric.Meter]() {
			f.Set(reflect.ValueOf(nometrics.Meter{}))
			return
		}
		f.Set(reflect.ValueOf(noop.Tracer{}))
	case reflect.Struct:
		for i := range f.NumField() {
			if k := f.Field(i).Kind(); k != reflect.Interface && f.Field(i).CanSet() {
				set(f.Field(i))
			}
		}
	}
}

func wantSet(t *testing.T, got reflect.Value, names []string) {
	t.Helper()
	for _, name := range names {
		if got.FieldByName(name).IsZero() {
			t.Errorf("%s does not arrive in %s", name, got.Type())
		}
	}
	if len(names) < 8 {
		t.Errorf("only %v were looked at", names)
	}
}
