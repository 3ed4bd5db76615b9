// Package scrape serves the metrics, the health and the profiles of a process over HTTP.
package scrape

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"
)

// Server answers at an address of its own.
type Server struct {
	http  *http.Server
	at    net.Addr
	ready atomic.Pointer[func() error]
	ended chan struct{}
}

// Config configures a Server.
type Config struct {
	// Addr is where it listens.
	Addr string
	// Metrics answers /metrics.
	Metrics http.Handler
	// Profiles adds /debug/pprof/.
	Profiles bool
	Logger   *slog.Logger
}

// Listen starts a server. It is live at once, and ready when Ready was called.
func Listen(ctx context.Context, cfg Config) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("serve metrics: %w; choose another address (--metrics)", err)
	}
	s := &Server{at: l.Addr(), ended: make(chan struct{})}
	s.Ready(func() error { return errors.New("starting") })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", cfg.Metrics)
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, nil) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answer(w, (*s.ready.Load())()) })
	if cfg.Profiles {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelWarn)}
	go func() { // ends with Close
		defer close(s.ended)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			cfg.Logger.Error("serve metrics", "error", err)
		}
	}()
	return s, nil
}

// Addr returns the address.
func (s *Server) Addr() string { return s.at.String() }

// Ready sets what /readyz answers: an error is the reason why the process does not serve.
func (s *Server) Ready(why func() error) { s.ready.Store(&why) }

// Close ends the server, and the answers in progress.
func (s *Server) Close() {
	_ = s.http.Close()
	<-s.ended
}

// answer writes the result of a health check: 200, or 503 and the reason.
func answer(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprintln(w, err)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
