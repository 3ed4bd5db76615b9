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
	got := options.Of(&cfg)
	for i, want := range options.Of(&set) {
		if got[i].Path != want.Path || !reflect.DeepEqual(got[i].Value.Interface(), want.Value.Interface()) {
			t.Errorf("%s is %v, and %s was set to %v", got[i].Path, got[i].Value, want.Path, want.Value)
		}
	}
	if cfg.HTTP.Addr != "127.0.0.1:2" {
		t.Errorf("HTTP is at %s", cfg.HTTP.Addr)
	}
}
