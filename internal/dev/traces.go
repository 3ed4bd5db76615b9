package dev

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/internal/telemetry/recent"
)

// traces keeps the newest traces and shows them over HTTP, nil without --trace.
type traces struct {
	store *recent.Store
	url   string
}

// tracer returns what records the spans of the deployment, nil without --trace.
func (d *dev) tracer() trace.Tracer {
	if !d.cfg.Trace {
		return nil
	}
	d.traces = &traces{store: recent.New(recent.Limits{})}
	return d.traces.store.Tracer(d.cfg.Version)
}

// find returns what finds a trace as a text, nil without --trace.
func (t *traces) find() func(id string) (text string, kept bool) {
	if t == nil {
		return nil
	}
	return func(id string) (string, bool) {
		of, err := trace.TraceIDFromHex(id)
		if err != nil {
			return "", false
		}
		found, kept := t.store.Get(of)
		if !kept {
			return "", false
		}
		return found.Text(), true
	}
}

// showTraces serves the traces until the function that it returns is called.
func (d *dev) showTraces(ctx context.Context) (stop func(), err error) {
	if d.traces == nil {
		return func() {}, nil
	}
	at, err := d.claims.freePort(0, portIn(d.server.HTTP)+1)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("serve the traces: %w", err)
	}
	d.traces.url = "http://" + l.Addr().String() + "/traces"
	server := &http.Server{Handler: d.traces.store.Handler(), ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 16 << 10}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) }) // ends with Close
	return func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}
