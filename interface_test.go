package settle_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/collection"
	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/model"
)

type crate struct {
	Weight float64  `json:"weight"`
	Notes  []string `json:"notes,omitempty"`
	Within *crate   `json:"within"`
}

var (
	crates  = settle.NewRows[crate]("crates")
	heavy   = settle.NewDerived[int]("heavy")
	pack    = settle.NewRequest[crate, string]("pack")
	nightly = settle.NewStream[cron.Tick]("nightly")
)

func depot() *settle.Program {
	p := settle.NewProgram("depot").Documents(crates)
	pack.Handle(p, func(*settle.Tx, crate) (string, error) { return "", nil })
	settle.NewTrigger("empty").Handle(p, func(*settle.Tx) error { return nil })
	settle.NewStream[int]("within").Internal().Handle(p, func(*settle.Tx, int) error { return nil })
	p.Handle("raw", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil })
	p.Handle(model.Undelivered, func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, nil })
	p.Cron("nightly", "0 3 * * *", nightly)
	nightly.Handle(p, func(*settle.Tx, cron.Tick) error { return nil })
	heavy.Compute(p, func(*settle.View) (int, error) { return 0, errors.New("none") })
	return p
}

// What clients are generated from: the streams that they send events of, and documents, with their types in JSON.
func TestProgram_InterfaceHasStreamsAndDocuments(t *testing.T) {
	t.Parallel()
	got, err := depot().Interface()
	want := `{"name":"depot","streams":[` +
		`{"name":"pack","payload":{"kind":"named","name":"crate"},"result":{"kind":"str"}},` +
		`{"name":"empty","payload":{"kind":"none"},"result":{"kind":"none"}},{"name":"within","payload":{"kind":"int"},"result":{"kind":"none"},"internal":true},{"name":"raw"}],` +
		`"documents":[{"name":"crates","type":{"kind":"dict","elem":{"kind":"named","name":"crate"}}},` +
		`{"name":"heavy","derived":true,"type":{"kind":"int"}}],` +
		`"types":{"crate":{"kind":"object","fields":[` +
		`{"name":"notes","type":{"kind":"list","elem":{"kind":"str"}},"optional":true},` +
		`{"name":"weight","type":{"kind":"float"}},` +
		`{"name":"within","type":{"kind":"named","name":"crate","nullable":true},"optional":true}]}}}`
	if err != nil || string(got) != want {
		t.Errorf("%v: it is\n%s\nwant\n%s", err, got, want)
	}
	if err := depot().Documents(crates.At("a")).Err(); err == nil || !strings.Contains(err.Error(), "no whole document") {
		t.Errorf("a row counts as a document: %v", err)
	}
	if err := depot().Documents(crates.In("other")).Err(); err == nil {
		t.Error("a document of another space counts as one of the program")
	}
}

// A collection is the documents of a pattern, and no node writes that.
func TestProgram_DocumentsTakesCollections(t *testing.T) {
	t.Parallel()
	loads := collection.New[crate]("load-")
	got, err := settle.NewProgram("depot").Documents(loads).Interface()
	if want := `"documents":[{"name":"load-*","type":{"kind":"named","name":"crate"}}]`; err != nil || !strings.Contains(string(got), want) {
		t.Errorf("%v: %s\nwant %s", err, got, want)
	}
	into := settle.NewProgram("depot").ComputeInto("sum", func(*settle.Draft) error { return nil }, []settle.Place{loads})
	if err := into.Err(); err == nil || !strings.Contains(err.Error(), "load-*") {
		t.Errorf("a computation writes a whole collection: %v", err)
	}
}

// A program is described for the space that is asked about, in place of being run.
func TestPrograms_AreDescribedWhenTheEnvironmentAsks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "described.json")
	env := map[string]string{"SETTLE_DESCRIBE": file, "SETTLE_DESCRIBE_SPACE": "north"}
	programs := settle.Programs(func(space string) *settle.Program {
		if space == "north" {
			return depot()
		}
		return nil
	})
	getenv := func(name string) string { return env[name] }
	if only, err := programs.Describe(getenv); !only || err != nil {
		t.Fatalf("%v, %v", only, err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"name":"depot"`) {
		t.Errorf("%s, %v", text, err)
	}
	env["SETTLE_DESCRIBE_SPACE"] = "south"
	if _, err := programs.Describe(getenv); err == nil || !strings.Contains(err.Error(), `space "south" has no program`) {
		t.Errorf("a space without a program: %v", err)
	}
	if _, err := settle.Programs(nil).Describe(getenv); err == nil {
		t.Error("no program at all")
	}
	if _, err := settle.Always(broken()).Describe(getenv); err == nil {
		t.Error("a program with a mistake")
	}
}
