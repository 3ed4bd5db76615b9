package settle_test

import (
	"fmt"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

// Thermostat is a document.
type Thermostat struct {
	Room   string  `json:"room"`
	Target float64 `json:"target"`
	Actual float64 `json:"actual"`
}

// A cell is a document that handlers write. Or sets its value before the first write.
func ExampleNewCell() {
	thermostat := settle.NewCell[Thermostat]("thermostat").Or(Thermostat{Room: "kitchen", Target: 20})
	set := settle.NewRequest[float64, Thermostat]("set")

	p := settle.NewProgram("heating")
	set.Handle(p, func(tx *settle.Tx, target float64) (Thermostat, error) {
		thermostat.Update(tx, func(t *Thermostat) { t.Target = target })
		return thermostat.Get(tx), nil
	})

	home := settletest.New(settletest.Must, p).Space("home")
	fmt.Println(settletest.Call(home, set, 21.5))
	fmt.Println(home.Get("thermostat")) // as any NATS client sees it
	// Output:
	// {kitchen 21.5 0}
	// {"actual":0,"room":"kitchen","target":21.5}
}

// Decode converts a value obtained elsewhere, such as from Space.GetCurrent, into the Go type of a
// cell: as Get reads it, with an error that names the location.
func ExampleCell_decode() {
	thermostat := settle.NewCell[Thermostat]("thermostat").Or(Thermostat{Room: "kitchen", Target: 20})
	for _, document := range []any{map[string]any{"room": "attic"}, map[string]any{"target": "warm"}} {
		value, err := settle.ValueOf(document)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(thermostat.Decode(value))
	}
	fmt.Println(thermostat.Decode(settle.Value{})) // there is no value
	// Output:
	// {attic 0 0} <nil>
	// { 0 0} read thermostat: /target: a string is here; a number is wanted
	// {kitchen 20 0} <nil>
}

// A field is a part of a cell. Its readers run again when it changes, but not when other parts do.
func ExampleField() {
	thermostat := settle.NewCell[Thermostat]("thermostat")
	target := settle.Field[float64](thermostat, "target")
	actual := settle.Field[float64](thermostat, "actual")
	label := settle.NewDerived[string]("label")
	measure := settle.NewStream[float64]("measure")

	p := settle.NewProgram("heating")
	measure.Handle(p, func(tx *settle.Tx, degrees float64) error {
		actual.Set(tx, degrees)
		return nil
	})
	label.Compute(p, func(v *settle.View) (string, error) {
		return fmt.Sprintf("to be %.1f", target.Get(v)), nil
	})

	home := settletest.New(settletest.Must, p).Space("home")
	thermostat.Set(home, Thermostat{Target: 20})
	settletest.Watch(home, label)
	settletest.Call(home, measure, 18.0)
	settletest.Call(home, measure, 19.0)
	fmt.Println(label.Get(home), "after", home.Runs("label"), "run")
	// Output:
	// to be 20.0 after 1 run
}

// Rows are a document of rows by key. The keys are one dependency, each row another.
func ExampleNewRows() {
	stock := settle.NewRows[int]("stock")
	items := settle.NewDerived[[]string]("items")
	deliver := settle.NewRequest[string, int]("deliver")

	p := settle.NewProgram("shop")
	deliver.Handle(p, func(tx *settle.Tx, item string) (int, error) {
		stock.Update(tx, item, func(n *int) { *n++ })
		return stock.Get(tx, item), nil
	})
	items.Compute(p, func(v *settle.View) ([]string, error) { return stock.Keys(v), nil })

	shop := settletest.New(settletest.Must, p).Space("shop")
	seen := settletest.Watch(shop, items)
	for _, item := range []string{"pear", "apple", "pear"} {
		settletest.Call(shop, deliver, item)
	}
	fmt.Println(stock.Get(shop, "pear"), "pears;", seen.Values(), "after", shop.Runs("items"), "runs")
	// Output:
	// 2 pears; [[] [pear] [apple pear]] after 3 runs
}

// A link is a value that points to a document, of this space or another. A node that follows it
// runs again when it points elsewhere, or when the document changes.
func ExampleRef() {
	type Task struct {
		Title string              `json:"title"`
		Owner settle.Ref[*string] `json:"owner"`
	}
	name := settle.NewCell[*string]("name")
	task := settle.NewCell[Task]("task")
	line := settle.NewDerived[string]("line")

	p := settle.NewProgram("board")
	line.Compute(p, func(v *settle.View) (string, error) {
		t := task.Get(v)
		owner := t.Owner.Get(v)
		if owner == nil {
			return t.Title + ": no owner", nil
		}
		return t.Title + ": " + *owner, nil
	})

	w := settletest.New(settletest.Must, p)
	ann, board := "Ann", w.Space("board")
	name.Set(w.Space("user-17"), &ann)
	task.Set(board, Task{Title: "paint the fence"})
	seen := settletest.Watch(board, line)
	task.Update(board, func(t *Task) { t.Owner = name.In("user-17").Ref() })
	ann = "Anna"
	name.Set(w.Space("user-17"), &ann)
	for _, l := range seen.Values() {
		fmt.Println(l)
	}
	// Output:
	// paint the fence: no owner
	// paint the fence: Ann
	// paint the fence: Anna
}
