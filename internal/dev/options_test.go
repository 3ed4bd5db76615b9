package dev

import (
	"reflect"
	"testing"

	"github.com/settlehq/settle/internal/flags"
	"github.com/settlehq/settle/options"
)

// Every option of a worker that is set is one of the deployment's workers.
func TestDeployment_HasTheOptionsOfTheWorkers(t *testing.T) {
	set := flags.Worker{}
	for _, o := range options.Of(&set) {
		if err := o.Set("7"); err != nil {
			if err = o.Set("7s"); err != nil {
				t.Fatal(err)
			}
		}
	}
	d := &dev{cfg: Config{Dir: t.TempDir(), Worker: set}}
	cfg := d.deployment("127.0.0.1:1", "127.0.0.1:2")
	got := map[string]any{}
	for _, o := range options.Of(&cfg) {
		got[o.Path] = o.Value.Interface()
	}
	for _, want := range options.Of(&set) {
		if !reflect.DeepEqual(got[want.Path], want.Value.Interface()) {
			t.Errorf("%s is %v, and was set to %v", want.Path, got[want.Path], want.Value)
		}
	}
	if cfg.HTTP.Addr != "127.0.0.1:2" {
		t.Errorf("HTTP is at %s", cfg.HTTP.Addr)
	}
}
