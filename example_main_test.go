package settle_test

import (
	"fmt"

	"github.com/settlehq/settle"
)

// The main function of a program: `go run .` runs it alone, `settle dev` builds and runs it again after each change.
func ExampleMain() {
	lamp := settle.NewCell[bool]("lamp")
	toggle := settle.NewTrigger("toggle")
	p := settle.NewProgram("lamps")
	toggle.Handle(p, func(tx *settle.Tx) error {
		lamp.Update(tx, func(on *bool) { *on = !*on })
		return nil
	})
	settle.Main(settle.Config{Programs: settle.Always(p)})
}

// What clients are generated from: derived documents are known, those that handlers write are named.
func ExampleProgram_Documents() {
	lamp := settle.NewCell[bool]("lamp")
	p := settle.NewProgram("lamps").Documents(lamp)
	text, err := p.Interface()
	fmt.Println(string(text), err)
	// Output: {"name":"lamps","streams":[],"documents":[{"name":"lamp","type":{"kind":"bool"}}]} <nil>
}
