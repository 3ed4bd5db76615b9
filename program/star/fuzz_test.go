package star

import (
	"runtime"
	"strings"
	"testing"
)

// FuzzProgram compiles and runs any input: no program may end the process, exceed its memory limit, or
// have another result the second time.
func FuzzProgram(f *testing.F) {
	for _, h := range hostile {
		f.Add("c = cell('c', {})\ndef h(e):\n    " + h.body + "\nhandle('h', h)\n")
	}
	for _, h := range hostileSources {
		if len(h.text) < 10_000 {
			f.Add(h.text)
		}
	}
	f.Add(airport)
	f.Add(strings.ReplaceAll(ten, `load("lib.star", "twice")`, "def twice(x): return x"))
	limits := Limits{Steps: 20_000, Memory: 2 << 20, Output: 16 << 10}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 20_000 {
			return
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		first, ok := outcome(t, text, limits)
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 200 {
			t.Errorf("it has allocated %d MiB", used)
		}
		if second, _ := outcome(t, text, limits); ok && second != first {
			t.Errorf("first\n%s\nthen\n%s", first, second)
		}
	})
}

// outcome returns the state of a program after each of its handlers had an event and each of its nodes
// was observed.
func outcome(t *testing.T, text string, limits Limits) (string, bool) {
	p, err := Compile(source(text), Options{Limits: limits})
	if err != nil {
		return err.Error(), true
	}
	if len(p.Nodes()) > 50 || len(p.Streams()) > 50 {
		return "", false
	}
	s := newStage(t, p.Space())
	var b strings.Builder
	for _, stream := range p.Streams() {
		rc := s.send(stream, map[string]any{"n": 1, "s": "text", "l": []any{1, 2, "x"}})
		b.WriteString(stream + " " + string(rc.Outcome) + " " + rc.Error + " " + rc.Result.String() + "\n")
	}
	for _, n := range p.Nodes() {
		if n.Output != "" {
			s.observe(n.Output)
			b.WriteString(n.ID + " " + n.Fingerprint + " " + s.doc(n.Output) + "\n")
		}
	}
	for _, line := range s.logged {
		b.WriteString(line + "\n")
	}
	if strings.Contains(b.String(), "panicked") {
		t.Errorf("a run panicked:\n%s", b.String())
	}
	return b.String(), true
}
