package settle_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/cron"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/space"
)

type order struct {
	Item  string          `json:"item"`
	Count int64           `json:"count"`
	Tags  map[string]bool `json:"tags"`
}

// Declarations are constants of the source: what is wrong with one shows when the process
// starts, in words.
func TestMisuse_ADeclarationPanicsWithWords(t *testing.T) {
	orders := settle.NewCell[order]("orders")
	for _, c := range []struct {
		name    string
		declare func()
		want    []string
	}{
		{"a name that is none", func() { settle.NewCell[int]("a.b") }, []string{`cell "a.b"`, "'.'"}},
		{"no name", func() { settle.NewTrigger("") }, []string{"stream", "empty"}},
		{"a type that is no document", func() { settle.NewDerived[chan int]("c") }, []string{"derived document c", "chan int"}},
		{"a payload that is none", func() { settle.NewStream[func()]("s") }, []string{"payload of stream s", "func()"}},
		{"a field that is not there", func() { settle.Field[int64](orders, "cuont") }, []string{"/cuont of orders", "count", "item"}},
		{"a field of another type", func() { settle.Field[string](orders, "count") }, []string{"/count of orders", "int64", "string"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				got := fmt.Sprint(recover())
				for _, want := range append(c.want, "settle: ") {
					if !strings.Contains(got, want) {
						t.Errorf("it says %q, without %q", got, want)
					}
				}
			}()
			c.declare()
		})
	}
}

// The faults of registrations are collected, and returned by the function that is to run the program.
func TestMisuse_ARegistrationIsAnErrorOfTheProgram(t *testing.T) {
	cell := settle.NewCell[int]("cell")
	total := settle.NewDerived[int]("total")
	totals := settle.NewDerivedRows[int]("totals")
	rows := settle.NewRows[int]("rows")
	compute := func(*settle.View) (int, error) { return 0, nil }
	draft := func(*settle.Draft) error { return nil }
	each := func(*settle.View, settle.Row[int]) (int, error) { return 0, nil }
	for _, c := range []struct {
		name     string
		register func(p *settle.Program)
		want     string
	}{
		{"no function", func(p *settle.Program) { total.Compute(p, nil) }, "the function is nil"},
		{"no handler", func(p *settle.Program) {
			settle.NewRequest[int, int]("s").Handle(p, nil)
		}, "the handler is nil"},
		{"a handler without time", func(p *settle.Program) {
			settle.NewRequest[int, int]("s").Handle(p, func(*settle.Tx, int) (int, error) { return 0, nil }, settle.Within(0))
		}, "stream s: a limit of 0 leaves no time at all; a negative one means no limit"},
		{"two handlers", func(p *settle.Program) {
			s := settle.NewRequest[int, int]("s")
			s.Handle(p, func(*settle.Tx, int) (int, error) { return 0, nil })
			s.Handle(p, func(*settle.Tx, int) (int, error) { return 0, nil })
		}, "a stream has exactly one"},
		{"derived twice", func(p *settle.Program) { total.Compute(p, compute); total.Compute(p, compute) }, "taken"},
		{"a part is no document", func(p *settle.Program) {
			settle.Part[bool](settle.NewDerived[order]("order"), "tags", "big").Compute(p, func(*settle.View) (bool, error) { return true, nil })
		}, "a computation derives a whole document of its own space"},
		{"of another space", func(p *settle.Program) { total.In("other").Compute(p, compute) }, "of its own space"},
		{"derives nothing", func(p *settle.Program) { p.ComputeInto("n", draft, nil) }, "it writes nothing"},
		{"keeps nothing up", func(p *settle.Program) { p.Materialize("n", draft, nil) }, "it writes nothing"},
		{"into another space", func(p *settle.Program) {
			p.ComputeInto("n", draft, []settle.Place{cell.In("other")})
		}, "a space is changed by itself only; send it an event"},
		{"two that write one place", func(p *settle.Program) {
			p.ComputeInto("w1", draft, []settle.Place{cell}).ComputeInto("w2", draft, []settle.Place{cell})
		}, `program shop: computation "w1" writes cell, and computation "w2" writes cell`},
		{"one that writes inside what another writes", func(p *settle.Program) {
			p.Materialize("all", draft, []settle.Place{rows}).ComputeInto("one", draft, []settle.Place{rows.At("k")})
		}, `computation "all" writes rows, and computation "one" writes rows/k`},
		{"one that writes what another derives", func(p *settle.Program) {
			p.ComputeInto("into", draft, []settle.Place{settle.NewCell[int]("total")})
			total.Compute(p, compute)
		}, `computation "into" writes total, and computation "total" writes total`},
		{"one that writes rows that another derives", func(p *settle.Program) {
			totals.Compute(p, settle.Each(rows, each))
			p.Node(space.NodeSpec{
				ID: "n", Kind: space.Computation, Writes: []space.Address{{Doc: "totals", Path: []string{"k"}}},
				Run: func(*settle.Tx) (settle.Value, error) { return settle.Value{}, nil },
			})
		}, `computation "totals" writes totals, and computation "n" writes totals/k`},
		{"a volatile effect", func(p *settle.Program) {
			p.Effect("e", func(*settle.View) error { return nil }, settle.Volatile())
		}, "only the document of Compute can be volatile"},
		{"rows of another space", func(p *settle.Program) { totals.In("other").Compute(p, settle.Each(rows, each)) }, "a space derives its own documents"},
		{"rows with a name that is kept", func(p *settle.Program) {
			settle.NewDerivedRows[int]("a--b").Compute(p, settle.Each(rows, each))
		}, `must not contain "--"`},
		{"rows without a function", func(p *settle.Program) { totals.Compute(p, settle.Each[int, int](rows, nil)) }, "the function is nil"},
		{"an input without Fetch", func(p *settle.Program) {
			total.Compute(p, compute, settle.Using(settle.NewInput[int]("rate")))
		}, `node "total" reads input rate, but nothing fetches it; call its Fetch`},
		{"an input without Fetch, in rows", func(p *settle.Program) {
			totals.Compute(p, settle.Each(rows, each), settle.Using(settle.NewInput[int]("rate")))
		}, `node "totals" reads input rate, but nothing fetches it`},
		{"an input that another one of its name fetches", func(p *settle.Program) {
			settle.NewAction[int, int]("rate").External(p)
			total.Compute(p, compute, settle.Using(settle.NewInput[int]("rate")))
		}, `node "total" reads input rate, but nothing fetches it`},
		{"an action without Perform", func(p *settle.Program) {
			settle.NewAction[int, int]("pay").Done(p, func(*settle.Tx, settle.Task[int, int]) error { return nil })
		}, "action pay has a Done function, but nothing performs it; call its Perform"},
		{"a read that creates a space with no name", func(p *settle.Program) { p.MadeByReads("hall", "a b") }, "made by reads"},
		{"a version that no commit carries", func(p *settle.Program) { p.Version(strings.Repeat("2", 257)) }, "the version has 257 bytes; the limit is 256"},
		{"a cron expression that is none", func(p *settle.Program) {
			p.Cron("hourly", "every hour", settle.NewStream[cron.Tick]("tick"))
		}, `cron "hourly"`},
		{"a cron job that nothing handles", func(p *settle.Program) {
			p.Cron("night", "0 3 * * *", settle.NewStream[cron.Tick]("nightly"))
		}, `program shop: cron "night": there is no handler for stream nightly; call its Handle`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := settle.NewProgram("shop")
			c.register(p)
			if p.Err() == nil || !strings.Contains(p.Err().Error(), c.want) {
				t.Fatalf("the program's error is %v, without %q", p.Err(), c.want)
			}
		})
	}
}

// An input is missing only when everything is registered: Fetch may come after the node that reads. The
// function that is to run a program without it returns the error.
func TestMisuse_AnInputThatNobodyFetchesIsFoundBeforeAnythingRuns(t *testing.T) {
	rate := settle.NewInput[int]("rate")
	total := settle.NewDerived[int]("total")
	p := settle.NewProgram("shop")
	total.Compute(p, func(v *settle.View) (int, error) { return rate.Get(v, "EUR").Value, nil }, settle.Using(rate))

	const want = `program shop: node "total" reads input rate, but nothing fetches it; call its Fetch with this program`
	_, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(p)})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error of Start is %v", err)
	}
	b := membus.NewServer(membus.Config{Partitions: 1}).Connect("c")
	t.Cleanup(b.Close)
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	_, err = c.Space("s").Attach(t.Context(), settle.AttachConfig{ID: "a", Program: p})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error of Attach is %v", err)
	}
	func() {
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("settletest.New says %s", got)
			}
		}()
		settletest.New(settletest.Must, p)
	}()

	rate.Fetch(p, func(context.Context, string) (int, error) { return 2, nil })
	if err := p.Err(); err != nil {
		t.Errorf("with Fetch the error is %v", err)
	}
}

// The handler of a cron job may come after it, and may be an action's.
func TestMisuse_ACronJobsHandlerMayComeLater(t *testing.T) {
	tick := settle.NewStream[cron.Tick]("tick")
	p := settle.NewProgram("shop").Cron("told", "0 3 * * *", settle.NewStream[cron.Tick]("pay"))
	p.Cron("night", "0 3 * * *", tick)
	tick.Handle(p, func(*settle.Tx, cron.Tick) error { return nil })
	settle.NewAction[int, int]("pay").External(p)
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

// What is beside each other, what effects write, and what is wanted of an input may have many writers.
func TestMisuse_WhoWritesBesideOthersIsNotInTheirWay(t *testing.T) {
	rate := settle.NewInput[int]("rate")
	rows := settle.NewRows[int]("rows")
	draft := func(*settle.Draft) error { return nil }
	compute := func(*settle.View) (int, error) { return 0, nil }
	p := settle.NewProgram("shop")
	rate.Fetch(p, func(context.Context, string) (int, error) { return 2, nil })
	p.ComputeInto("a", draft, []settle.Place{rows.At("a"), rows.At("a")}, settle.Using(rate))
	p.ComputeInto("b", draft, []settle.Place{rows.At("b")}, settle.Using(rate))
	settle.NewDerived[int]("total").Compute(p, compute, settle.Using(rate))
	for _, id := range []string{"e", "f"} {
		p.Node(space.NodeSpec{
			ID: id, Kind: space.Effect, Writes: []space.Address{{Doc: "rows"}},
			Run: func(*settle.Tx) (settle.Value, error) { return settle.Value{}, nil },
		})
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

// An empty name is a mistake of the sender, and not the space itself: that is Here.
func TestMisuse_AnEventToNoSpaceFailsItsHandler(t *testing.T) {
	note := settle.NewStream[string]("note")
	p := settle.NewProgram("shop")
	p.Handle("ask", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		to, _ := ev.Payload.AsString()
		note.Send(tx, settle.To(to), "text")
		return settle.Value{}, nil
	})
	note.Handle(p, func(*settle.Tx, string) error { return nil })
	s := settletest.New(t, p).Space("s")
	if rc := s.Send("ask", ""); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "is empty") {
		t.Errorf("the event is %s: %s", rc.Outcome, rc.Error)
	}
	if rc := s.Send("ask", "other"); rc.Outcome != model.Handled {
		t.Errorf("the event is %s: %s", rc.Outcome, rc.Error)
	}
}

// A transaction, view or draft that is kept and used after its call panics in words. In the function of a later call the panic fails
// that call's event; in a goroutine of the application it is the goroutine's.
func TestMisuse_ATransactionThatIsKeptPanicsWithWords(t *testing.T) {
	const want = "valid only during the call"
	cell, double, copied := settle.NewCell[int]("cell"), settle.NewDerived[int]("double"), settle.NewCell[int]("copied")
	set, use, run := settle.NewStream[int]("set"), settle.NewStream[string]("use"), settle.NewTrigger("run")
	kept := map[string]func(){}
	said, ended := make(chan string, 100), make(chan struct{})
	p := settle.NewProgram("shop")
	set.Handle(p, func(tx *settle.Tx, n int) error {
		kept["tx"] = func() { cell.Set(tx, -1) }
		cell.Set(tx, n)
		return nil
	})
	double.Compute(p, func(v *settle.View) (int, error) {
		kept["view"] = func() { cell.Get(v) }
		return 2 * cell.Get(v), nil
	})
	p.Materialize("copy", func(d *settle.Draft) error {
		kept["draft"] = func() { copied.Set(d, -1) }
		copied.Set(d, double.Get(d))
		return nil
	}, []settle.Place{copied})
	use.Handle(p, func(tx *settle.Tx, what string) error {
		cell.Set(tx, 100)
		kept[what]()
		return nil
	})
	run.Handle(p, func(tx *settle.Tx) error {
		cell.Set(tx, 3)
		go func() {
			defer func() { said <- fmt.Sprint(recover()) }()
			<-ended
			cell.Set(tx, -1)
		}()
		return nil
	})
	w := settletest.New(t, p)
	s := w.Space("s")
	settletest.Send(s, set, 2)
	for _, what := range []string{"tx", "view", "draft"} {
		if rc := s.Send("use", what); rc.Outcome != model.Failed || !strings.Contains(rc.Error, want) {
			t.Errorf("with a %s that was kept the event is %s: %s", what, rc.Outcome, rc.Error)
		}
	}
	settletest.Send(s, run, struct{}{})
	close(ended)
	if got := <-said; !strings.Contains(got, want) {
		t.Errorf("the goroutine says %s", got)
	}
	if got := []int{cell.Get(s), double.Get(s), copied.Get(s)}; !slices.Equal(got, []int{3, 6, 6}) {
		t.Errorf("the documents are %v", got)
	}
}

// Each call of MadeByReads adds names to those before; without names, it is about all spaces.
func TestMadeByReads_AddsSpacesToThoseBefore(t *testing.T) {
	t.Parallel()
	p := settle.NewProgram("shop").MadeByReads("hall").MadeByReads("shelf-*", "yard")
	for space, want := range map[string]bool{"hall": true, "shelf-1": true, "yard": true, "hal": false, "shelf": false} {
		if got := p.IsMadeByReads(space); got != want {
			t.Errorf("a read creates %s: %v", space, got)
		}
	}
	if !settle.NewProgram("shop").MadeByReads().IsMadeByReads("x") || settle.NewProgram("shop").IsMadeByReads("x") {
		t.Error("without names it is not about all spaces, or about some without a call")
	}
}
