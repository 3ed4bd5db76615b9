package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInit_StarAndGoBehaveAlike(t *testing.T) {
	for _, language := range []string{"star", "go"} {
		t.Run(language, func(t *testing.T) {
			t.Chdir(t.TempDir())
			want(t, 2, `expected "<dir>": a new directory such as door, or . for this one (see settle init `+language+` --help)`, "init", language)
			want(t, 0, "wrote door: README.md, door. | Next:\n  cd door\n", "init", language, "door")
			want(t, 2, "settle: door/README.md exists: nothing was written: use a directory that is empty, or a new one", "init", language, "door")
			want(t, 2, "settle: door/README.md is not a directory: nothing was written", "init", language, "door/README.md")
			want(t, 0, "wrote a/b: | \n  cd a/b\n", "init", language, "a/b")
			want(t, 0, "wrote my door: | \n  cd 'my door'\n", "init", language, "my door")
			want(t, 0, "wrote it's: | \n  cd 'it'\\''s'\n", "init", language, "it's")
			want(t, 0, "wrote 1door: | \n  cd 1door\n", "init", language, "1door")
			want(t, 2, "exists: nothing was written", "init", language, ".")
			if err := os.Mkdir("empty", 0o755); err != nil {
				t.Fatal(err)
			}
			want(t, 0, "wrote empty: ", "init", language, "empty")
			if _, err := os.Stat(filepath.Join("1door", "README.md")); err != nil {
				t.Error(err)
			}
		})
	}
	want(t, 2, "--module PATH", "init", "go", filepath.Join(t.TempDir(), "d"), "--module", "my doors")
	want(t, 2, "(see settle init --help)", "init")
}
