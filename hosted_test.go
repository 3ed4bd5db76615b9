package settle_test

import (
	"context"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

// stepping is a program that counts by a step, and derives from that.
func stepping(step string) program.Source {
	return program.Source{Name: "stepping", Entry: "stepping.star", Files: map[string]string{"stepping.star": `
count = cell("count", {"n": 0})
step = ` + step + `

def add(e):
    count.n += step
    return count.n

handle("add", add)

def double():
    return 2 * count.n

compute("double", double)
`}}
}

// deploy has the spaces of a pattern run a version.
func deploy(t *testing.T, d *settle.Deployment, s program.Source, spaces string) program.Target {
	t.Helper()
	v, err := program.NewVersion(s, "test", "", time.Unix(0, 0))
	if err == nil {
		v, _, err = program.Publish(t.Context(), d.Bus(), v)
	}
	if err == nil {
		_, err = program.Decide(t.Context(), d.Bus(), spaces, func(program.Rule) (program.Choice, error) {
			return program.Choice{Target: v.Target(), At: time.Unix(1, 0)}, nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.Target()
}

func hosting(t *testing.T, programs settle.Programs) *settle.Deployment {
	t.Helper()
	return hostingWith(t, settle.Config{Hosted: true, Programs: programs, Workers: 2})
}

func hostingWith(t *testing.T, cfg settle.Config) *settle.Deployment {
	t.Helper()
	cfg.Server, cfg.Bus = embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval}, bus.Config{Partitions: 2}
	d, err := settle.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return d
}

func call(t *testing.T, d *settle.Deployment, space, stream, id string) *model.Receipt {
	t.Helper()
	r, err := d.Client().Call(t.Context(), settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(id)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHosted_AnEventWaitsForItsProgramAndADeploymentKeepsTheDocuments(t *testing.T) {
	d := hosting(t, nil)
	if _, err := d.Client().Send(t.Context(), settle.Outgoing{Space: "a", Stream: "add", ID: settle.ID("e0")}); err != nil {
		t.Fatal(err)
	}
	deploy(t, d, stepping("1"), "*")
	if r, err := d.Client().Space("a").Await(t.Context(), "add", settle.ID("e0")); err != nil || r.Result.String() != "1" {
		t.Fatalf("receipt %+v, %v", r, err)
	}
	deploy(t, d, stepping("10"), "a")
	want := 1
	for i := 1; ; i++ { // workers hear of it in their own time
		got, _ := call(t, d, "a", "add", settle.NewID().String()).Result.AsInt()
		if got == int64(want+10) {
			break
		}
		if want++; got != int64(want) || i > 10_000 {
			t.Fatalf("event %d: count %d, want %d or %d", i, got, want, want+9)
		}
	}
	if got, _ := call(t, d, "b", "add", "e1").Result.AsInt(); got != 1 {
		t.Errorf("space b, which the rule is not about, counts %d", got)
	}
}

// A deployed program is stopped at the limits of the workers.
func TestHosted_TheLimitsAreThoseOfTheConfiguration(t *testing.T) {
	for steps, want := range map[uint64]model.Outcome{0: model.Handled, 1000: model.Failed} {
		d := hostingWith(t, settle.Config{Hosted: true, Workers: 1, Starlark: star.Limits{Steps: steps}})
		deploy(t, d, program.Source{Name: "long", Entry: "long.star", Files: map[string]string{"long.star": `
def go(e):
    for i in range(1000):
        pass

handle("go", go)
`}}, "*")
		if r := call(t, d, "s", "go", "e1"); r.Outcome != want {
			t.Errorf("with %d steps it ends as %v: %s", steps, r.Outcome, r.Error)
		}
	}
}

func TestHosted_ProgramsOfTheExecutableAreAskedFirst(t *testing.T) {
	own := settle.NewProgram("own").Handle("add", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		return settle.ValueOf("own")
	})
	d := hosting(t, func(space string) *settle.Program {
		if space == "go" {
			return own
		}
		return nil
	})
	deploy(t, d, stepping("1"), "*")
	if got := call(t, d, "go", "add", "e1").Result.String(); got != `"own"` {
		t.Errorf("space go answers %s", got)
	}
	if got := call(t, d, "a", "add", "e1").Result.String(); got != "1" {
		t.Errorf("space a answers %s", got)
	}
}
