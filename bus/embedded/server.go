package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/settlehq/settle/internal/devserver"
)

// Fsync is when an embedded server writes through to the disk.
type Fsync int

const (
	// FsyncAlways acknowledges what is on the disk. The default: a single server
	// has no replica to recover from.
	FsyncAlways Fsync = iota
	// FsyncInterval acknowledges what the operating system has. A crash of the
	// process loses nothing, a power failure up to Config.SyncInterval.
	FsyncInterval
)

// DefaultStoreDir is where settle.Start and `settle dev` keep the data of their server, relative to the
// working directory, unless they are configured with another directory. A server that listens writes its
// address there, so that settle commands in the same working directory find it.
const DefaultStoreDir = devserver.Store

// Config describes a NATS server within this process. The zero value with a
// StoreDir has no listener at all: only this process can reach it.
type Config struct {
	// StoreDir is where the streams are kept. Only one server at a time can use it.
	StoreDir string
	Fsync    Fsync
	// SyncInterval is how often FsyncInterval writes through. Default 2 min.
	SyncInterval time.Duration
	// Listen is "" for no listener, "host:port", or ":port" for loopback. Port 0
	// takes a free one. Every client that can reach it has all rights, unless ConfigFile
	// limits them.
	Listen string
	// ConfigFile is a nats-server configuration to start from: accounts, leaf nodes, TLS, monitoring.
	// StoreDir, Fsync and Listen take precedence over it; without Listen, it decides what to listen on.
	ConfigFile string
	// MaxPayload is the largest message in bytes; 0 is the server's 1 MiB.
	MaxPayload int32
	// Name of the server; "" is "settle".
	Name string
	// Logger gets the server's log. Nil discards it.
	Logger *slog.Logger
}

// Server is a running embedded server.
type Server struct {
	ns      *server.Server
	started chan struct{} // closed when the server's Start has returned
	lock    *os.File
}

// quietPatience is how long a server may say nothing before it is ready. One that recovers its
// streams tells of each, and is waited for however long that takes.
const quietPatience = 2 * time.Minute

// readyPause is the pause between two checks of whether a server is ready.
const readyPause = 25 * time.Millisecond

// Start starts a server and returns when it serves. The context bounds the start only; Shutdown
// stops the server.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.StoreDir == "" {
		return nil, errors.New("embedded server: no StoreDir; name a directory for its data")
	}
	lock, err := lockDir(cfg.StoreDir)
	if err != nil {
		return nil, err
	}
	s := &Server{lock: lock}
	if err := s.start(ctx, cfg); err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("embedded server on %s: %w", cfg.StoreDir, err)
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, cfg Config) error {
	opts, err := cfg.options()
	if err != nil {
		return err
	}
	if err := cfg.checkFree(opts); err != nil {
		return err
	}
	if s.ns, err = server.NewServer(opts); err != nil {
		return err
	}
	log := newServerLog(cfg.Logger)
	s.ns.SetLoggerV2(log, false, false, false)
	s.started = make(chan struct{})
	go func() { // ends when the server has started
		defer close(s.started)
		s.ns.Start()
	}()
	if err := s.awaitReady(ctx, log); err != nil {
		return err
	}
	if !s.ns.JetStreamEnabled() {
		return log.because(errors.New("JetStream did not start"))
	}
	return s.checkDecrypted(cfg.StoreDir)
}

// ErrEncrypted is returned for a store of which the server cannot decrypt a stream. A server on its own goes on without such streams, as if
// they did not exist, and what it creates in their place would overwrite them.
var ErrEncrypted = errors.New("a stream in the store is encrypted with another key: set that key in ConfigFile, as jetstream { key: ... }")

// maxAccounts is more accounts than a server has.
const maxAccounts = 1_000_000

// checkDecrypted compares the encrypted streams in the store with those that the server has.
func (s *Server) checkDecrypted(store string) error {
	keys, err := fs.Glob(os.DirFS(store), path.Join(server.JetStreamStoreDir, "*", "streams", "*", server.JetStreamMetaFileKey))
	if err != nil || len(keys) == 0 || s.ns.JetStreamIsClustered() { // those of a cluster are loaded when it has a leader
		return err
	}
	info, err := s.ns.Jsz(&server.JSzOptions{Accounts: true, Streams: true, Limit: maxAccounts})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			there[path.Join(account.Id, "streams", stream.Name)] = true
		}
	}
	for _, key := range keys {
		dir, _ := strings.CutPrefix(path.Dir(key), server.JetStreamStoreDir+"/")
		if !there[dir] {
			return fmt.Errorf("%s: %w", dir, ErrEncrypted)
		}
	}
	return nil
}

// awaitReady waits until clients can connect.
func (s *Server) awaitReady(ctx context.Context, log *serverLog) error {
	for {
		ready := s.ns.ReadyForConnections(readyPause)
		switch {
		case ctx.Err() != nil:
			return log.because(fmt.Errorf("the start was interrupted: %w", context.Cause(ctx)))
		case ready:
			return nil
		case log.failed():
			return log.because(errors.New("it did not start"))
		case log.quiet() >= quietPatience:
			return log.because(fmt.Errorf("not ready, and no progress for %v", quietPatience))
		}
	}
}

// checkFree refuses an address that another process listens on: the server would start without it.
func (c Config) checkFree(opts *server.Options) error {
	if c.Listen == "" || opts.Port == server.RANDOM_PORT {
		return nil
	}
	address := net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port))
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use by another process; choose another Listen, or connect to the server there with Bus.URL", address)
	}
	return fmt.Errorf("cannot listen on %s: %w; choose another Listen", address, err)
}

// options returns the server's, with the defaults that an embedded one should have.
func (c Config) options() (*server.Options, error) {
	opts := &server.Options{DontListen: true}
	if c.ConfigFile != "" {
		var err error
		if opts, err = server.ProcessConfigFile(c.ConfigFile); err != nil {
			return nil, err
		}
	}
	if c.Listen != "" {
		if err := listenOn(opts, c.Listen); err != nil {
			return nil, err
		}
	}
	opts.JetStream, opts.StoreDir = true, c.StoreDir
	opts.SyncAlways = c.Fsync == FsyncAlways
	if c.SyncInterval > 0 {
		opts.SyncInterval = c.SyncInterval
	}
	if c.MaxPayload > 0 {
		opts.MaxPayload = c.MaxPayload
	}
	if opts.ServerName == "" {
		opts.ServerName = "settle"
	}
	if c.Name != "" {
		opts.ServerName = c.Name
	}
	opts.NoSigs, opts.NoLog = true, true // it logs to what it is given
	return opts, nil
}

// listenOn reads "host:port". A server that was not told where listens on loopback
// only.
func listenOn(opts *server.Options, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address %q: %w; use host:port", address, err)
	}
	if opts.Port, err = strconv.Atoi(port); err != nil {
		return fmt.Errorf("listen address %q: the port is not a number", address)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	if opts.Host = host; host == "" {
		opts.Host = "127.0.0.1"
	}
	opts.DontListen = false
	return nil
}

// ClientURL returns where other processes connect, "" if the server does not listen.
func (s *Server) ClientURL() string {
	if s.ns.Addr() == nil {
		return ""
	}
	return s.ns.ClientURL()
}

// InProcessConn makes a connection that does not go through the network, for
// nats.InProcessServer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.ns.InProcessConn() }

// greetingPatience is how long this process may take to greet itself.
const greetingPatience = 30 * time.Second

// ConnOption makes a connection of this process one that does not go through the network;
// bus.Config.Server does so by itself. A server that is slow to greet is waited for: there is no
// other to try.
func (s *Server) ConnOption() nats.Option {
	return func(o *nats.Options) error {
		if o.Timeout == nats.DefaultTimeout {
			o.Timeout = greetingPatience
		}
		return nats.InProcessServer(s)(o)
	}
}

// SyncAlways is what Server.Sync returns of a server that acknowledges what is on its disk.
const SyncAlways = "always"

// Sync returns when the server writes to its disk: SyncAlways, or how often.
func (s *Server) Sync() string {
	if c := s.ns.JetStreamConfig(); c != nil && !c.SyncAlways {
		return c.SyncInterval.String()
	}
	return SyncAlways
}

// Varz returns what the server reports at /varz of a monitoring port, as JSON.
func (s *Server) Varz() ([]byte, error) {
	v, err := s.ns.Varz(nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// Subscriptions returns how many the server has, its own included.
func (s *Server) Subscriptions() int { return int(s.ns.NumSubscriptions()) }

// Shutdown stops the server and returns when it is gone. It may be called twice.
func (s *Server) Shutdown() {
	if s.ns != nil {
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
		if s.started != nil {
			<-s.started // an interrupted server may still write
		}
	}
	_ = s.lock.Close() // which also unlocks; a second time it fails
}

// lockDir keeps two servers from writing to one directory, which would destroy it.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	name := filepath.Join(dir, "settle.lock")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	if err := devserver.LockFile(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("embedded server: %s is in use by another process (%w); stop that one, or use another directory", dir, err)
	}
	return file, nil
}

// RemoveStore removes the data of an embedded server, for good. It fails if a server uses
// them, or if there are none.
func RemoveStore(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "settle.lock")); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return os.ErrNotExist
		}
		return err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	return os.RemoveAll(dir)
}
