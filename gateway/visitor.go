package gateway

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/settlehq/settle/model"
)

// Visitor is the origin of a request for a page (Config.Pages), with the rights that it has now.
type Visitor struct{ c *caller }

// VisitorOf returns the origin of a request that a gateway has passed on, nil if its token is missing or not valid.
func VisitorOf(r *http.Request) *Visitor {
	c, is := r.Context().Value(callerKey{}).(*caller)
	if !is {
		return nil
	}
	return &Visitor{c}
}

// Again identifies the origin of the request anew; nil if its token is no longer valid.
func (v *Visitor) Again() *Visitor {
	c := v.c.reidentify()
	if c == nil {
		return nil
	}
	return &Visitor{c}
}

// Name returns the name of the principal, "" for none.
func (v *Visitor) Name() string { return v.c.name() }

// SendsAs returns the principal in whose name an event of the visitor is sent, "" for none: its own, or that of the operator for one with these rights in a
// deployment with rules, which would refuse an event without a principal. Without rules it is none, so that ids are those of the commands.
func (v *Visitor) SendsAs() string {
	if v.c.principal == nil && v.c.operator && v.c.rules.Closed() {
		return model.Operator
	}
	return v.Name()
}

// Key is the same for visitors that may see the same, as long as no right is changed.
func (v *Visitor) Key() string {
	switch {
	case v.c.principal == nil && v.c.operator:
		return "operator"
	case v.c.principal == nil && v.c.sends:
		return "open"
	case v.c.principal == nil:
		return "token"
	}
	return "principal " + v.c.principal.Name
}

// MayRead returns why the visitor may not read a document, nil if it may.
func (v *Visitor) MayRead(space, document string) error { return refusal(v.c.mayRead(space, document)) }

// MaySend returns why the visitor may not send events of a stream to a space, nil if it may.
func (v *Visitor) MaySend(space, stream string) error { return refusal(v.c.maySend(space, stream)) }

// MayReadAll returns why the visitor may not read every document of a space, nil if it may.
func (v *Visitor) MayReadAll(space string) error {
	if err := v.c.rules.MayReadAll(v.c.ruled(), space); err != nil {
		return err
	}
	if v.c.principal == nil || v.c.asRules() {
		return nil
	}
	for _, p := range v.c.principal.Read {
		if of, all := strings.CutSuffix(p, "/*"); all && matches(of, space) {
			return nil
		}
	}
	return fmt.Errorf("principal %s may not read all documents of space %s", v.c.principal.Name, space)
}

// SeesSpace reports whether the visitor may read documents of a space at all.
func (v *Visitor) SeesSpace(space string) bool {
	if !v.c.rules.SeesSpace(v.c.ruled(), space) {
		return false
	}
	if v.c.principal == nil || v.c.asRules() {
		return true
	}
	for _, p := range v.c.principal.Read {
		if of, _, _ := strings.Cut(p, "/"); matches(of, space) {
			return true
		}
	}
	return false
}

// SeesDeployment returns why the visitor may not see the processes of the deployment and the names of all spaces, nil if it may: it needs the right
// to read everything, or to operate everything.
func (v *Visitor) SeesDeployment() error {
	if v.MayOperate("") == nil {
		return nil
	}
	if err := v.c.rules.MayReadEverything(v.c.ruled()); err != nil {
		return err
	}
	if v.c.principal == nil || v.c.asRules() {
		return nil
	}
	for _, p := range v.c.principal.Read {
		if p == "*/*" {
			return nil
		}
	}
	return fmt.Errorf("principal %s may not see the whole deployment: it needs \"read\": [\"*/*\"]", v.c.principal.Name)
}

// MayOperate returns why the visitor may not change a space other than by an event: redrive, cancel, roll back. "" stands for the whole deployment.
func (v *Visitor) MayOperate(space string) error {
	switch {
	case v.c.principal != nil:
		for _, p := range v.c.principal.Operate {
			if p == "*" || space != "" && matches(p, space) {
				return nil
			}
		}
		return fmt.Errorf("principal %s may not operate %s: its entry in the file of principals has no such \"operate\"", v.c.principal.Name, spaceOrAll(space))
	case !v.c.sends:
		return fmt.Errorf("the token of the gateway reads documents only; operating %s needs a principal with \"operate\"", spaceOrAll(space))
	case space == "":
		return v.c.rules.MayReadEverything(v.c.ruled())
	}
	return v.c.rules.MayReadAll(v.c.ruled(), space)
}

// Begin counts a request of the visitor, or an open stream of updates if watch is set, until end is called; or it returns why it is one too many.
func (v *Visitor) Begin(watch bool) (end func(), tooMany string) { return v.c.begin(watch) }

func spaceOrAll(space string) string {
	if space == "" {
		return "the deployment"
	}
	return "space " + space
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func refusal(text string) error {
	if text == "" {
		return nil
	}
	return fmt.Errorf("%s", text)
}

// isPage reports whether a request is for the pages and not for the interface of programs.
func (g *Gateway) isPage(r *http.Request) bool {
	return g.cfg.Pages != nil && r.URL.Path != "/v1" && !strings.HasPrefix(r.URL.Path, "/v1/")
}

// isVisit reports whether a person has followed a link to a page. A page of another site cannot read the answer to that, nor show it in a frame.
func (g *Gateway) isVisit(r *http.Request) bool {
	return g.isPage(r) && r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// pages answers requests for pages, which end when waits does.
func (g *Gateway) pages(waits context.Context) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(waits, cancel)()
		g.cfg.Pages.ServeHTTP(w, r.WithContext(ctx))
	})
}
