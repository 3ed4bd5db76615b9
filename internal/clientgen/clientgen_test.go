package clientgen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle/internal/clientgen"
	"github.com/settlehq/settle/internal/clientgen/kinds"
	"github.com/settlehq/settle/internal/shape"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

func compile(t *testing.T, file string) *shape.Program {
	t.Helper()
	src, err := program.Read(program.NameOf(file), file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := star.Compile(src, star.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return clientgen.Of(p)
}

func same(t *testing.T, file, got string) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is generated now:\n%s", file, got)
	}
}

// What is generated for all kinds of payloads is a package that compiles, which this test imports, and a module that the tests of the client in
// TypeScript check.
func TestGenerate_AllKindsOfPayloads(t *testing.T) {
	p := compile(t, "testdata/kinds.star")
	text, err := clientgen.Go(p, "")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "kinds/kinds.go", string(text))
	same(t, "../../clients/typescript/test/kinds.ts", clientgen.TypeScript(p, "../dist/index.js"))
	if kinds.AllOfIt.Name() != "all-of-it" || kinds.TotalDocument.Name() != "total" || kinds.Twice.Name() != "twice" {
		t.Error("a name is another one in Go")
	}
}

// Names and texts of a program cannot leave the place that they have in what is generated.
func TestGenerate_TextsStayWhereTheyAre(t *testing.T) {
	file := filepath.Join(t.TempDir(), "odd-1.star")
	source := "\"\"\"Ends */ alert(1) /* here.\"\"\"\ndef f(e):\n    return 1\n\nhandle(\"func\", f, payload = {\"a'b\\n\": str, \"`\": int})\nhandle(\"type\", f, payload = {\"x\": {}})\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	p := compile(t, file)
	ts := clientgen.TypeScript(p, "it's")
	for _, want := range []string{"/** Ends * / alert(1) /* here. */", `'a\'b\u{a}': string`, "'`': number", `from 'it\'s'`, "export interface Odd1 ", "x: Record<string, never>"} {
		if !strings.Contains(ts, want) {
			t.Errorf("%s is not in\n%s", want, ts)
		}
	}
	text, err := clientgen.Go(p, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"package odd1", `Func = settle.NewRequest[map[string]settle.Value, settle.Value]("func")`, "X struct { } `json:\"x\"`"} {
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if _, err := clientgen.Go(p, "a-b"); err == nil {
		t.Error("a package with a name that is none in Go")
	}
}

// A program and its types are never named like what the module imports or is written with.
func TestGenerate_NamesOfTheLanguageAreNotTaken(t *testing.T) {
	object := &shape.Type{Kind: shape.Object}
	for name, own := range map[string]string{"program": "ProgramProgram", "json": "JsonProgram"} { // any order: each on its own
		p := &shape.Program{Name: name, Types: map[string]*shape.Type{"Array": object, "Record": object, "Program": object, "Json": object}}
		ts := clientgen.TypeScript(p, "x")
		for _, want := range []string{"interface " + own + " extends Program ", "type ArrayType = ", "type RecordType = ", "type JsonType = ", "type ProgramType = "} {
			if !strings.Contains(ts, want) {
				t.Errorf("%s is not in\n%s", want, ts)
			}
		}
	}
}

// Clients may not send on an internal stream, so that they do not have it.
func TestGenerate_InternalStreamsAreLeftOut(t *testing.T) {
	number := &shape.Type{Kind: shape.Int}
	p := &shape.Program{Name: "bank", Streams: []shape.Stream{{Name: "pay", Payload: number}, {Name: "credit", Payload: number, Internal: true}}}
	text, err := clientgen.Go(p, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{clientgen.TypeScript(p, "x"), string(text)} {
		if !strings.Contains(text, "pay") || strings.Contains(text, "credit") {
			t.Error(text)
		}
	}
}
