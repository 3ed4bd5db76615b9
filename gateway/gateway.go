package gateway

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/live"
)

// Source answers reads and watches.
type Source interface {
	Get(ctx context.Context, q live.Get) (live.Answer, error)
	Watch(ctx context.Context, q live.Watch, deliver func(live.Event) error) error
}

// Config configures a gateway.
type Config struct {
	// Addr is the address to listen on, such as 127.0.0.1:8470.
	Addr string `kong:"-"`
	// Token gives read access to all documents. Without it and without Principals, Addr must be a loopback address, and
	// all programs of this machine may read and send.
	Token string `kong:"-"`
	// Principals is the path of a JSON file with the principals that may use the gateway: their tokens, what each may
	// send and read, and its limits. It is read again when it changes. See the package comment.
	Principals string `help:"File (JSON) with the principals that may send and read over HTTP: their tokens, rights and limits. It is read again when it changes. Default: the token reads all documents and sends nothing; without a token, all programs of this machine read and send."`
	// Access has the rules of the deployment, besides those of the file of principals; nil has none.
	Access *access.Book `kong:"-"`
	// Pages, if not nil, answers requests for all paths outside of /v1, behind the same checks of hosts and origins. VisitorOf has the origin of
	// such a request, with its rights; requests without a valid token are passed on, too, so that pages can ask for one.
	Pages http.Handler `kong:"-"`
	// API, if not nil, answers requests for the paths of /v1 in place of this gateway, behind the same checks: those of a worker of another process.
	API http.Handler `kong:"-"`
	// Operator gives requests on a loopback address without any token the rights of the operator, to which rules do not apply.
	Operator bool `kong:"-"`
	// OperatorPages gives these rights to requests for Pages alone, and only if no page of another origin has made them; requests for /v1 obey the
	// rules. settle dev sets it, which owns its server and its store (docs/adr/0097).
	OperatorPages bool `kong:"-"`
	// Origins are the origins of pages, besides the gateway's own, that are allowed to read, such
	// as https://board.example.com.
	Origins []string `kong:"-"`
	// Hosts are the host names, without port, that clients may use for the gateway. On a loopback
	// address, the names of this machine are included; on another address, an empty list allows
	// any.
	Hosts []string `kong:"-"`
	// TLSCert and TLSKey are paths of PEM files with the certificate and the key of the gateway, which then speaks
	// HTTPS only. They are read again when they change. Without them it speaks plain HTTP.
	TLSCert string `help:"File with the certificate (PEM) for HTTPS, followed by those of intermediate authorities. It is read again when it changes. Default: plain HTTP."`
	TLSKey  string `help:"File with the key of that certificate (PEM)."`
	// WriteTimeout limits how long a client may take to read a part of an answer, or to send an event; default 10 s.
	WriteTimeout time.Duration `help:"How long an HTTP client may take to read a part of a response, or to send an event."`
	// Questions answers questions about spaces; nil answers none. StartWorker sets it.
	Questions Questions    `kong:"-"`
	Logger    *slog.Logger `kong:"-"`
	// Tracer records spans, Meter makes the instruments of metrics; nil records none.
	Tracer trace.Tracer `kong:"-"`
	Meter  metric.Meter `kong:"-"`
}

// Fill replaces zero fields by their defaults. It returns an error for the first invalid field.
func (c *Config) Fill() error {
	c.WriteTimeout = cmp.Or(c.WriteTimeout, writeTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.WriteTimeout < 0 {
		return fmt.Errorf("HTTP: WriteTimeout is %v; use a positive duration, or 0 for the default", c.WriteTimeout)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return fmt.Errorf("HTTPS needs both a certificate and its key: TLSCert is %q, TLSKey is %q", c.TLSCert, c.TLSKey)
	}
	return nil
}

// Gateway is a listening server. Listen creates it.
type Gateway struct {
	cfg      Config
	loopback bool
	// principals is nil if there is no file of them.
	principals *principals
	listener   net.Listener
	tls        *tls.Config // nil for plain HTTP
	log        *slog.Logger
	observed   observer
	sockets    sockets
}

const (
	// writeTimeout is the default of Config.WriteTimeout.
	writeTimeout = 10 * time.Second
	// retryAfter is the delay after which a browser that has lost the connection reconnects.
	retryAfter = time.Second
)

// Listen checks the configuration and binds the address. Requests are answered once Serve runs.
func Listen(cfg Config) (*Gateway, error) {
	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("HTTP address %q: %w; give one as 127.0.0.1:8470", cfg.Addr, err)
	}
	if err := cfg.Fill(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, loopback: isLoopback(host), log: cfg.Logger}
	if !g.loopback && cfg.Token == "" && cfg.Principals == "" {
		return nil, fmt.Errorf("HTTP address %s can be reached from other machines, and would give all of them access to every document: set a token, name a file of principals, or listen on 127.0.0.1", cfg.Addr)
	}
	if cfg.Principals != "" {
		if g.principals, err = newPrincipals(cfg.Principals, cfg.Logger); err != nil {
			return nil, err
		}
	}
	if g.observed, err = newObserver(&cfg); err != nil {
		return nil, fmt.Errorf("HTTP: make the instruments of its metrics: %w", err)
	}
	if cfg.TLSCert != "" {
		c, err := newCertificate(cfg.TLSCert, cfg.TLSKey, cfg.Logger)
		if err != nil {
			return nil, err
		}
		g.tls = &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}
	}
	if g.listener, err = net.Listen("tcp", cfg.Addr); err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	return g, nil
}

// isLoopback reports whether an address is reachable from this machine only.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Addr returns the address on which the gateway listens.
func (g *Gateway) Addr() string { return g.listener.Addr().String() }

// Close releases the address if Serve is not called.
func (g *Gateway) Close() { _ = g.listener.Close() } // nothing was written

// Serve answers requests until leaving is closed. Then it ends watches so that browsers reconnect, and
// completes pending gets. It stops at once when ctx ends.
func (g *Gateway) Serve(ctx context.Context, leaving <-chan struct{}, source Source, ingress Ingress) {
	waits, endWaits := context.WithCancel(ctx)
	defer endWaits()
	server := &http.Server{
		Handler: g.handler(waits, source, ingress), ReadHeaderTimeout: writeTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig:   g.tls,
		ErrorLog:    slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan struct{})
	go func() { // ends with server
		defer close(ended)
		serve := server.Serve
		if g.tls != nil {
			serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		}
		if err := serve(g.listener); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error("serve HTTP", "error", err)
		}
	}()
	g.log.Info("serving HTTP", "address", g.Addr())
	select {
	case <-leaving:
		endWaits()
		last, cancel := context.WithTimeout(ctx, writeTimeout)
		_ = server.Shutdown(last) // cuts off requests that have not completed by then
		cancel()
	case <-ctx.Done():
	case <-ended:
	}
	_ = server.Close() // the same
	<-ended
	endWaits()
	g.sockets.wait()
}

// Handler returns the handler, for programs with a server of their own. Without a source it serves no documents, and without an ingress it takes no events.
func (g *Gateway) Handler(source Source, ingress Ingress) http.Handler {
	return g.handler(context.Background(), source, ingress)
}

// handler returns the handler. When waits ends, requests no longer wait for receipts.
func (g *Gateway) handler(waits context.Context, source Source, ingress Ingress) http.Handler {
	if g.cfg.API != nil {
		return g.guard(g.cfg.API, g.pages(waits))
	}
	mux := http.NewServeMux()
	h := handler{source: source, ingress: ingress, waits: waits, writeTimeout: g.cfg.WriteTimeout, sockets: &g.sockets}
	handle := func(pattern string, f http.HandlerFunc) { mux.HandleFunc(pattern, g.observed.route(pattern, f)) }
	if source != nil {
		handle("GET /v1/spaces/{space}/documents/{document}", h.get)
		mux.HandleFunc("GET /v1/spaces/{space}/documents/{document}/watch", h.watch)
		mux.HandleFunc("GET /v1/watch", h.socket)
	}
	if ingress != nil {
		handle("POST /v1/spaces/{space}/streams/{stream}", h.send)
	}
	if g.cfg.Questions != nil {
		(&asking{g.cfg.Questions, g.cfg.WriteTimeout, make(chan struct{}, maxAsking)}).route(mux)
	}
	h.searching = make(chan struct{}, searches)
	if f, is := ingress.(RunFinder); is {
		h.finder = f
		mux.HandleFunc("GET /v1/runs", h.runs)
	}
	if f, is := ingress.(SpaceFinder); is {
		h.spaces = f
		mux.HandleFunc("POST /v1/streams/{stream}", h.sendAll)
		mux.HandleFunc("GET /v1/spaces", h.listSpaces)
	}
	if l, is := ingress.(DocumentLister); is {
		h.lister = l
		mux.HandleFunc("GET /v1/spaces/{space}/documents", h.documents)
	}
	return g.guard(missed(mux), g.pages(waits))
}
