package gateway

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// tokenCookie is the name of the cookie that may contain the token.
const tokenCookie = "settle_token"

// guard passes on requests that have access: to the interface of programs, or to pages.
func (g *Gateway) guard(next, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Add("Vary", "Origin")
		switch origin := r.Header.Get("Origin"); {
		case !g.knowsHost(r.Host):
			g.observed.refused.Add(refusedHost)
			fail(w, http.StatusForbidden, "this host name is not configured; see --http-host")
		case !g.allows(origin, r) && !g.isVisit(r):
			g.observed.refused.Add(refusedOrigin)
			fail(w, http.StatusForbidden, "pages of this origin are not allowed; see --http-origin")
		case g.isPage(r):
			if c := g.identify(r); c != nil {
				r = c.within(r)
			}
			pages.ServeHTTP(w, r) // which asks a visitor without rights for a token
		case origin != "" && r.Method == http.MethodOptions:
			g.share(w, origin)
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, If-None-Match")
			w.WriteHeader(http.StatusNoContent)
		default:
			g.share(w, origin)
			c := g.identify(r)
			if c == nil {
				g.observed.refused.Add(refusedToken)
				w.Header().Set("WWW-Authenticate", `Bearer realm="settle"`)
				fail(w, http.StatusUnauthorized, "a token is needed")
				return
			}
			if path.Clean(r.URL.Path) != r.URL.Path { // a redirect would repeat a request, with its token, about something else
				fail(w, http.StatusNotFound, "this path has empty names, or . or .. among them")
				return
			}
			next.ServeHTTP(w, c.within(r))
		}
	})
}

// knowsHost reports whether a request is addressed to this gateway. A foreign page can make its own host name
// resolve to this machine, but the browser sends that name.
func (g *Gateway) knowsHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	switch {
	case slices.Contains(g.cfg.Hosts, host):
		return true
	case g.loopback:
		return isLoopback(host)
	}
	return len(g.cfg.Hosts) == 0
}

// allows reports whether pages of an origin have access. Requests that no page makes do.
func (g *Gateway) allows(origin string, r *http.Request) bool {
	if origin == "" {
		return r.Header.Get("Sec-Fetch-Site") != "cross-site" // a page may send no Origin
	}
	return g.isOwn(origin, r) || slices.Contains(g.cfg.Origins, origin)
}

// isOwn reports whether an origin is that of the gateway's own pages, as a request names the gateway.
func (g *Gateway) isOwn(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && u.Host == r.Host && (g.tls == nil || u.Scheme == "https")
}

// share permits the page to read the answer.
func (g *Gateway) share(w http.ResponseWriter, origin string) {
	if origin == "" {
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", "ETag, Retry-After, Settle-Stale")
}

// identify returns the origin of a request with its present rights, nil if its token is missing or not valid.
func (g *Gateway) identify(r *http.Request) *caller {
	c := g.holder(r)
	if c == nil {
		return nil
	}
	return &caller{
		principal: c.principal, sends: c.sends, operator: c.operator, usage: c.usage, rules: g.cfg.Access.Rules(),
		reidentify: func() *caller { return g.identify(r) },
	}
}

// holder returns the holder of the token of a request, nil if it is missing or not valid.
func (g *Gateway) holder(r *http.Request) *caller {
	if g.cfg.Token == "" && g.principals == nil {
		return &caller{sends: true, operator: g.cfg.Operator || g.cfg.OperatorPages && g.isOwnVisit(r)} // on a loopback address: see Listen
	}
	token := tokenOf(r)
	if token == "" {
		return nil
	}
	if g.cfg.Token != "" && g.isToken(token) {
		return &caller{}
	}
	if g.principals == nil {
		return nil
	}
	return g.principals.of(token)
}

// isOwnVisit reports whether a request for a page comes from this gateway's own pages, from a link or an address that a person has opened, or
// from a program of this machine: from no page of another origin, not even one that Config.Origins allows, or one of another port of this machine.
func (g *Gateway) isOwnVisit(r *http.Request) bool {
	if !g.loopback || !g.isPage(r) {
		return false
	}
	if g.isVisit(r) {
		return true
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		return g.isOwn(origin, r)
	}
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "" || site == "none" || site == "same-origin"
}

// tokenOf returns the token of a request, "" if there is none. In a URL it is for EventSource and WebSocket
// only, which cannot set headers in browsers: URLs are logged on the way.
func tokenOf(r *http.Request) string {
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return bearer
	}
	if c, err := r.Cookie(tokenCookie); err == nil {
		return c.Value
	}
	if r.Method == http.MethodPost {
		return ""
	}
	return r.URL.Query().Get("access_token")
}

// isToken compares in constant time.
func (g *Gateway) isToken(given string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(g.cfg.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
