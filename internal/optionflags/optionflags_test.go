package optionflags_test

import (
	"errors"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/internal/optionflags"
)

type connection struct {
	NATS   string `name:"nats" bus:"URL"`
	Prefix string `bus:"Prefix" help:"Its own help."`
}

type command struct {
	connection
	Partitions int           `bus:"Partitions"`
	AckTimeout time.Duration `bus:"AckTimeout"`
	Wait       time.Duration
}

func parse(t *testing.T, args ...string) (bus.Config, *kong.Kong) {
	t.Helper()
	var c command
	k, err := kong.New(&c, optionflags.OfBus())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Parse(args); err != nil {
		t.Fatal(err)
	}
	cfg := bus.Config{Name: "client/test", Replicas: 3}
	optionflags.FillBus(&cfg, &c)
	return cfg, k
}

func TestOfBus_FlagsHaveTheVariablesAndDefaultsOfTheirFields(t *testing.T) {
	t.Setenv("SETTLE_PARTITIONS", "4")
	t.Setenv("SETTLE_PREFIX", "shop")
	cfg, k := parse(t, "--nats", "nats://here", "--prefix", "flag")
	if cfg.URL != "nats://here" || cfg.Prefix != "flag" || cfg.Partitions != 4 || cfg.AckTimeout != bus.DefaultAckTimeout || cfg.Replicas != 3 || cfg.Name != "client/test" {
		t.Errorf("the configuration is %+v", cfg)
	}
	for _, f := range k.Model.Flags {
		switch f.Name {
		case "nats":
			if f.Help == "" || len(f.Envs) > 0 {
				t.Errorf("--nats has the help %q, and the variables %v", f.Help, f.Envs)
			}
		case "prefix":
			if f.Help != "Its own help." || f.Default != bus.DefaultPrefix {
				t.Errorf("--prefix has the help %q, and the default %q", f.Help, f.Default)
			}
		}
	}
}

func TestOfBus_RefusesATagWithoutAnOption(t *testing.T) {
	for what, grammar := range map[string]any{
		"a field that does not exist": &struct {
			Color string `bus:"Color"`
		}{},
		"a field that is no option": &struct {
			Password string `bus:"Password"`
		}{},
		"another name": &struct {
			Server string `bus:"URL"`
		}{},
	} {
		if _, err := kong.New(grammar, optionflags.OfBus()); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

// A library names the field that a program in Go sets; a command prints its flag instead.
func TestText_NamesFlagsInPlaceOfFields(t *testing.T) {
	t.Parallel()
	err := errors.New("check bus.Config.URL, NATS_URL or bus.Config.Context; bus.Config.LaneMaxBytes, bus.Config.Unknown")
	if got, want := optionflags.Text(err), "check --nats, NATS_URL or --context; --lane-max-bytes, bus.Config.Unknown"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
