package recent

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// listed is how many traces a list has for which the request names no number.
const listed = 50

// Handler answers with texts for a terminal: GET /traces?n=20 with the newest traces, GET /traces/{id} with one as a tree. It has no access
// control: serve it at a loopback address. It refuses requests for other hosts, so that a page of the web cannot read it through a name
// that resolves to this machine.
func (s *Store) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /traces", s.serveList)
	mux.HandleFunc("GET /traces/{id}", s.serveTrace)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if !isLoopback(r.Host) {
			http.Error(w, "use localhost or 127.0.0.1 as the host", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (s *Store) serveList(w http.ResponseWriter, r *http.Request) {
	n := listed
	if text := r.URL.Query().Get("n"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			http.Error(w, "n is the number of traces: use 1 or more", http.StatusBadRequest)
			return
		}
	}
	list := s.List(n)
	if len(list) == 0 {
		_, _ = fmt.Fprintln(w, "no traces yet")
		return
	}
	for i := range list {
		_, _ = fmt.Fprintln(w, list[i].Text())
	}
}

func (s *Store) serveTrace(w http.ResponseWriter, r *http.Request) {
	id, err := trace.TraceIDFromHex(r.PathValue("id"))
	if err != nil {
		http.Error(w, "a trace has a name of 32 hexadecimal digits; /traces lists them", http.StatusBadRequest)
		return
	}
	t, kept := s.Get(id)
	if !kept {
		http.Error(w, "this trace is not kept (any more); /traces lists those that are", http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintln(w, t.Summary.Text())
	_, _ = fmt.Fprint(w, t.Text())
}

// Text returns the summary as a line: id, time, duration, name, numbers and spaces.
func (s *Summary) Text() string {
	text := fmt.Sprintf("%s  %s  %9s  %s  %d spans", s.ID, s.Began.Format("15:04:05.000"), s.Took.Round(10*time.Microsecond), plain(s.Name), s.Spans)
	if s.Dropped > 0 {
		text += fmt.Sprintf(" (%d more were not kept)", s.Dropped)
	}
	if s.Failed > 0 {
		text += fmt.Sprintf(", %d failed", s.Failed)
	}
	if len(s.Spaces) > 0 {
		text += "  " + plain(strings.Join(s.Spaces, " "))
	}
	return text
}
