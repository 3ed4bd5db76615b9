package settle_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
)

var importing = settle.NewRequest[string, int]("import")

// importFile stands for work that may take minutes, and that respects a context.
func importFile(tx *settle.Tx, file string) (int, error) {
	_, limited := settle.Context(tx).Deadline()
	tx.Log("importing", "file", file, "limited", limited)
	return len(file), settle.Context(tx).Err()
}

// A handler with a longer limit than the others.
func ExampleWithin() {
	p := settle.NewProgram("archive")
	importing.Handle(p, importFile, settle.Within(5*time.Minute))

	dir, err := os.MkdirTemp("", "settle-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	d, err := settle.Start(ctx, settle.Config{
		Programs: settle.Always(p), Server: embedded.Config{StoreDir: dir},
		OnConsole: func(i settle.ConsoleInfo) { fmt.Println(append([]any{i.Message}, i.Args...)...) },
	})
	if err != nil {
		log.Fatal(err)
	}
	n, err := importing.Call(ctx, d.Client().Space("box1"), settle.ID("i1"), "letters.txt")
	fmt.Println(n, err)
	if err := d.Stop(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// importing file letters.txt limited true
	// 11 <nil>
}
