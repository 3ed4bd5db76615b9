package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/devserver"
	"github.com/settlehq/settle/internal/pause"
)

// process is a running program in Go, a worker of this dev server.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	url   *url.URL      // where it serves HTTP
	ended chan struct{} // is closed when it has ended, with err
	err   error
}

// execute starts a program.
func execute(exe, nats, space string, out io.Writer) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	if err := os.Remove(described(exe)); err != nil && !errors.Is(err, os.ErrNotExist) { // it may be of another version
		return nil, err
	}
	cmd := exec.Command(exe)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(devserver.Child{NATS: nats, HTTP: address}.Environment(os.Environ()), devserver.Describing(described(exe), space)...)
	cmd.WaitDelay = time.Second // for processes of its own that keep its output
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, url: &url.URL{Scheme: "http", Host: address}, ended: make(chan struct{})}
	go func() { // ends with the process
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// described is the file into which a program writes what it has.
func described(exe string) string { return exe + ".json" }

// servesWithin is how long a program may take to serve before that is reported.
const servesWithin = 15 * time.Second

// errSilent reports that a program runs, and serves nothing.
var errSilent = errors.New("it runs, but is no worker of this server: its main function has to call settle.Main or spaceworker.Main")

// serves waits until the worker serves. The error is errSilent if it does not within a time, and still runs.
func (p *process) serves(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errSilent)
	defer cancel()
	for {
		if p.answers(ctx) {
			return nil
		}
		select {
		case <-p.ended:
			return p.why()
		default:
		}
		if pause.For(ctx, 10*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// answers reports whether the worker answers a request, however.
func (p *process) answers(ctx context.Context) bool {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url.JoinPath("/v1/spaces").String()+"?limit=1", nil)
	if err != nil {
		return false
	}
	q.Close = true // no connection is kept
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return false
	}
	return a.Body.Close() == nil
}

// why returns how the process has ended.
func (p *process) why() error {
	if p.err == nil {
		return errors.New("it has ended")
	}
	return fmt.Errorf("it has ended: %w", p.err)
}

// stop ends the process in good order, or else after a time.
func (p *process) stop() {
	_, _ = io.WriteString(p.stdin, devserver.StopLine) // it may have ended
	_ = p.stdin.Close()
	late := time.AfterFunc(stopPatience, p.kill)
	defer late.Stop()
	<-p.ended
}

// kill ends the process as a crash does.
func (p *process) kill() { _ = p.cmd.Process.Kill() }

// proxy passes requests on to the program that runs, if one does.
type proxy struct {
	to      atomic.Pointer[url.URL]
	through *httputil.ReverseProxy
}

func newProxy() *proxy {
	p := &proxy{}
	p.through = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(r.In.Context().Value(destination{}).(*url.URL))
			r.Out.Host = r.In.Host // the worker checks it, and that the origin of a page is the same
		},
		ModifyResponse: func(a *http.Response) error {
			for _, set := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers", "Vary", "X-Content-Type-Options"} {
				a.Header.Del(set) // the gateway here has set them
			}
			return nil
		},
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { away(w) },
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // a program that is replaced breaks off what it was answering
	}
	return p
}

// replacedWithin is how long a request waits for a program that is being replaced.
const replacedWithin = 5 * time.Second

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	late, cancel := context.WithTimeout(r.Context(), replacedWithin)
	defer cancel()
	to := p.to.Load()
	for to == nil && pause.For(late, 10*time.Millisecond) == nil {
		to = p.to.Load()
	}
	if to == nil {
		away(w)
		return
	}
	p.through.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), destination{}, to)))
}

// destination is the key of where a request goes.
type destination struct{}

// away answers that the program does not run.
func away(w http.ResponseWriter) {
	gateway.Unavailable(w, "the program does not run now; see the terminal of settle dev")
}
