package console

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/audit"
)

// The fleet shows which worker serves what, a worker's load, and the worker that takes over when one is killed.
func TestFleet_PlacementAndTakeover(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil)), Workers: 2})
	w.send("a", "add", "a1", 1)
	w.until("/fleet", "2 workers serve all 2 partitions")
	text := w.want("/fleet", 200, "w1", "w2", "c1", "served", "What takes time")
	if strings.Count(text, `<tr id="p-`) != 2 {
		t.Error("not each partition has a row")
	}
	w.want("/fleet?worker=w1", 200, "Worker w1", "serving", "Takeover took", "watches", "Drain")
	w.changes("/fleet", func() { w.d.KillWorker("w1") }, "1 worker serves all 2 partitions")
	w.want("/fleet", 200, "w1 gone", "served w2")
}

// A worker is drained from its page: it leaves, and the others serve its partitions. The last one is not drained, and the page says why.
func TestFleet_DrainsAWorker(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil)), Workers: 2})
	w.until("/fleet", "2 workers serve all 2 partitions")
	w.acts("drain", url.Values{"worker": {"w1"}}, nil, "settle drain w1")
	w.until("/fleet", "1 worker serves all 2 partitions")
	if left := w.d.Workers(); !slices.Equal(left, []string{"w2"}) {
		t.Errorf("the workers are %v", left)
	}
	w.want("/-/do/drain?worker=w2", 400, "worker w2 is the only one", "settle drain --force")
	w.want("/-/do/drain?worker=w1", 400, "there is no worker &#34;w1&#34;; there are: w2")
	if err := w.d.RestartWorker(t.Context(), "w1"); err != nil {
		t.Fatal(err)
	}
	w.until("/fleet", "2 workers serve all 2 partitions")
}

// What takes time is named: the handler, its space, and how long a run takes.
func TestFleet_NamesWhatTakesTime(t *testing.T) {
	p := office(nil)
	p.Handle("slow", func(*settle.Tx, *settle.Event) (settle.Value, error) {
		busy(30 * time.Millisecond)
		return settle.Value{}, nil
	})
	w := operate(t, settle.Config{Programs: settle.Always(p)})
	w.want("/fleet", 200, "The workers begin to measure")
	n := 0
	w.eventually("the handler is named", func() bool {
		for range 5 {
			n++
			w.send("shop", "slow", fmt.Sprint("s", n), nil)
		}
		_, text := w.get("/fleet")
		return strings.Contains(text, `id="k-shop-slow-h"`)
	})
	w.want("/fleet", 200, "Busiest spaces", "slow handler")
}

// Without workers and coordinators, the fleet says what does not happen, and what to start.
func TestFleet_OfNoWorker(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil)), Workers: -1})
	w.want("/fleet", 200, "No worker has joined", "settle dev")
}

// The doctor's findings are the same as those of settle doctor, the bad ones first, with what to do; without the means, the page has none.
func TestDoctor_ShowsFindings(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	r, err := w.c.cfg.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := w.want("/doctor", 200, "What can be lost")
	for i := range r.Findings {
		if !strings.Contains(visible(text), r.Findings[i].Check) {
			t.Errorf("the page lacks check %q: %s", r.Findings[i].Check, visible(text))
		}
	}
	w.c.cfg.Examine = nil
	w.want("/doctor?", 200)
}

// Settings are read only: the roles, the rules about access, and each option with its default; a search selects options.
func TestSettings_ShowRolesRulesAndLimits(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	text := w.want("/settings", 200, "There is no rule about access", "worker", "coordinator", "2")
	if strings.Contains(text, `action="/-/do/`) {
		t.Error("settings can be changed")
	}
	w.want("/settings?q=retries", 200, "EventRetries")
	if _, err := access.Change(t.Context(), w.d.Bus(), "boss", func(r *access.Rule) { r.Send, r.Read = []string{"*/*"}, []string{"*/*"} }); err != nil {
		t.Fatal(err)
	}
	w.until("/settings", "1 rule about access: what none allows is refused")
}

// The audit trail has the newest entry first, can be searched, and is divided into pages.
func TestAudit_TheNewestFirst(t *testing.T) {
	w := operate(t, settle.Config{Programs: settle.Always(office(nil))})
	w.want("/audit", 200, "No command has changed the deployment")
	begun := time.Now().UTC()
	for i := range auditPerPage + 5 {
		e := audit.Entry{At: begun.Add(time.Duration(i) * time.Second), By: "ann@host", Command: fmt.Sprintf("settle redrive bank p%d", i)}
		if err := audit.Add(t.Context(), w.d.Bus(), e); err != nil {
			t.Fatal(err)
		}
	}
	text := w.until("/audit", "105 commands changed the deployment")
	if strings.Index(text, "bank p104") > strings.Index(text, "bank p103") || strings.Contains(text, "bank p4<") {
		t.Error("the entries are not in order, or too many")
	}
	older := strings.ReplaceAll(lastBetween(text, `href="`, `">Older`), "&amp;", "&")
	w.want(older, 200, "bank p4", "bank p0", "Newest")
	w.want("/audit?q=p77", 200, "1 command changed the deployment")
	w.changes("/audit", func() {
		if err := audit.Add(t.Context(), w.d.Bus(), audit.Entry{At: begun.Add(time.Hour), By: "bob@host", Command: "settle pin x"}); err != nil {
			t.Fatal(err)
		}
	}, "settle pin x")
}

// Without a server, each page keeps what it showed, or says that no server answers; with no permission, that.
func TestOperations_Broken(t *testing.T) {
	w := start(t, 1, gateway.Config{})
	w.fill("a")
	pages := []string{"/workflows", "/schedules", "/dead", "/programs", "/fleet", "/settings", "/audit", "/spaces/a/events/add/a1"}
	for _, path := range pages {
		w.get(path)
	}
	w.server.Shutdown()
	for _, path := range pages {
		w.eventually(path+" is marked as old", func() bool {
			answer, text := w.get(path)
			return answer.StatusCode == 200 && strings.Contains(text, `id="page" class="old"`)
		})
	}
	w.want("/spaces/a/events/add/a2", 503)
}

// One call that was given up is one, and two are two.
func TestAbandoned_IsCounted(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1 call of application code was given up and has not returned", 2: "2 calls of application code were given up and have not returned"} {
		if got := abandonedText(n); got != want {
			t.Errorf("%q", got)
		}
	}
}
