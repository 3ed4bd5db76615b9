package console

import (
	"context"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/bus/natstest"
	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/audit"
)

// as makes the requests of a principal, unless they are another one's.
type as struct {
	*http.Transport
	principal string
}

func (a as) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+a.principal)
	}
	return a.Transport.RoundTrip(r)
}

// operate starts a deployment with a console for three principals: boss may do everything, reader reads everything, and clerk reads what is of space
// "a". Requests are boss's.
func operate(t *testing.T, cfg settle.Config) *world {
	t.Helper()
	t.Parallel()
	within, cancel := context.WithTimeout(t.Context(), testPatience)
	t.Cleanup(cancel)
	w := &world{T: t, within: within, server: natstest.StartServer(t, embedded.Config{Listen: ":0"})}
	cfg.Bus.URL, cfg.Bus.Partitions, cfg.Logger = w.server.ClientURL(), 2, slog.New(slog.DiscardHandler)
	var err error
	if w.d, err = settle.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.d.Stop(context.Background()); err != nil {
			t.Log(err)
		}
	})
	w.serve(gateway.Config{Principals: principals(t, `boss ,"read":["*/*"],"send":["*/*"],"operate":["*"]`, `reader ,"read":["*/*"]`, `clerk ,"read":["a/*"]`)})
	w.http.Transport = as{&http.Transport{}, "boss"}
	return w
}

// send sends an event and does not wait for its end.
func (w *world) send(space, stream, id string, payload any) {
	w.Helper()
	if _, err := w.d.Client().Send(w.Context(), settle.Outgoing{Space: space, Stream: stream, ID: settle.ID(id), Payload: payload}); err != nil {
		w.Fatal(err)
	}
}

// eventually waits for a condition.
func (w *world) eventually(what string, is func() bool) {
	w.Helper()
	for !is() {
		select {
		case <-w.within.Done():
			w.Fatalf("never: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// formOf returns the fields of the form of an action in a page.
func formOf(text, action string) url.Values {
	_, text, found := strings.Cut(text, `action="/-/do/`+action+`"`)
	if !found {
		return nil
	}
	text, _, _ = strings.Cut(text, "</form>")
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(text, -1) {
		if m[1] != "token" {
			form.Add(m[1], html.UnescapeString(m[2]))
		}
	}
	return form
}

// acts does an action as a visitor does: its preview, and then the form of that, with what is asked. Nothing happens without the token of the form, and
// nothing for a principal without the right. The action is in the audit trail, with boss's name and the command that does the same. It returns the
// text of the preview, and that of the page to which the action leads.
func (w *world) acts(action string, query, asked url.Values, command string) (before, after string) {
	w.Helper()
	answer, text := w.get("/-/do/" + action + "?" + query.Encode())
	if answer.StatusCode != http.StatusOK {
		w.Fatalf("the preview of %s: %d %s", action, answer.StatusCode, visible(text))
	}
	form := formOf(text, action)
	for name, values := range asked {
		form[name] = values
	}
	return visible(text), w.submits(action, form, command)
}

// submits sends the form of an action, see acts.
func (w *world) submits(action string, form url.Values, command string) string {
	w.Helper()
	trail := func() []audit.Entry {
		all, err := audit.List(w.Context(), w.d.Bus())
		if err != nil {
			w.Fatal(err)
		}
		return all
	}
	was := len(trail())
	with := func(token string) url.Values {
		v := url.Values{"token": {token}}
		for name, values := range form {
			v[name] = values
		}
		return v
	}
	if answer, text := w.post("/-/do/"+action, with(strings.Repeat("0", 32))); answer.StatusCode != http.StatusForbidden {
		w.Errorf("%s without the token of its form: %d %s", action, answer.StatusCode, visible(text))
	}
	if answer, text := w.post("/-/do/"+action, with(w.token()), "Sec-Fetch-Site", "cross-site"); answer.StatusCode != http.StatusForbidden {
		w.Errorf("%s from another site: %d %s", action, answer.StatusCode, visible(text))
	}
	if answer, text := w.post("/-/do/"+action, with(w.token()), "Authorization", "Bearer reader"); answer.StatusCode < 400 || answer.StatusCode >= 500 {
		w.Errorf("%s of a principal that may only read: %d %s", action, answer.StatusCode, visible(text))
	}
	if n := len(trail()); n != was {
		w.Errorf("%s has %d entries in the audit trail before it was done", action, n-was)
	}
	answer, text := w.post("/-/do/"+action, with(w.token()))
	if answer.StatusCode != http.StatusOK || strings.HasPrefix(answer.Request.URL.Path, "/-/") {
		w.Fatalf("%s: %d at %s: %s", action, answer.StatusCode, answer.Request.URL, visible(text))
	}
	all := trail()
	if len(all) != was+1 {
		w.Fatalf("%s has %d entries in the audit trail", action, len(all)-was)
	}
	if e := all[was]; e.Command != command || !strings.HasPrefix(e.By, "boss@") {
		w.Errorf("the audit trail has %+v, want command %q of boss", e, command)
	}
	return visible(text)
}

// changes opens the stream of a page, does something, and waits until the stream brings a text.
func (w *world) changes(path string, do func(), text string) {
	w.Helper()
	w.get(path)
	lines, end := w.streamOf(path, "Authorization", "Bearer boss")
	defer end()
	w.untilLine(lines, "event: status")
	do()
	w.untilLine(lines, text)
}

var errBank = errors.New("bank 7 is closed")

// doors are handlers that wait until they are opened.
type doors struct{ open chan struct{} }

// office is a program whose events fail, wait and send.
func office(d *doors) *settle.Program {
	p := settle.NewProgram("office")
	p.Handle("add", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		by, _ := ev.Payload.AsInt()
		count.Update(tx, func(n *int) { *n += int(by) })
		return settle.ValueOf(count.Get(tx))
	})
	p.Handle("order", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		tx.Send("stock", "add", 3)
		tx.Send("bank", "pay", nil)
		tx.SendAt("a", "add", tx.Now().Add(time.Hour), 1)
		return settle.ValueOf("ordered")
	})
	p.Handle("many", func(tx *settle.Tx, ev *settle.Event) (settle.Value, error) {
		n, _ := ev.Payload.AsInt()
		for i := range n {
			tx.Send(fmt.Sprint("shelf-", i%20), "add", 1)
		}
		tx.Send("bank", "pay", nil)
		return settle.Value{}, nil
	})
	p.Handle("pay", func(*settle.Tx, *settle.Event) (settle.Value, error) { return settle.Value{}, errBank })
	p.Handle("ask", func(_ *settle.Tx, ev *settle.Event) (settle.Value, error) {
		return settle.Value{}, fmt.Errorf("guest %s is unknown", ev.ID)
	})
	if d != nil {
		p.Handle("hang", func(*settle.Tx, *settle.Event) (settle.Value, error) {
			<-d.open
			return settle.ValueOf("late")
		})
	}
	double.Compute(p, func(v *settle.View) (int, error) { return 2 * count.Get(v), nil })
	return p
}

// closedDoors returns doors that are opened when the test ends at the latest, before the deployment stops.
func (w *world) opens(d *doors) (open func()) {
	done := false
	open = func() {
		if !done {
			done = true
			close(d.open)
		}
	}
	w.Cleanup(open)
	return open
}

// busy computes for a while, as a slow handler does.
func busy(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
		spins.Add(1)
		runtime.Gosched()
	}
}

// spins counts the turns of busy.
var spins atomic.Int64
