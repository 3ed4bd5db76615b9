package settle_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
)

// notebook keeps what it is sent, and derives from it.
func notebook() *settle.Program {
	p := settle.NewProgram("notebook")
	note := settle.NewCell[string]("note")
	settle.NewRequest[string, string]("write").Handle(p, func(tx *settle.Tx, text string) (string, error) {
		note.Set(tx, text)
		return text, nil
	})
	return p
}

// kept runs a server in a directory, has a space write a text unless it is empty, and returns what the space has.
func kept(t *testing.T, dir, config, text string) (string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(name, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(notebook()), Server: embedded.Config{StoreDir: dir, ConfigFile: name, Fsync: embedded.FsyncInterval},
	})
	if err != nil {
		return "", err
	}
	s := d.Client().Space("mine")
	if text != "" {
		if _, err = settle.NewRequest[string, string]("write").Call(t.Context(), s, settle.ID("w1"), text); err != nil {
			return "", errors.Join(err, d.Stop(t.Context()))
		}
	}
	found, _, err := s.Get(t.Context(), "note")
	has, _ := found.AsString()
	return has, errors.Join(err, d.Stop(t.Context()))
}

// holds reports whether a file of a directory has a text.
func holds(t *testing.T, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A server whose configuration has a key stores events, receipts and documents encrypted, and has them again with the key.
func TestAtRest_WhatIsStoredIsEncryptedWithTheKeyOfTheServer(t *testing.T) {
	t.Parallel()
	const listen = `listen: "127.0.0.1:-1"` + "\n"
	const secret = "Zk7q-what-only-the-owner-reads-Wm3x"
	const encrypted = listen + `jetstream { cipher: aes, key: "a key of this test" }`
	plain, dir := t.TempDir(), t.TempDir()
	if _, err := kept(t, plain, listen, secret); err != nil {
		t.Fatal(err)
	}
	if !holds(t, plain, secret) {
		t.Error("without a key the text is in no file; this test shows nothing")
	}
	if _, err := kept(t, dir, encrypted, secret); err != nil {
		t.Fatal(err)
	}
	if holds(t, dir, secret) {
		t.Error("with a key, a file has the text")
	}
	if found, err := kept(t, dir, encrypted, ""); err != nil || found != secret {
		t.Errorf("started again, the space has %q, %v", found, err)
	}
	for _, config := range []string{listen, strings.Replace(encrypted, "a key", "another key", 1)} {
		if found, err := kept(t, dir, config, ""); !errors.Is(err, embedded.ErrEncrypted) {
			t.Errorf("with another key or none: %q, %v", found, err)
		}
	}
	if found, err := kept(t, dir, encrypted, ""); err != nil || found != secret {
		t.Errorf("with its key again, the space has %q, %v", found, err)
	}
}
