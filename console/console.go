package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/internal/doctor"
	"github.com/settlehq/settle/internal/fleet"
	"github.com/settlehq/settle/port"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
	"github.com/settlehq/settle/questions"
)

// Bus is the connection of a console: bus.Bus has its methods.
type Bus interface {
	port.Bus
	port.Records
	// Spaces returns the names of all spaces, sorted.
	Spaces(ctx context.Context) ([]string, error)
	// Prefix returns the prefix of the deployment.
	Prefix() string
}

// Config configures a console. Bus is required.
type Config struct {
	Bus Bus
	// Version is that of the executable.
	Version string
	// Principal is in whose name the console asks workers about spaces, such as model.Operator: the console itself decides which visitor sees the
	// answers. "" asks without a principal.
	Principal string
	// SendAs is in whose name events of visitors without a principal are sent; "" for none.
	SendAs string
	// User returns the user and the account of the connection, as the server names them, for the audit trail; nil if that is not known.
	User func(ctx context.Context) (user, account string)
	// Examine examines the deployment as settle doctor does; nil if this process cannot.
	Examine func(ctx context.Context) (*doctor.Report, error)
	// Traces returns a trace that this process has kept, as a tree of its spans, by its id of 32 hexadecimal digits; nil if it keeps none.
	Traces func(id string) (text string, kept bool)
	// Remember samples the deployment from the start; by default the first visitor begins that, and it ends an hour after the last one.
	Remember bool
	// Undo is how long a job on dead letters waits before it sends the first one, so that it can be stopped without effect; default 5 s.
	Undo   time.Duration
	Logger *slog.Logger
}

// Console is the handler of all pages. Close ends it.
type Console struct {
	cfg    Config
	log    *slog.Logger
	mux    *http.ServeMux
	looks  *looks
	pages  []page
	acts   map[string]action
	hub    *hub
	shared *shared
	memory *memory
	trees  trees
	// headStart is how long a browser waits for a page before it gets the beginning.
	headStart time.Duration
	// asks answers questions about spaces.
	asks *questions.Client

	ctx    context.Context // ends with the console
	cancel context.CancelFunc
	tasks  sync.WaitGroup

	notices notices

	operations

	mu      sync.Mutex
	clients map[string]*settle.Client // by principal
	watched map[string]*observation
	// programs are those that were compiled, to know their streams; nil for one that does not compile here.
	programs map[program.Target]*star.Program
}

// New returns a console.
func New(cfg Config) (*Console, error) {
	if cfg.Bus == nil {
		return nil, errors.New("console: Config.Bus is nil; connect with bus.Connect")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Console{
		cfg: cfg, log: cfg.Logger, mux: http.NewServeMux(), acts: map[string]action{}, clients: map[string]*settle.Client{},
		watched: map[string]*observation{}, programs: map[program.Target]*star.Program{}, asks: &questions.Client{Bus: cfg.Bus, Principal: cfg.Principal},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.shared, c.hub = newShared(cfg.Bus), newHub(c)
	c.memory = newMemory(c)
	c.shared.took = func(f *fleet.Fleet) {
		for i := range f.Partitions {
			c.stalls.note(&f.Partitions[i], f.At)
		}
	}
	c.undo, c.headStart, c.trees.patience = cmp.Or(cfg.Undo, undoTime), headStart, treePatience
	c.pages = append(allPages(), operatingPages()...)
	var err error
	if c.looks, err = newLooks(c); err != nil {
		c.cancel()
		return nil, err
	}
	c.route()
	if cfg.Remember {
		c.memory.begin()
	}
	return c, nil
}

// route registers the paths.
func (c *Console) route() {
	for i := range c.pages {
		p := &c.pages[i]
		c.mux.HandleFunc("GET "+p.pattern, func(w http.ResponseWriter, r *http.Request) { c.servePage(w, r, p) })
	}
	for _, a := range append(allActions(), operatingActions()...) {
		c.acts[a.name] = a
	}
	c.mux.HandleFunc("GET /-/do/{action}", c.preview)
	c.mux.HandleFunc("POST /-/do/{action}", c.perform)
	c.mux.HandleFunc("GET /-/assets/{file}", c.looks.serveAsset)
	c.mux.HandleFunc("POST /-/theme", c.setTheme)
	c.mux.HandleFunc("GET /-/login", c.askToken)
	c.mux.HandleFunc("POST /-/login", c.setToken)
	c.mux.HandleFunc("POST /-/logout", c.dropToken)
	c.mux.HandleFunc("GET /-/help", c.serveHelp)
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c.fail(w, r, &missing{fmt.Sprintf("There is no page %s", r.URL.Path)})
	})
}

// Close ends the console, and waits for what it has begun.
func (c *Console) Close() {
	c.cancel()
	c.tasks.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.clients { // any order
		client.Close()
	}
}

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	c.mux.ServeHTTP(w, r)
}

// policy allows what the console serves itself, and nothing else: no inline script or style, no other origin, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// errUnreachable is why nothing can be read while the connection is lost. Requests would wait for it to come back.
var errUnreachable = errors.New("no NATS server can be reached")

// reachable returns an error while the connection is lost.
func (c *Console) reachable() error {
	if b, knows := c.cfg.Bus.(interface{ Reachable() bool }); knows && !b.Reachable() {
		return errUnreachable
	}
	return nil
}

// client returns the client that sends in the name of a principal.
func (c *Console) client(principal string) (*settle.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.clients[principal]; client != nil {
		return client, nil
	}
	client, err := settle.NewClient(c.cfg.Bus, settle.ClientConfig{ID: "console", Principal: principal, Logger: c.log})
	if err != nil {
		return nil, err
	}
	c.clients[principal] = client
	return client, nil
}

// patience is how long a load of a page, and an action, may take.
const patience = 15 * time.Second
