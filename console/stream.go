package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/settlehq/settle/gateway"
)

const (
	// heartbeat is how often a stream without changes sends something.
	heartbeat = 10 * time.Second
	// recheck is how often the rights of an open stream are checked.
	recheck = time.Second
	// writePatience is how long a browser may take to receive a change.
	writePatience = 10 * time.Second
)

// change is a part in a stream.
type change struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
}

// pageStatus is what a stream sends about the page as a whole.
type pageStatus struct {
	Title string `json:"title"`
	// Stale is why the page is out of date, "" if it is not, and Age how old it is, in milliseconds.
	Stale string `json:"stale"`
	Age   int64  `json:"age"`
}

// sender writes a stream.
type sender struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	token string // of forms
}

// stream sends the changes of a page until the browser leaves or the visitor loses its rights.
func (c *Console) stream(w http.ResponseWriter, r *http.Request, t *topic, v *gateway.Visitor) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := &sender{w: w, rc: http.NewResponseController(w), token: formToken(w, r)}
	seen := t.seenOf(r.URL.Query().Get("_seen"))
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		seen = t.seenOf(last)
	}
	if err := out.write("retry: 1000\n\n"); err != nil {
		return
	}
	defer t.open()()
	t.nudge()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	checks := time.NewTicker(recheck)
	defer checks.Stop()
	said := ""
	for {
		now, since, changed, failed := t.state()
		if now != nil {
			if err := out.changes(t, now, seen); err != nil {
				return
			}
			seen = now.number
		}
		if text := statusOf(now, failed, since); text != said {
			if err := out.write("event: status\ndata: " + text + "\n\n"); err != nil {
				return
			}
			said = text
		}
	waiting:
		for {
			select {
			case <-changed:
				break waiting
			case <-beat.C:
				if err := out.write(": \n\n"); err != nil {
					return
				}
			case <-checks.C:
				if again := v.Again(); again == nil || again.Key() != v.Key() {
					_ = out.write("event: gone\ndata: null\n\n") // best effort
					return
				}
			case <-r.Context().Done():
				return
			case <-c.ctx.Done():
				return
			}
		}
	}
}

func statusOf(now *version, failed error, since time.Time) string {
	var s pageStatus
	if now != nil {
		s.Title = windowTitle(now.shown)
	}
	if failed != nil {
		s.Stale = reasonOf(failed)
		s.Age = time.Since(since).Milliseconds()
		if now != nil {
			s.Age = time.Since(now.at).Milliseconds()
		}
	}
	text, _ := json.Marshal(&s) // of strings and a number
	return string(text)
}

// reasonOf returns an error for people.
func reasonOf(err error) string {
	var unwrapped interface{ Timeout() bool }
	if errors.As(err, &unwrapped) && unwrapped.Timeout() {
		return "no answer in time: " + err.Error()
	}
	return err.Error()
}

// changes sends the parts that are newer than what the browser has.
func (s *sender) changes(t *topic, v *version, seen uint64) error {
	newer := v.newer(seen)
	if len(newer) == 0 {
		return nil
	}
	var b bytes.Buffer
	for i, p := range newer {
		data, err := plainJSON(change{p.id, strings.ReplaceAll(p.html, tokenMark, s.token)})
		if err != nil {
			return err
		}
		if i == len(newer)-1 { // the browser has the version when it has all parts of it
			fmt.Fprintf(&b, "id: %s\n", t.stamp(v))
		}
		fmt.Fprintf(&b, "event: part\ndata: %s\n\n", data)
	}
	return s.write(b.String())
}

// plainJSON encodes a value in one line, with < as it is: it is not a part of a page.
func plainJSON(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func (s *sender) write(text string) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writePatience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.rc.Flush()
}
