package demo

import "testing"

func TestOptionsThatMakeNoSenseAreRefusedByTheirFlag(t *testing.T) {
	fine := Options{Workers: 1, Partitions: 1, Duplicate: 1}
	if err := fine.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options){
		"--workers 0: at least one worker is needed":                        func(o *Options) { o.Workers = 0 },
		"--partitions 0: choose 1 to 64":                                    func(o *Options) { o.Partitions = 0 },
		"--partitions 65: choose 1 to 64":                                   func(o *Options) { o.Partitions = 65 },
		"--duplicate 0: every event is sent at least once; 1 sends it once": func(o *Options) { o.Duplicate = 0 },
		"--kill -1: choose how many workers to kill, 0 for none":            func(o *Options) { o.Kill = -1 },
		"--store is for the embedded server and --nats for another one: use only one of them": func(o *Options) {
			o.NATS, o.Store = "nats://host", "dir"
		},
		"--program perl: choose go or star": func(o *Options) { o.Program = "perl" },
		"--keep is about the streams on an outside server (--nats); with the embedded one, --store DIR keeps them": func(o *Options) { o.Keep = true },
	} {
		o := fine
		change(&o)
		if err := o.Check(); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
