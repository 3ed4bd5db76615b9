package flow_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/flow"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// Runs of several spaces are found by name, state, time and attribute, in Go and over HTTP, and only where the caller may read.
func TestFind_RunsOfSeveralSpaces(t *testing.T) {
	t.Parallel()
	ports, err := natstest.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprint("127.0.0.1:", ports[0])
	repaired := true
	d, err := settle.Start(t.Context(), settle.Config{
		Programs: settle.Always(gated(t, &repaired)), HTTP: gateway.Config{Addr: addr}, Server: embedded.Config{StoreDir: t.TempDir(), Fsync: embedded.FsyncInterval},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		web.CloseIdleConnections()
		if err := d.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	ctx, c := t.Context(), d.Client()
	for i, space := range []string{"order-1", "order-2", "shop"} {
		runs := flow.In(c.Space(space))
		for j := range 2 {
			_, err := runs.Start(ctx, "gate", fmt.Sprint("r", j), nil, flow.Attributes(map[string]any{"customer": fmt.Sprint("c", i), "vip": j == 0}), flow.Priority(j))
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := runs.Signal(ctx, "r0", "go", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := runs.Wait(ctx, "r0"); err != nil {
			t.Fatal(err)
		}
	}
	find := func(s flow.Search) string {
		t.Helper()
		var got []string
		for n := 0; n == 0 || s.After != ""; n++ {
			p, err := flow.Find(ctx, c, s)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range p.Runs {
				got = append(got, f.Space+"/"+f.ID)
			}
			s.After = p.Next
		}
		slices.Sort(got) // those of one millisecond are in the order of their IDs
		return strings.Join(got, " ")
	}
	for _, x := range []struct {
		search flow.Search
		want   string
	}{
		{flow.Search{}, "order-1/r0 order-1/r1 order-2/r0 order-2/r1 shop/r0 shop/r1"},
		{flow.Search{Spaces: []string{"order-*"}, Filter: flow.Filter{State: flow.Done, Limit: 1}}, "order-1/r0 order-2/r0"},
		{flow.Search{Filter: flow.Filter{Attributes: map[string]settle.Value{"customer": model.String("c2")}}}, "shop/r0 shop/r1"},
		{flow.Search{Spaces: []string{"shop", "order-1"}, Filter: flow.Filter{Workflow: "gate", State: flow.Running}}, "order-1/r1 shop/r1"},
		{flow.Search{Filter: flow.Filter{Workflow: "other"}}, ""},
	} {
		if got := find(x.search); got != x.want {
			t.Errorf("%+v: %s, want %s", x.search, got, x.want)
		}
	}
	if _, err := flow.Find(ctx, c, flow.Search{Spaces: []string{"a/b"}}); !errors.Is(err, flow.ErrInvalid) {
		t.Error(err)
	}

	get := func(query string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v1/runs"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := web.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		body, err := io.ReadAll(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		return a.Status + " " + string(body)
	}
	for query, want := range map[string]string{
		"?space=order-*&state=done&since=1h&attribute.customer=c1": `200 OK {"runs":[{"space":"order-2","run":"r0","workflow":"gate","state":"done","started":`,
		"?attribute.vip=false&limit=1":                             `"attributes":{"customer":"c2","vip":false}}],"searched":3,"next":"shop.`,
		"?space=none":                                              `200 OK {"runs":[],"searched":0}`,
		"?state=late":                                              "400 Bad Request",
		"?since=soon":                                              "is neither a duration such as 24h nor a time",
		"?worflow=gate":                                            "there is no such parameter: it may be space, workflow",
		"?state=done&state=failed":                                 "it is there twice",
		"?limit=2000":                                              "a page has from 1 to 1000 runs, not 2000",
	} {
		if got := get(query); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// A priority that does not exist is refused before anything is sent.
func TestStart_APriorityIsFrom9ToMinus9(t *testing.T) {
	for _, n := range []int{10, -10} {
		_, err := flow.In(settle.Space{}).Start(t.Context(), "gate", "r", nil, flow.Priority(n))
		if !errors.Is(err, flow.ErrInvalid) {
			t.Errorf("%d: %v", n, err)
		}
	}
}
