package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/model"
)

// page is a kind of page.
type page struct {
	// name is that of its template, pages/NAME.html.
	name string
	// pattern is its path, as of http.ServeMux, such as /spaces/{space}.
	pattern string
	// nav is its label in the navigation, "" for a page that others lead to; icon is the data of an SVG path of 16 by 16, and under the name of
	// the page that is marked in the navigation, if not its own.
	nav, icon, under string
	// params are the parameters of its query. Others are ignored.
	params []string
	// The page is for all visitors, and checks itself what each may see. Other pages are for visitors that may see the deployment.
	everyone bool
	// open begins to show one address of the page. It does no I/O.
	open func(c *Console, q *query) (view, error)
}

// query is the address of a page, and what may be seen there.
type query struct {
	path   map[string]string
	values url.Values
	// visitor has the rights under which the page is loaded. It is replaced before each load.
	visitor *gateway.Visitor
	// at is the address itself, for links that change a parameter.
	at *url.URL
}

// Path returns a part of the path, and Param a parameter, "" if it is not given.
func (q *query) Path(name string) string  { return q.path[name] }
func (q *query) Param(name string) string { return q.values.Get(name) }

// Address returns the address with other values of parameters, in pairs; "" removes one.
func (q *query) Address(pairs ...string) string {
	v := url.Values{}
	for name, values := range q.values { // any order: Encode sorts
		v[name] = values
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Del(pairs[i])
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	u := url.URL{Path: q.at.Path, RawQuery: v.Encode()}
	return u.String()
}

// view is an address of a page that is being shown.
type view struct {
	// load reads what the page shows now. Calls do not overlap, so that it may remember what it showed last.
	load func(ctx context.Context) (*shown, error)
	// every is how often to load again while the page is open, 0 for a page that does not change by itself.
	every time.Duration
	// watch, if not nil, calls changed when the page should be loaded again before that, until ctx ends.
	watch func(ctx context.Context, changed func())
}

// shown is what a page shows.
type shown struct {
	// Title answers the question of the page, as a sentence without a full stop. State is the state of the title's mark, "" for none.
	Title, State string
	// Name is the short name of the page, for the window; default: the label in the navigation.
	Name string
	// Crumbs lead to the pages above.
	Crumbs []crumb
	// CLI is the command that prints the same.
	CLI   string
	Parts []part
	// Data is what the template of the page gets, besides the parts.
	Data any
}

// crumb is a link to a page above.
type crumb struct{ Text, URL string }

// part is a piece of a page that is sent again when it changes.
type part struct {
	// ID is the id of its element, unique in the page.
	ID       string
	Template string
	Data     any
	// Within is the id of a part that contains this one. Stamp of that one decides then whether it is sent as a whole: if the stamp is the same as
	// before, only the contained parts are compared.
	Within, Stamp string
	// Key, if not "", is the same as long as the part looks the same: then it is not rendered again.
	Key string
}

// container is the data of a part that contains others: it gets what they look like, by id, before it is rendered.
type container interface {
	contain(inner map[string]template.HTML)
}

// missing is the error about a page, or what it is about, that does not exist.
type missing struct{ text string }

func (m *missing) Error() string { return m.text }

// forbidden is the error about a right that the visitor lacks.
type forbidden struct{ err error }

func (f *forbidden) Error() string { return f.err.Error() }

func refuse(err error) error {
	if err == nil {
		return nil
	}
	return &forbidden{err}
}

// need returns an error unless a name is valid.
func need(what, name string) error {
	if err := model.CheckName(what, name); err != nil {
		return &missing{err.Error()}
	}
	return nil
}

// queryOf returns the query of a request for a page.
func (p *page) queryOf(r *http.Request, v *gateway.Visitor) *query {
	q := &query{path: map[string]string{}, values: url.Values{}, visitor: v}
	for part := range strings.SplitSeq(p.pattern, "/") {
		if name, is := strings.CutPrefix(part, "{"); is {
			name = strings.TrimRight(strings.TrimSuffix(name, "}"), ".$")
			q.path[name] = r.PathValue(name)
		}
	}
	given := r.URL.Query()
	for _, name := range p.params {
		if value := given.Get(name); value != "" && len(value) <= maxParam {
			q.values.Set(name, value)
		}
	}
	q.at = &url.URL{Path: r.URL.Path, RawQuery: q.values.Encode()}
	return q
}

// maxParam bounds a parameter of a page.
const maxParam = 1024

// servePage answers a request for a page, or for the stream of its changes.
func (c *Console) servePage(w http.ResponseWriter, r *http.Request, p *page) {
	if strings.TrimSuffix(p.pattern, "{$}") == "/" && r.URL.Path != "/" {
		c.fail(w, r, &missing{fmt.Sprintf("There is no page %s", r.URL.Path)})
		return
	}
	v := gateway.VisitorOf(r)
	if v == nil {
		c.askToken(w, r)
		return
	}
	stream := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	end, tooMany := v.Begin(stream)
	if tooMany != "" {
		w.Header().Set("Retry-After", "1")
		http.Error(w, tooMany, http.StatusTooManyRequests)
		return
	}
	defer end()
	if !p.everyone {
		if err := v.SeesDeployment(); err != nil {
			c.fail(w, r, &forbidden{err})
			return
		}
	}
	c.memory.visited()
	t, err := c.hub.topic(p, p.queryOf(r, v))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	if stream {
		c.stream(w, r, t, v)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	c.answerWith(ctx, w, r, t)
}

// headStart is how long a browser waits for a page before it gets the beginning. An answer that comes in that time has the status of what was read.
// Console.headStart is it, but in tests.
const headStart = 10 * time.Millisecond

// answerWith answers with what a topic shows now. A browser that opens a page gets the beginning of it, what is around it, while that is read.
func (c *Console) answerWith(ctx context.Context, w http.ResponseWriter, r *http.Request, t *topic) {
	var now *version
	var err error
	var panicked any
	read := make(chan struct{})
	go func() { // ends with ctx at the latest, and is waited for
		defer close(read)
		defer func() { panicked = recover() }()
		now, err = t.current(ctx)
	}()
	if r.Header.Get("Sec-Fetch-Dest") == "document" {
		timer := time.NewTimer(c.headStart)
		defer timer.Stop()
		select {
		case <-read:
		case <-timer.C:
			w = c.looks.begin(w, r, t.page)
		}
	}
	<-read
	if panicked != nil {
		panic(panicked) // here it ends this answer, and there it would end the process
	}
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.looks.page(w, r, t, now)
}

// codeOf returns the status for an error.
func codeOf(err error) int {
	if said, is := errors.AsType[*model.ServiceError](err); is && said.Code >= 400 && said.Code < 600 {
		return said.Code
	}
	switch {
	case isA[*missing](err):
		return http.StatusNotFound
	case isA[*forbidden](err):
		return http.StatusForbidden
	}
	return http.StatusServiceUnavailable
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// has reports whether there is a page of that name.
func (c *Console) has(name string) bool {
	return slices.ContainsFunc(c.pages, func(p page) bool { return p.name == name })
}
