package settle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/questions"
)

// Answers over HTTP are those of the client, and of the commands with --json; also when rules close the deployment to clients without a principal,
// and the worker that serves HTTP asks another one.
func TestAsked_AnswersOverHTTPAreThoseOfTheClient(t *testing.T) {
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprint("127.0.0.1:", ports[0])
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(counter()), HTTP: gateway.Config{Addr: addr}, Server: embedded.Config{StoreDir: t.TempDir()},
		Bus: bus.Config{Partitions: 4}, Workers: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	get := func(path string) (status int, answer map[string]any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err == nil {
			err = json.Unmarshal(text, &answer)
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", path, err, text)
		}
		return a.StatusCode, answer
	}
	same := func(path string, ask func() (any, error)) {
		t.Helper()
		var got, want map[string]any
		for range 100 { // a space is handed from worker to worker as the second one joins, between two questions too
			of, err := ask()
			if err != nil {
				t.Fatal(err)
			}
			data, err := json.Marshal(of)
			if want = nil; err == nil {
				err = json.Unmarshal(data, &want)
			}
			if err != nil {
				t.Fatal(err)
			}
			var status int
			status, got = get(path)
			for _, changes := range []string{"at", "node"} { // the time, and how long it has taken
				delete(got, changes)
				delete(want, changes)
			}
			if status == http.StatusOK && reflect.DeepEqual(got, want) {
				return
			}
		}
		t.Errorf("%s: %v, want %v", path, got, want)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} { // served by both workers
		s := d.Client().Space(name)
		if _, err := d.Client().Call(t.Context(), settle.Outgoing{Space: name, Stream: "add", ID: settle.ID("e1"), Payload: 1}); err != nil {
			t.Fatal(err)
		}
		of := "/v1/spaces/" + name
		same(of+"/why/e1", func() (any, error) { return s.Why(t.Context(), "e1", questions.Query{}) })
		same(of+"/lane", func() (any, error) { return s.Lane(t.Context(), questions.Query{}) })
		same(of+"/graph", func() (any, error) { return s.Graph(t.Context(), questions.Query{}) })
		same(of+"/log", func() (any, error) { return s.Log(t.Context(), history.LogQuery{}) })
	}
	if status, got := get("/v1/spaces/a/documents/n/history"); status != http.StatusOK || len(got["changes"].([]any)) != 1 {
		t.Errorf("the history: %d %v", status, got)
	}
	if status, got := get("/v1/top?interval=100ms"); status != http.StatusOK || len(got["workers"].([]any)) != 2 {
		t.Errorf("top: %d %v", status, got)
	}
	for path, want := range map[string]int{ // any order: each on its own
		"/v1/spaces/nosuch/lane": 404, "/v1/spaces/nosuch/log": 404, "/v1/spaces/a/why/nosuch": 404, "/v1/spaces/a/log?limit=201": 400,
		"/v1/spaces/a/graph?depth=17": 400, "/v1/spaces/a%20b/lane": 400, "/v1/top?sort=luck": 400, "/v1/top?limit=513": 400,
	} {
		if status, got := get(path); status != want || got["detail"] == "" || got["status"] != float64(want) {
			t.Errorf("%s: %d %v, want status %d", path, status, got, want)
		}
	}
	if _, err := access.Change(t.Context(), d.Bus(), "auditor", func(r *access.Rule) { r.Read = []string{"x/*"} }); err != nil {
		t.Fatal(err)
	}
	for { // until the rule has arrived
		if status, _ := get("/v1/spaces/a/lane"); status == http.StatusForbidden {
			break
		}
	}
	if _, err := access.Change(t.Context(), d.Bus(), "-", func(r *access.Rule) { r.Read = []string{"*/*"} }); err != nil {
		t.Log(err)
	}
}
