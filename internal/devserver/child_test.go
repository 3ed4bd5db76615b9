package devserver

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func environment(variables []string) func(string) string {
	return func(name string) string {
		for _, v := range variables {
			if value, is := strings.CutPrefix(v, name+"="); is {
				return value
			}
		}
		return ""
	}
}

// The process connects to the dev server, whatever the environment of that one says.
func TestChild_IsAWorkerOfTheDevServer(t *testing.T) {
	if _, is := ChildOf(environment([]string{"NATS_URL=nats://elsewhere"})); is {
		t.Error("a process that settle dev does not run")
	}
	env := Child{NATS: "nats://here", HTTP: "127.0.0.1:1"}.Environment([]string{"NATS_URL=nats://elsewhere", "NATS_CONTEXT=other", "HOME=/"})
	if c, is := ChildOf(environment(env)); !is || c.NATS != "nats://here" || c.HTTP != "127.0.0.1:1" {
		t.Errorf("it is %+v, %v", c, is)
	}
	if environment(env)("NATS_CONTEXT") != "" || !slices.Contains(env, "HOME=/") || !slices.Contains(env, "SETTLE_ID=w1") {
		t.Errorf("its environment is %q", env)
	}
}

// A process that is asked to stop does so in good order; one that loses its dev server ends like that.
func TestChild_StopsWhenItIsAskedAndEndsWithTheDevServer(t *testing.T) {
	for said, orphan := range map[string]bool{StopLine: false, "": true, "st": true} {
		in, out := io.Pipe()
		orphaned := make(chan struct{})
		ctx := Child{}.Context(t.Context(), in, func() { close(orphaned) })
		if ctx.Err() != nil {
			t.Error("it ends before its input")
		}
		_, _ = io.WriteString(out, said) // the reader reads all
		out.Close()
		<-ctx.Done()
		select {
		case <-orphaned:
			if !orphan {
				t.Error("it ends at once although it was asked to stop")
			}
		default:
			if orphan {
				t.Errorf("it goes on without its dev server, which has sent %q", said)
			}
		}
	}
}

func TestDescribe_OnlyWhenAsked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "described")
	of := func(space string) ([]byte, error) { return []byte(space), nil }
	wrong := func(string) ([]byte, error) { return nil, errors.New("no") }
	asked := Describing(file, "home")
	if only, err := Describe(environment(nil), of); only || err != nil {
		t.Errorf("not asked: %v, %v", only, err)
	}
	only, err := Describe(environment(asked), of)
	if text, _ := os.ReadFile(file); !only || err != nil || string(text) != "home" {
		t.Errorf("asked: %v, %v, %q", only, err, text)
	}
	if only, err := Describe(environment(asked), wrong); !only || err == nil {
		t.Errorf("asked for what is wrong: %v, %v", only, err)
	}
	if only, err := Describe(environment(append(asked, "SETTLE_DEV=1")), wrong); only || err != nil {
		t.Errorf("of a program that runs: %v, %v", only, err)
	}
}
