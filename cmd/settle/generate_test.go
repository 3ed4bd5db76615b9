package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/clients/typescript"
)

// The types are printed, or written with the client, again and again; a file of another origin is left alone.
func TestGenerate_WritesTheTypesAndTheClient(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "lamp.star", "def f(e):\n    return 1\n\nhandle(\"switch\", f, payload = {\"on\": bool})\n")
	program := filepath.Join(dir, "lamp.star")
	want(t, 0, "from 'settle-client' | switch: { payload: { on: boolean }; result: Json }", "generate", "ts", program)
	want(t, 0, "package lamp | `json:\"on\"`", "generate", "go", program)
	want(t, 0, "package light", "generate", "go", program, "--package", "light")
	for range 2 {
		want(t, 0, "wrote", "generate", "ts", program, "--out", filepath.Join(dir, "web"))
	}
	types, err := os.ReadFile(filepath.Join(dir, "web", "lamp.ts"))
	if err != nil || !strings.Contains(string(types), "from './settle-client/index.js'") {
		t.Errorf("%v: %s", err, types)
	}
	t.Run("a program in Go", func(t *testing.T) {
		want(t, 0, "wrote "+filepath.Join(dir, "door"), "init", "go", filepath.Join(dir, "door"))
		want(t, 0, "export interface House extends Program | open: { payload: Visit; result: number } | door: Door", "generate", "ts", filepath.Join(dir, "door"))
		want(t, 1, "has no program in Go", "generate", "ts", dir)
	})
	shipped, err := typescript.Dist.ReadFile("dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "web", "settle-client", "index.js")); err != nil || string(got) != string(shipped) {
		t.Errorf("%v: %s", err, got)
	}
	want(t, 0, "wrote", "generate", "go", program, "--out", filepath.Join(dir, "lamp"))
	if err := os.Mkdir(filepath.Join(dir, "mine"), 0o700); err != nil {
		t.Fatal(err)
	}
	file(t, dir, "mine/lamp.ts", "mine")
	want(t, 1, "lamp.ts was not generated: it is left as it is; name another directory", "generate", "ts", program, "--out", filepath.Join(dir, "mine"))
	if _, err := os.Stat(filepath.Join(dir, "mine", "settle-client")); !os.IsNotExist(err) {
		t.Error("the client was written all the same")
	}
	want(t, 2, "is not the name of a package", "generate", "go", program, "--package", "a-b")
	file(t, dir, "broken.star", "handle(nosuch)\n")
	want(t, 1, "nosuch", "generate", "ts", filepath.Join(dir, "broken.star"))
}
