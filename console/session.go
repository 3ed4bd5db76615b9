package console

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/settlehq/settle/gateway"
)

const (
	// formCookie has a random text, from which the token of the browser's forms follows.
	formCookie = "settle_form"
	// themeCookie is light, dark or absent.
	themeCookie = "settle_theme"
	// tokenCookie is the cookie in which the gateway looks for a token.
	tokenCookie = "settle_token"
)

// tokenMark stands in rendered parts for the token of the browser that they are sent to: what is rendered is shared.
var tokenMark = "form-token-" + rand.Text()

// formToken returns the token of the forms of a browser, and gives it a cookie if it has none. A page of another site can read neither.
func formToken(w http.ResponseWriter, r *http.Request) string {
	if c, err := r.Cookie(formCookie); err == nil && len(c.Value) == 26 {
		return tokenOf(c.Value)
	}
	secret := rand.Text()
	setCookie(w, r, formCookie, secret, http.SameSiteStrictMode)
	return tokenOf(secret)
}

func tokenOf(secret string) string {
	sum := sha256.Sum256([]byte("form " + secret))
	return hex.EncodeToString(sum[:16])
}

var errForm = errors.New("this form is from another session or another site: go back, load the page again, and repeat it")

// checkForm returns an error unless a POST comes from a form of this console in the same browser.
func checkForm(r *http.Request) error {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return errForm
	}
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" && r.Header.Get("Cookie") == "" {
		return errForm
	}
	c, err := r.Cookie(formCookie)
	if err != nil || subtle.ConstantTimeCompare([]byte(tokenOf(c.Value)), []byte(r.PostFormValue("token"))) != 1 {
		return errForm
	}
	return nil
}

// setCookie sets a cookie that scripts cannot read. An empty value removes it.
func setCookie(w http.ResponseWriter, r *http.Request, name, value string, site http.SameSite) {
	c := &http.Cookie{Name: name, Value: value, Path: "/", HttpOnly: true, SameSite: site, Secure: r.TLS != nil}
	if value == "" {
		c.MaxAge = -1
	} else if name == themeCookie {
		c.MaxAge = 365 * 24 * 3600
	}
	http.SetCookie(w, c)
}

// maxForm bounds the body of a form: a payload, and the rest.
const maxForm = 1<<20 + 64<<10

// readForm reads a form of this console; it answers itself if it is none.
func (c *Console) readForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		c.answer(w, r, http.StatusBadRequest, "The form cannot be read", err.Error())
		return false
	}
	if err := checkForm(r); err != nil {
		c.answer(w, r, http.StatusForbidden, "Nothing was done", err.Error())
		return false
	}
	return true
}

// setTheme chooses light or dark.
func (c *Console) setTheme(w http.ResponseWriter, r *http.Request) {
	if !c.readForm(w, r) {
		return
	}
	theme := r.PostFormValue("theme")
	if theme != "light" && theme != "dark" {
		theme = ""
	}
	setCookie(w, r, themeCookie, theme, http.SameSiteLaxMode)
	http.Redirect(w, r, local(r.PostFormValue("back")), http.StatusSeeOther)
}

// themeOf returns the theme that a browser has chosen, "" for that of the system.
func themeOf(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		return c.Value
	}
	return ""
}

// local returns an address of this console; that of the overview in place of any other.
func local(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(address, "//") || strings.ContainsAny(address, "\\\r\n") {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.RawQuery, Fragment: u.Fragment}).String()
}

// askToken asks for a token.
func (c *Console) askToken(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		http.Error(w, "a token is needed", http.StatusUnauthorized)
		return
	}
	had, _ := r.Cookie(tokenCookie)
	back := r.URL.RequestURI()
	if r.URL.Path == "/-/login" {
		back = r.URL.Query().Get("back")
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="settle"`)
	c.looks.alone(w, r, http.StatusUnauthorized, "login", map[string]any{"Back": local(back), "Refused": had != nil})
}

// setToken keeps a token in a cookie.
func (c *Console) setToken(w http.ResponseWriter, r *http.Request) {
	if !c.readForm(w, r) {
		return
	}
	setCookie(w, r, tokenCookie, strings.TrimSpace(r.PostFormValue("secret")), http.SameSiteLaxMode)
	http.Redirect(w, r, local(r.PostFormValue("back")), http.StatusSeeOther)
}

// dropToken removes the token.
func (c *Console) dropToken(w http.ResponseWriter, r *http.Request) {
	if !c.readForm(w, r) {
		return
	}
	setCookie(w, r, tokenCookie, "", http.SameSiteLaxMode)
	http.Redirect(w, r, "/-/login", http.StatusSeeOther)
}

// notices are texts that the next page shows once, by key.
type notices struct {
	mu    sync.Mutex
	texts map[string]notice
}

// notice is what an action says on the page after it. Bad is set if it has failed.
type notice struct {
	Text, URL, Link string
	Bad             bool
	key             string // of the visitor
	until           time.Time
}

// maxNotices bounds the texts that are kept.
const maxNotices = 1000

// keep keeps a notice for a visitor for a minute, and returns its key.
func (n *notices) keep(v *gateway.Visitor, what notice) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for key, t := range n.texts { // any order
		if now.After(t.until) || len(n.texts) >= maxNotices {
			delete(n.texts, key)
		}
	}
	if n.texts == nil {
		n.texts = map[string]notice{}
	}
	key := rand.Text()
	what.key, what.until = v.Key(), now.Add(time.Minute)
	n.texts[key] = what
	return key
}

// take returns a notice of a visitor, nil if there is none.
func (n *notices) take(v *gateway.Visitor, key string) *notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, is := n.texts[key]
	if !is || v == nil || t.key != v.Key() || time.Now().After(t.until) {
		return nil
	}
	return &t
}
