package console

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/settlehq/settle/model"
)

//go:embed pages/*.html assets/*
var files embed.FS

// looks has the templates and the assets.
type looks struct {
	c         *Console
	templates *template.Template
	assets    map[string]*asset
	// rendered counts the parts that were rendered.
	rendered atomic.Uint64
}

// asset is a file that pages refer to, under a name with a hash.
type asset struct {
	kind         string
	plain, small []byte // small is compressed
}

func newLooks(c *Console) (*looks, error) {
	l := &looks{c: c, assets: map[string]*asset{}}
	for _, kind := range []string{"css", "js"} {
		if err := l.join(kind); err != nil {
			return nil, err
		}
	}
	icon, err := files.ReadFile("assets/icon.svg")
	if err != nil {
		return nil, err
	}
	l.assets["icon.svg"] = &asset{kind: "image/svg+xml", plain: icon}
	l.templates, err = template.New("").Funcs(l.funcs()).Funcs(operatingFuncs()).ParseFS(files, "pages/*.html")
	return l, err
}

// join makes one asset of all files of a kind, in the order of their names.
func (l *looks) join(kind string) error {
	entries, err := files.ReadDir("assets")
	if err != nil {
		return err
	}
	var all []byte
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), "."+kind) {
			continue
		}
		text, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			return err
		}
		all = append(append(all, text...), '\n')
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(all)                                   // to memory
	_ = z.Close()
	l.assets["console."+kind] = &asset{kind: mime.TypeByExtension("." + kind), plain: all, small: b.Bytes()}
	return nil
}

// assetURL returns the address of an asset, which changes with its content.
func (l *looks) assetURL(name string) string {
	sum := sha256.Sum256(l.assets[name].plain)
	return "/-/assets/" + name + "?v=" + hex.EncodeToString(sum[:6])
}

// serveAsset answers with an asset, which the browser may keep.
func (l *looks) serveAsset(w http.ResponseWriter, r *http.Request) {
	a := l.assets[r.PathValue("file")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	body := a.plain
	if a.small != nil && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.small
	}
	_, _ = w.Write(body) // the browser may be gone
}

// part renders a part.
func (l *looks) part(p *part) (string, error) {
	l.rendered.Add(1)
	var b strings.Builder
	if err := l.templates.ExecuteTemplate(&b, p.Template, p.Data); err != nil {
		return "", fmt.Errorf("render %s: %w", p.ID, err)
	}
	return b.String(), nil
}

// navItem is an entry of the navigation.
type navItem struct {
	Label, URL, Icon, Key string
	Here                  bool
}

// layout is what the template around all pages gets.
type layout struct {
	Title, Theme, CSS, JS, Icon string
	Nav                         []navItem
	Seen                        string // the version that the page has, "" if it has no stream
	Back                        string
	Visitor                     string
	Token                       bool // the visitor has one
	Notice                      *notice
	Stale                       string
	Body                        template.HTML
	CLI                         string
	Crumbs                      []crumb
	Version                     string
	// Reading is set for the beginning of a page that is sent before the page is read.
	Reading bool
}

// body is what the template of a page gets.
type body struct {
	Data any
	v    *version
}

// Part returns a part as an element.
func (b body) Part(id string) (template.HTML, error) {
	html, is := b.v.html(id)
	if !is {
		return "", fmt.Errorf("the page has no part %s", id)
	}
	return template.HTML(`<div class="part" id="` + template.HTMLEscapeString(id) + `">` + html + `</div>`), nil //nolint:gosec // rendered by a template
}

// page answers with a page.
func (l *looks) page(w http.ResponseWriter, r *http.Request, t *topic, v *version) {
	var b strings.Builder
	if err := l.templates.ExecuteTemplate(&b, t.page.name, body{v.shown.Data, v}); err != nil {
		l.c.fail(w, r, err)
		return
	}
	at := l.around(r, t.page)
	at.Title, at.Body, at.CLI, at.Crumbs = windowTitle(v.shown), template.HTML(b.String()), v.shown.CLI, v.shown.Crumbs //nolint:gosec // rendered by a template
	if t.view.every > 0 || t.view.watch != nil {
		at.Seen = t.stamp(v)
	}
	if _, _, _, failed := t.state(); failed != nil {
		at.Stale = reasonOf(failed)
	}
	l.send(w, r, http.StatusOK, at)
}

// windowTitle is what the window of a browser is called.
func windowTitle(s *shown) string {
	if s.Name != "" {
		return s.Name + ": " + s.Title
	}
	return s.Title
}

// around returns what surrounds a page.
func (l *looks) around(r *http.Request, p *page) *layout {
	at := &layout{
		Theme: themeOf(r), CSS: l.assetURL("console.css"), JS: l.assetURL("console.js"), Icon: l.assetURL("icon.svg"), Back: r.URL.RequestURI(), Version: l.c.cfg.Version,
	}
	v := visitorOf(r)
	if v == nil {
		return at
	}
	at.Visitor = v.Name()
	_, err := r.Cookie(tokenCookie)
	at.Token = err == nil
	whole := v.SeesDeployment() == nil
	for i := range l.c.pages {
		of := &l.c.pages[i]
		if of.nav == "" || !of.everyone && !whole {
			continue
		}
		here := p != nil && (p.name == of.name || p.under == of.name)
		at.Nav = append(at.Nav, navItem{Label: of.nav, URL: strings.TrimSuffix(of.pattern, "{$}"), Icon: of.icon, Here: here})
	}
	if key := r.URL.Query().Get("_said"); key != "" {
		at.Notice = l.c.notices.take(v, key)
	}
	return at
}

// alone answers with a page that is not live.
func (l *looks) alone(w http.ResponseWriter, r *http.Request, code int, name string, data any) {
	var b strings.Builder
	if err := l.templates.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	at := l.around(r, nil)
	at.Title, at.Body = name, template.HTML(b.String()) //nolint:gosec // rendered by a template
	if said, is := data.(interface{ WindowTitle() string }); is {
		at.Title = said.WindowTitle()
	}
	l.send(w, r, code, at)
}

// begun is the answer to a request for a page whose beginning was sent: its status and its headers are those of a page that can be shown.
type begun struct {
	http.ResponseWriter
	token string
	z     *gzip.Writer // nil if the answer is not compressed
	// notice is that of the page, which is taken once.
	notice *notice
}

// WriteHeader does nothing: it is too late for another status.
func (b *begun) WriteHeader(int) {}

func (b *begun) Write(text []byte) (int, error) {
	if b.z != nil {
		return b.z.Write(text)
	}
	return b.ResponseWriter.Write(text)
}

// flush sends what was written.
func (b *begun) flush() {
	if b.z != nil {
		_ = b.z.Flush() // the browser may be gone
	}
	_ = http.NewResponseController(b.ResponseWriter).Flush() // as above, or there is nothing to flush
}

// begin sends the beginning of a page: what is around it, which needs nothing of the deployment. The rest of the answer is sent through what it returns.
func (l *looks) begin(w http.ResponseWriter, r *http.Request, p *page) http.ResponseWriter {
	at := l.around(r, p)
	at.Title, at.Reading = p.nav, true
	if at.Title == "" {
		at.Title = strings.ToUpper(p.name[:1]) + p.name[1:]
	}
	var text bytes.Buffer
	if err := l.templates.ExecuteTemplate(&text, "layout-top", at); err != nil {
		return w // the whole page fails
	}
	b := &begun{ResponseWriter: w, token: formToken(w, r), notice: at.Notice}
	if pageHeaders(w, r) {
		b.z, _ = gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	}
	w.WriteHeader(http.StatusOK)
	_, _ = b.Write(bytes.ReplaceAll(text.Bytes(), []byte(tokenMark), []byte(b.token))) // the browser may be gone
	b.flush()
	return b
}

// pageHeaders sets the headers of a page, and reports whether it is to be compressed.
func pageHeaders(w http.ResponseWriter, r *http.Request) bool {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Add("Vary", "Accept, Cookie, Accept-Encoding")
	small := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	if small {
		h.Set("Content-Encoding", "gzip")
	}
	return small
}

// sendRest sends the rest of a page that was begun.
func (l *looks) sendRest(b *begun, at *layout) {
	at.Notice = cmp.Or(at.Notice, b.notice)
	var text bytes.Buffer
	if err := l.templates.ExecuteTemplate(&text, "layout-rest", at); err != nil {
		l.c.log.Error("render a page of the console", "error", err)
	}
	_, _ = b.Write(bytes.ReplaceAll(text.Bytes(), []byte(tokenMark), []byte(b.token))) // the browser may be gone
	if b.z != nil {
		_ = b.z.Close() // as above
	}
}

// send sends a page, with the token of the browser in its forms.
func (l *looks) send(w http.ResponseWriter, r *http.Request, code int, at *layout) {
	if b, is := w.(*begun); is {
		l.sendRest(b, at)
		return
	}
	var b bytes.Buffer
	if err := l.templates.ExecuteTemplate(&b, "layout", at); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	html := bytes.ReplaceAll(b.Bytes(), []byte(tokenMark), []byte(formToken(w, r)))
	small := pageHeaders(w, r)
	w.WriteHeader(code)
	if small {
		z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
		_, _ = z.Write(html)                           // the browser may be gone
		_ = z.Close()
		return
	}
	_, _ = w.Write(html) // the browser may be gone
}

// message is what a page says that has nothing to show.
type message struct {
	Title, Text string
	State       string
	Back        string // the page before, "" if that is not known
	Home        crumb  // a page that the visitor may see
}

// WindowTitle returns the title of the window.
func (m message) WindowTitle() string { return m.Title }

// answer answers with a message.
func (c *Console) answer(w http.ResponseWriter, r *http.Request, code int, title, text string) {
	back := ""
	if r.Method == http.MethodPost {
		back = local(r.PostForm.Get("back"))
	}
	state := "failed"
	if code == http.StatusNotFound {
		state = "dormant"
	}
	home := crumb{"Overview", "/"}
	if v := visitorOf(r); v != nil && v.SeesDeployment() != nil {
		home = crumb{"Spaces", "/spaces"}
	}
	c.looks.alone(w, r, code, "message", message{title, text, state, back, home})
}

// refreshAfter is after how many seconds a browser loads a page again that could not be loaded. Such a page has no stream.
const refreshAfter = "5"

// fail answers with an error.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, err error) {
	code := codeOf(err)
	title := map[int]string{http.StatusNotFound: "There is nothing here", http.StatusForbidden: "You may not see this", http.StatusServiceUnavailable: "The deployment does not answer"}[code]
	if title == "" {
		title = "This could not be shown"
	}
	if visitorOf(r) == nil && !errors.Is(err, errForm) {
		c.askToken(w, r)
		return
	}
	text := textOf(err)
	_, late := w.(*begun)
	if code == http.StatusServiceUnavailable && r.Method == http.MethodGet && !late {
		w.Header().Set("Refresh", refreshAfter)
		text += ". The page is loaded again every " + refreshAfter + " seconds"
	}
	c.answer(w, r, code, title, text)
}

// textOf is an error without the code of a service, which is that of the page.
func textOf(err error) string {
	if said, is := errors.AsType[*model.ServiceError](err); is && err.Error() == said.Error() {
		return said.Text
	}
	return err.Error()
}

// markStates are the states that have a mark: see assets/10-tokens.css.
var markStates = []string{"clean", "invalid", "running", "gated", "waiting", "parked", "failed", "quarantined", "dormant"}

func isState(s string) bool { return slices.Contains(markStates, s) }

// escapeSegments returns a path of the console.
func pathOf(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(escapeSegment(s))
	}
	return path.Clean(b.String())
}
