package settle_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
)

// An editor that writes to a space from its own process, beside the worker that owns it. Derived
// documents are computed in the editor at once.
func ExampleSpace_Attach() {
	p := settle.NewProgram("document").
		Compute("words", func(v *settle.View) (settle.Value, error) {
			return settle.ValueOf(v.Get("text").Len())
		})
	p.Handle("append", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Set("text", append(slices.Collect(tx.Get("text").Elements()), ev.Payload))
		return settle.Value{}, nil
	})

	dir, err := os.MkdirTemp("", "settle-attach-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = d.Stop(ctx) }()

	editor, err := d.Client().Space("letter").Attach(ctx, settle.AttachConfig{ID: "editor", Program: p})
	if err != nil {
		log.Fatal(err)
	}
	if err := editor.Observe(ctx, "words"); err != nil {
		log.Fatal(err)
	}
	err = editor.Transact(ctx, "editor of Ann", func(tx *settle.Tx) error {
		tx.Set("text", []string{"Dear", "Bob"})
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	words, err := editor.Get(ctx, "words")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("words:", words)

	_, err = d.Client().Call(ctx, settle.Outgoing{Space: "letter", Stream: "append", ID: settle.ID("e1"), Payload: "!"})
	if err != nil {
		log.Fatal(err)
	}
	var text settle.Value
	err = editor.Transact(ctx, "editor of Ann", func(tx *settle.Tx) error {
		text = tx.Get("text") // on top of all that is in the log; called again after a conflict
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("text:", text)
	if err := editor.Close(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// words: 2
	// text: ["Dear","Bob","!"]
}
