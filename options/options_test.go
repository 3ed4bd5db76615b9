package options_test

import (
	"flag"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/options"
	"github.com/settlehq/settle/worker"
)

func bind(t *testing.T, cfg any, args ...string) error {
	t.Helper()
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if err := options.Bind(fs, cfg); err != nil {
		return err
	}
	return fs.Parse(args)
}

func TestBind_AFlagPrecedesTheVariableAndThatPrecedesGo(t *testing.T) {
	t.Setenv("SETTLE_IDLE", "20s")
	t.Setenv("SETTLE_MAX_GROUP", "20")
	cfg := settle.WorkerConfig{Options: worker.Options{Idle: 10 * time.Second, MaxAwake: 10, Limits: ledger.Limits{MaxGroup: 10}}}
	if err := bind(t, &cfg, "--idle", "30s"); err != nil {
		t.Fatal(err)
	}
	if cfg.Idle != 30*time.Second || cfg.MaxGroup != 20 || cfg.MaxAwake != 10 {
		t.Errorf("Idle is %v, MaxGroup %d, MaxAwake %d", cfg.Idle, cfg.MaxGroup, cfg.MaxAwake)
	}
}

func TestBind_NamesTheInvalidVariable(t *testing.T) {
	for text, args := range map[string][]string{
		`"soon" is not a duration; write it as 500ms, 30s or 1h`: {"--idle", "soon"},
		`"many" is not a whole number`:                           {"--max-awake", "many"},
		`"1.5" is not a whole number`:                            {"--history-bytes", "1.5"},
		`"-1" is not a whole number of 0 or more`:                {"--starlark-steps", "-1"},
		`"half" is not a number`:                                 {"--weight", "half"},
	} {
		err := bind(t, &settle.WorkerConfig{}, args...)
		if err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), strings.TrimLeft(args[0], "-")) {
			t.Errorf("%v: %v", args, err)
		}
	}
	t.Setenv("SETTLE_IDLE", "soon")
	if err := bind(t, &settle.WorkerConfig{}); err == nil || !strings.HasPrefix(err.Error(), "environment variable SETTLE_IDLE: ") {
		t.Errorf("the variable: %v", err)
	}
}

// Every field of a worker's options is an option with a help text, and no two share a name.
func TestOf_HasEveryField(t *testing.T) {
	names := map[string]bool{}
	paths := map[string]bool{}
	for _, o := range options.Of(&settle.WorkerConfig{}) {
		if names[o.Flag] || !strings.HasSuffix(o.Help, ".") {
			t.Errorf("%s: --%s, %q", o.Path, o.Flag, o.Help)
		}
		names[o.Flag], paths[o.Path] = true, true
	}
	var want func(prefix string, of reflect.Type)
	want = func(prefix string, of reflect.Type) {
		for f := range of.Fields() {
			if f.Anonymous {
				want(prefix, f.Type)
			} else if !paths[prefix+f.Name] {
				t.Errorf("%s%s is not an option; does it have a help tag?", prefix, f.Name)
			}
		}
	}
	want("", reflect.TypeFor[worker.Options]())
	if !paths["Live.MaxGets"] || !paths["Starlark.Steps"] || !paths["HTTP.WriteTimeout"] {
		t.Errorf("the options are %v", paths)
	}
}

func TestOf_NamesAndDefaults(t *testing.T) {
	got := map[string]options.Option{}
	for _, o := range options.Of(&settle.Config{}) {
		got[o.Path] = o
	}
	for path, want := range map[string][3]string{
		"MemberTTL":         {"member-ttl", "SETTLE_MEMBER_TTL", "15s"},
		"HistoryBytes":      {"history-bytes", "SETTLE_HISTORY_BYTES", "1073741824"},
		"History":           {"history", "SETTLE_HISTORY", ""},
		"MaxCommitBytes":    {"max-commit-bytes", "SETTLE_MAX_COMMIT_BYTES", ""},
		"DocumentWait":      {"document-wait", "SETTLE_DOCUMENT_WAIT", "5m"},
		"Live.MaxWatches":   {"max-watches", "SETTLE_MAX_WATCHES", "10000"},
		"Starlark.Steps":    {"starlark-steps", "SETTLE_STARLARK_STEPS", "1000000"},
		"HTTP.WriteTimeout": {"http-write-timeout", "SETTLE_HTTP_WRITE_TIMEOUT", "10s"},
	} {
		if o := got[path]; o.Flag != want[0] || o.Env != want[1] || o.Default != want[2] {
			t.Errorf("%s: --%s, %s, default %q; want %v", path, o.Flag, o.Env, o.Default, want)
		}
	}
}

// The options of a connection have the same flags as in the commands. bus.Connect reads NATS_URL itself.
func TestBind_TakesTheOptionsOfAConnection(t *testing.T) {
	t.Setenv("SETTLE_PREFIX", "shop")
	t.Setenv("SETTLE_NATS", "nats://nowhere")
	var cfg bus.Config
	if err := bind(t, &cfg, "--partitions", "4", "--creds", "mine.creds", "--horizon", "24h"); err != nil {
		t.Fatal(err)
	}
	if cfg.Prefix != "shop" || cfg.Partitions != 4 || cfg.Creds != "mine.creds" || cfg.Horizon != 24*time.Hour || cfg.URL != "" {
		t.Errorf("the configuration is %+v", cfg)
	}
	if err := bind(t, &cfg, "--nats", "nats://here"); err != nil || cfg.URL != "nats://here" {
		t.Errorf("the server is %q, %v", cfg.URL, err)
	}
}
