//go:build prometheus

package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/bus/roles"
)

// everything is a program with each kind of work that has metrics.
const everything = `
n = cell("n", 0)

def total():
    return n + 1

compute("total", total)

pay = action("pay")

def add(e):
    n.set(n + 1)
    start_task(pay, "t%d" % n)
    set_timer("ring", "ring", after = "50ms")
    send("till", "note")

def bad(e):
    fail("out of order")

handle("add", add)
handle("bad", bad)
handle("note", lambda e: None)
handle("ring", lambda: None)

def run():
    return 1

workflow("chore", run)
schedule("often", workflow = "chore", every = "1s")
`

// quiet are queries whose value is known only after an incident while Prometheus looks: a worker that takes partitions over.
var quiet = []string{"settle_worker_takeover_duration_seconds"}

// A Prometheus of Debian scrapes a worker and a coordinator under load: it evaluates each alert, each series that an alert asks for exists, and so
// does what each query of the dashboard asks for, with a value. When the worker has left, the alert about that begins.
func TestPrometheus_EvaluatesTheAlertsAndTheDashboard(t *testing.T) {
	s := startWithUsers(t)
	ports, err := natstest.FreePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	run := func(role string, args ...string) {
		t.Helper()
		if out, code := commandAs(t, s, role, args...); code != 0 {
			t.Fatalf("settle %s: code %d\n%s", strings.Join(args, " "), code, out)
		}
	}
	run(roles.Administrator, "provision", "--partitions", "8")
	program := filepath.Join(t.TempDir(), "everything.star")
	writeFile(t, program, everything)
	run(roles.Operator, "deploy", program, "--space", "*")
	env := loginAs(s, roles.Worker)
	env["SETTLE_ID"], env["SETTLE_METRICS"], env["SETTLE_HTTP"] = "w1", at(0), at(2)
	worker := begin(t, env, "spaceworker")
	env = loginAs(s, roles.Coordinator)
	env["SETTLE_ID"], env["SETTLE_METRICS"] = "c1", at(1)
	coordinator := begin(t, env, "coordinator")
	begin(t, loginAs(s, roles.Performer), "settle", "perform", "pay", "--", "true")
	worker.says(t, "msg=running")
	coordinator.says(t, "msg=running")

	p := prometheus{T: t, at: "http://" + at(3)}
	p.start(at(3), at(0), at(1))
	ended := underLoad(t, s.ClientURL(), "http://"+at(2))
	p.answers(dashboard(t))
	rules := p.rules()
	p.answers(selectors(t, rules))
	eventually(t, "events that fail are an alert", func() bool { return p.rules()["SettleEventsFail"].State == "pending" })
	for name, r := range p.rules() {
		if r.Health != "ok" || r.LastError != "" {
			t.Errorf("alert %s is %s: %s", name, r.Health, r.LastError)
		}
		critical := slices.Contains([]string{"SettleNoWorker", "SettleLoss", "SettleStoreWentBack", "SettleQuarantine"}, name)
		if critical && r.State != "inactive" {
			t.Errorf("alert %s is %s, and all is well", name, r.State)
		}
	}
	ended()
	if code := worker.leave(t); code != 0 {
		t.Errorf("the worker ends with status %d", code)
	}
	eventually(t, "no worker is an alert", func() bool { return p.rules()["SettleNoWorker"].State == "pending" })
}

// underLoad sends events of every kind, and reads documents, until the returned function is called.
func underLoad(t *testing.T, nats, http string) (end func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	b, err := bus.Connect(ctx, bus.Config{URL: nats, User: roles.Client, Password: password(roles.Client), Name: "client/load"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := settle.NewClient(b, settle.ClientConfig{ID: "load"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			space := fmt.Sprint("s", n/20) // a new one after 20 rounds
			for _, stream := range []string{"add", "bad"} {
				_, err := c.Call(ctx, settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(fmt.Sprint(stream, n))})
				if err != nil && ctx.Err() == nil {
					t.Errorf("load: %v", err)
					return
				}
			}
			_, _ = fetched(ctx, http+"/v1/spaces/"+space+"/documents/total") // the worker counts the answers
		}
	}()
	end = func() {
		cancel()
		<-done
	}
	t.Cleanup(func() {
		end()
		c.Close()
		b.Close()
	})
	return end
}

// fetched returns the body of an answer.
func fetched(ctx context.Context, at string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return nil, err
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	return io.ReadAll(a.Body)
}

// dashboard returns the queries of the dashboard, for all processes.
func dashboard(t *testing.T) (queries []string) {
	t.Helper()
	var board struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal([]byte(read(t, "grafana/settle.json")), &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, q := range panel.Targets {
			queries = append(queries, strings.NewReplacer("$__rate_interval", "10s", "$instance", ".*").Replace(q.Expr))
		}
	}
	if len(queries) < 40 {
		t.Fatalf("the dashboard has %d queries; are they still found?", len(queries))
	}
	return queries
}

// selectors returns the series that the alerts ask for.
func selectors(t *testing.T, rules map[string]rule) (all []string) {
	t.Helper()
	for name, r := range rules {
		found := regexp.MustCompile(`settle_[a-z0-9_]+(?:\{[^}]*\})?`).FindAllString(regexp.MustCompile(`\bby \([^)]*\)`).ReplaceAllString(r.Query, ""), -1)
		if len(found) == 0 {
			t.Errorf("alert %s asks for nothing: %s", name, r.Query)
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// prometheus is a running one.
type prometheus struct {
	*testing.T
	at string
}

func (p prometheus) start(listen string, targets ...string) {
	p.Helper()
	rules, err := filepath.Abs("prometheus/alerts.yaml")
	if err != nil {
		p.Fatal(err)
	}
	dir := p.TempDir()
	conf := filepath.Join(dir, "prometheus.yml")
	writeFile(p.T, conf, fmt.Sprintf("global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files: [%q]\nscrape_configs:\n  - job_name: settle\n    static_configs: [{targets: [%q, %q]}]\n", rules, targets[0], targets[1]))
	cmd := exec.Command("prometheus", "--config.file", conf, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", listen, "--log.level", "warn")
	out := &text{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.Fatalf("Prometheus, of Debian's package of that name: %v", err)
	}
	p.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		http.DefaultClient.CloseIdleConnections()
		if p.Failed() {
			p.Logf("prometheus:\n%s", out)
		}
	})
	within(p.T, time.Minute, "Prometheus is ready", func() bool {
		body, err := fetched(p.Context(), p.at+"/-/ready")
		return err == nil && strings.Contains(string(body), "is Ready")
	})
}

// ask decodes the data of an answer of the API.
func (p prometheus) ask(path string, into any) {
	p.Helper()
	body, err := fetched(p.Context(), p.at+"/api/v1/"+path)
	var a struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(body, &a)
	}
	if err == nil && a.Status != "success" {
		err = fmt.Errorf("%s", a.Error)
	}
	if err == nil {
		err = json.Unmarshal(a.Data, into)
	}
	if err != nil {
		p.Fatalf("Prometheus, asked for %s: %v", path, err)
	}
}

// rule is an alert as Prometheus has evaluated it.
type rule struct{ Name, Query, Health, LastError, State string }

// rules returns the alerts, by name, when each has been evaluated.
func (p prometheus) rules() map[string]rule {
	p.Helper()
	all := map[string]rule{}
	eventually(p.T, "each alert is evaluated", func() bool {
		var a struct{ Groups []struct{ Rules []rule } }
		p.ask("rules", &a)
		evaluated := true
		for _, g := range a.Groups {
			for _, r := range g.Rules {
				all[r.Name] = r
				evaluated = evaluated && r.Health != "unknown"
			}
		}
		return evaluated
	})
	if want := strings.Count(read(p.T, "prometheus/alerts.yaml"), "- alert: "); len(all) != want || want < 10 {
		p.Fatalf("Prometheus has %d of %d alerts", len(all), want)
	}
	return all
}

// answers waits until each query has series, and a value.
func (p prometheus) answers(queries []string) {
	p.Helper()
	left := slices.Clone(queries)
	defer func() {
		if p.Failed() {
			p.Logf("without an answer: %q", left)
		}
	}()
	within(p.T, time.Minute, "each query has an answer", func() bool {
		left = slices.DeleteFunc(left, p.hasAnswer)
		return len(left) == 0
	})
}

// hasAnswer reports whether a query has series, and one of them a value.
func (p prometheus) hasAnswer(query string) bool {
	p.Helper()
	var a struct{ Result []struct{ Value [2]any } }
	p.ask("query?query="+url.QueryEscape(query), &a)
	needsIncident := slices.ContainsFunc(quiet, func(name string) bool { return strings.Contains(query, name) })
	for _, r := range a.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && (needsIncident || !math.IsNaN(v)) {
			return true
		}
	}
	return false
}
