package bus

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Fsync is when an embedded server writes through to the disk.
type Fsync int

const (
	// FsyncAlways acknowledges what is on the disk. The default: a single server
	// has no replica to recover from.
	FsyncAlways Fsync = iota
	// FsyncInterval acknowledges what the operating system has. A crash of the
	// process loses nothing, a power failure up to ServerConfig.SyncInterval.
	FsyncInterval
)

// ServerConfig describes a NATS server within this process. The zero value with a
// StoreDir has no listener at all: only this process can reach it.
type ServerConfig struct {
	// StoreDir is where the streams are kept. Only one server at a time can use it.
	StoreDir string
	Fsync    Fsync
	// SyncInterval is how often FsyncInterval writes through. Default 2 min.
	SyncInterval time.Duration
	// Listen is "" for no listener, "host:port", or ":port" for loopback. Port 0
	// takes a free one. Anyone who can reach it has all rights, unless ConfigFile
	// says otherwise.
	Listen string
	// ConfigFile is a nats-server configuration to start from: accounts, leaf
	// nodes, TLS, monitoring. StoreDir, Fsync and Listen win over it; without
	// Listen, it decides what to listen on.
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
	ns   *server.Server
	lock *os.File
}

// startPatience is how long a server may take to read its streams.
const startPatience = 2 * time.Minute

// StartServer starts a server and returns when it serves.
func StartServer(cfg ServerConfig) (*Server, error) {
	if cfg.StoreDir == "" {
		return nil, errors.New("embedded server: no StoreDir; name a directory for its data")
	}
	lock, err := lockDir(cfg.StoreDir)
	if err != nil {
		return nil, err
	}
	s := &Server{lock: lock}
	if err := s.start(cfg); err != nil {
		s.Shutdown()
		return nil, fmt.Errorf("embedded server on %s: %w", cfg.StoreDir, err)
	}
	return s, nil
}

func (s *Server) start(cfg ServerConfig) error {
	opts, err := cfg.options()
	if err != nil {
		return err
	}
	if s.ns, err = server.NewServer(opts); err != nil {
		return err
	}
	if cfg.Logger != nil {
		s.ns.SetLoggerV2(serverLog{cfg.Logger}, false, false, false)
	}
	go s.ns.Start() // ends when the server has started
	if !s.ns.ReadyForConnections(startPatience) {
		return fmt.Errorf("not ready after %v; its log says why", startPatience)
	}
	if !s.ns.JetStreamEnabled() {
		return errors.New("JetStream did not start; the server's log says why")
	}
	return nil
}

// options are the server's, with the defaults that an embedded one should have.
func (c ServerConfig) options() (*server.Options, error) {
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
	opts.NoSigs = true
	opts.NoLog = c.Logger == nil
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

// ClientURL is where other processes connect, "" if the server does not listen.
func (s *Server) ClientURL() string {
	if s.ns.Addr() == nil {
		return ""
	}
	return s.ns.ClientURL()
}

// InProcessConn makes a connection that does not go through the network, for
// nats.InProcessServer.
func (s *Server) InProcessConn() (net.Conn, error) { return s.ns.InProcessConn() }

// ConnOption makes a connection of this process one that does not go through the
// network. Config.Server does so by itself.
func (s *Server) ConnOption() nats.Option { return nats.InProcessServer(s) }

// Subscriptions is how many the server has, its own included.
func (s *Server) Subscriptions() int { return int(s.ns.NumSubscriptions()) }

// Shutdown stops the server and returns when it is gone. It may be called twice.
func (s *Server) Shutdown() {
	if s.ns != nil {
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
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
	if err := lockFile(file); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("embedded server: %s is in use by another process (%w); stop that one, or use another directory", dir, err)
	}
	return file, nil
}

// serverLog passes the server's log on.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Noticef(format string, v ...any) { l.log.Info(fmt.Sprintf(format, v...)) }
func (l serverLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }
func (l serverLog) Errorf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l serverLog) Fatalf(format string, v ...any)  { l.log.Error(fmt.Sprintf(format, v...)) }
func (l serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l serverLog) Tracef(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
