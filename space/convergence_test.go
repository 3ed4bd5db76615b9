package space

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// refuseOnly refuses the append under way, because of a commit that this runtime does not know yet.
func (h *host) refuseOnly(writes ...model.Write) {
	h.t.Helper()
	if h.inFlight == nil {
		h.t.Fatalf("nothing is under way")
	}
	h.w.put(home, writes...)
	if seq := h.w.append(home, h.inFlight); seq != 0 {
		h.t.Fatalf("accepted")
	}
	h.inFlight = nil
	h.core.Refuse()
}

// hear delivers a foreign commit, and runs until nothing is left to do.
func (h *host) hear(writes ...model.Write) {
	h.t.Helper()
	h.w.put(home, writes...)
	h.integrate()
	h.run()
}

// The entries that are read after a refusal may be unreadable, or missing for a while. The work is kept until
// they arrive, and nothing runs on a state that is known to be stale.
func TestK04_ARefusedRunIsRepeatedHoweverLongTheCatchUpTakes(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).sum("total", "a").Program)
	h.observe("total")
	h.run()
	w.put(home, put("a", 5))
	h.integrate()
	h.settle()
	h.refuseOnly(put("other", 1))
	before := h.core.Stats().Runs
	for _, data := range []string{"", "nonsense", "{}"} {
		if err := h.core.Integrate(model.LogEntry{Space: home, Seq: w.head(home), Data: []byte(data)}); err == nil {
			t.Errorf("%q is integrated", data)
		}
		if r := h.settle(); r.Append != nil || r.More || h.core.Idle() {
			t.Errorf("after %q the space continues, or is idle: %+v", data, r)
		}
	}
	h.advance(1e12)
	h.settle()
	if got := h.core.Stats().Runs; got != before {
		t.Errorf("%d runs while it was known to be stale", got-before)
	}
	h.integrate()
	h.core.Resume()
	h.run()
	wantValue(t, h, "total", "5")
	wantValue(t, h, "other", "1")
	if got := w.replica(home).Doc("total").Value.String(); got != "5" {
		t.Errorf("the log says %s", got)
	}
	if got := h.core.Stats().Runs; got != before+2 { // total, and its observer
		t.Errorf("%d runs after one refusal", got-before)
	}
}

// The log contains the causes of a run, even if it had to be repeated several times.
func TestD07_TheLogHasTheCausesOfARunThatWasRefused(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", newProgram(t).sum("total", "a", "b").Program)
	h.observe("total")
	h.run()
	w.put(home, put("a", 5), put("b", 6))
	h.integrate()
	h.settle()
	for range 3 {
		h.refuseOnly(put("other", w.seq))
		h.integrate()
		h.core.Resume()
		h.settle()
	}
	h.run()
	h.hear(put("b", 7))
	var causes []string
	for _, e := range w.logs[home] {
		for _, tx := range w.commit(e).Txs {
			if tx.By == "compute total" {
				causes = append(causes, strings.Join(tx.Causes, " "))
			}
		}
	}
	if want := []string{"", "a b", "b"}; !slices.Equal(causes, want) {
		t.Errorf("causes in the log are %q, want %q", causes, want)
	}
}

// large returns a program with a computation a that returns n bytes, and a reader of it.
func large(t *testing.T) program {
	return newProgram(t).compute("blob", func(tx *Tx) any {
		return strings.Repeat("x", int(num(tx.Get("n"))))
	}).compute("side", func(tx *Tx) any { return num(tx.Get("n")) + 1 })
}

// An output that is too large for any commit breaks a rule permanently. The run is not repeated until one of
// its reads has changed, and uses none of the budget for transient errors.
func TestK06_K12_AnOutputOverTheLimitIsAFailedRun(t *testing.T) {
	w := newWorld(t)
	h := w.owner("w1", large(t).Program)
	var told []ErrorInfo
	h.core.OnError(func(i ErrorInfo) { told = append(told, i) })
	h.observe("blob")
	h.observe("side")
	h.hear(put("n", 10))
	h.hear(put("n", 1<<20))
	wantValue(t, h, "side", "1048577")
	if got := len(h.core.Value("blob").String()); got != 12 {
		t.Errorf("the previous output is gone: %d bytes", got)
	}
	if len(told) != 1 || told[0].Node != "blob" || told[0].Transient || !strings.Contains(told[0].Err.Error(), "bytes") {
		t.Fatalf("errors told: %+v", told)
	}
	n := h.core.graph.byID["blob"]
	if n.status != Clean || n.more.retries != 0 || n.runs != 2 {
		t.Errorf("the node is %s after %d runs, with %d retries", n.status, n.runs, n.more.retries)
	}
	h.advance(1e12)
	h.run()
	if n.runs != 2 {
		t.Errorf("%d runs, although nothing has changed", n.runs)
	}
	h.hear(put("n", 20))
	if got := len(h.core.Value("blob").String()); got != 22 || n.runs != 3 {
		t.Errorf("%d bytes after %d runs", got, n.runs)
	}
}

// A result that is not a value, or that panics while it is converted to one, is a failed run as well.
func TestK12_AResultThatIsNoValueIsAFailedRun(t *testing.T) {
	for name, bad := range map[string]any{
		"channel":  make(chan int),
		"function": func() {},
		"panic":    panics{},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := newProgram(t)
			p.add(NodeSpec{ID: "copy", Kind: Effect, Writes: []Address{{Doc: "out"}}, Run: func(tx *Tx) (model.Value, error) {
				v := any(num(tx.Get("n")))
				if num(tx.Get("bad")) > 0 {
					v = bad
				}
				tx.Set("out", v)
				return model.Value{}, nil
			}})
			h := w.owner("w1", p.Program)
			var told []ErrorInfo
			h.core.OnError(func(i ErrorInfo) { told = append(told, i) })
			h.hear(put("n", 1))
			wantValue(t, h, "out", "1")
			h.hear(put("bad", 1))
			if len(told) != 1 || told[0].Node != "copy" || told[0].Transient {
				t.Fatalf("errors told: %+v", told)
			}
			wantValue(t, h, "out", "1")
			h.hear(put("bad", 0), put("n", 2))
			wantValue(t, h, "out", "2")
			if len(told) != 1 {
				t.Errorf("errors told: %+v", told)
			}
		})
	}
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

// Evicting a pair for lack of room ends its episode like any other reason, and reports it.
func TestY05_Y07_EvictingAPairReleasesItsNode(t *testing.T) {
	w := newWorld(t)
	p := newProgram(t)
	for _, doc := range []string{"d", "e"} {
		p.add(NodeSpec{ID: "fix-" + doc, Kind: Effect, Writes: []Address{{Doc: doc}}, Run: func(tx *Tx) (model.Value, error) {
			tx.Set(doc, num(tx.Get(doc))+1)
			return model.Value{}, nil
		}})
	}
	var told []string
	h := w.owner("w1", p.Program, func(c *Config) {
		c.Trace.Echo = func(i EchoInfo) { told = append(told, i.Node+" "+i.Doc+" "+i.Cleared) }
	})
	h.core.runner.echoes.breaker = newEchoBreaker(echoSettings{pairs: 1})
	var errs []error
	h.core.OnError(func(i ErrorInfo) { errs = append(errs, i.Err) })
	h.run()
	for i := range 12 {
		h.hear(put("d", 100*i+50))
	}
	until := func() int64 { return int64(h.core.graph.byID["fix-d"].eligibleAt()) }
	if until() == 0 {
		t.Fatal("twelve echoes, but nothing is held back")
	}
	h.hear(put("e", 1000))
	if want := []string{"fix-d d ", "fix-d d evicted"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	if until() != 0 {
		t.Error("the node is held back by a pair that was evicted")
	}
	var echo *EchoError
	if len(errs) != 1 || !errors.As(errs[0], &echo) || *echo != (EchoError{Node: "fix-d", Doc: "d"}) {
		t.Errorf("errors told: %v", errs)
	}
}
