package console

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/settlehq/settle/gateway"
	"github.com/settlehq/settle/internal/audit"
)

// action is something that a visitor does. A link (the function do of templates) leads to its preview, a form there does it; a page may have
// such a form itself: method post, action /-/do/NAME, with {{token}} and the parameters.
type action struct {
	name string
	// may returns why the visitor may not do it, nil if it may. It is asked before the preview and before the execution.
	may func(a *act) error
	// preview says what it would do. nil if there is no preview: a page has the form.
	preview func(ctx context.Context, a *act) (*preview, error)
	// do does it, and says what it has done.
	do func(ctx context.Context, a *act) (*done, error)
}

// act is one execution of an action, or its preview.
type act struct {
	*Console
	Visitor *gateway.Visitor
	// Form has the parameters.
	Form url.Values
}

// Get returns a parameter.
func (a *act) Get(name string) string { return a.Form.Get(name) }

// preview is what an action would do.
type preview struct {
	// Title is what it would do, as a sentence: "Send 214 events again to 3 spaces"; Text says what follows, and whether it can be undone.
	Title, Text string
	// Button is the label of the button. Grave is set if it cannot be undone.
	Button string
	Grave  bool
	// CLI is the command that does the same, and Back where to go instead.
	CLI, Back string
	// Ask are texts that the visitor gives, such as a reason.
	Ask []field
	// Data is for the template of the action, "preview-NAME", if there is one.
	Data any
}

// field is something that a form asks for.
type field struct {
	Name, Label, Value, Hint string
	Required                 bool
}

// done is what an action has done.
type done struct {
	// Text says it, as a sentence without a full stop. URL and Link lead to its effect.
	Text, URL, Link string
	// To is the page to show then.
	To string
	// Command is the command of settle that does the same, for the audit trail.
	Command string
}

// actOf checks a request for an action. It answers itself if the visitor may not do it.
func (c *Console) actOf(w http.ResponseWriter, r *http.Request, form url.Values) (*action, *act) {
	v := visitorOf(r)
	if v == nil {
		c.askToken(w, r)
		return nil, nil
	}
	a, is := c.acts[r.PathValue("action")]
	if !is {
		c.fail(w, r, &missing{"There is no action " + r.PathValue("action")})
		return nil, nil
	}
	to := &act{c, v, form}
	if err := a.may(to); err != nil {
		c.answer(w, r, http.StatusForbidden, "You may not do this", err.Error())
		return nil, nil
	}
	return &a, to
}

// preview shows what an action would do.
func (c *Console) preview(w http.ResponseWriter, r *http.Request) {
	a, to := c.actOf(w, r, r.URL.Query())
	if a == nil {
		return
	}
	if a.preview == nil {
		c.fail(w, r, &missing{"This action has no page of its own"})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	p, err := a.preview(ctx, to)
	if err != nil {
		c.fail(w, r, err)
		return
	}
	c.looks.alone(w, r, http.StatusOK, "preview", previewPage{p, a.name, to.Form})
}

// previewPage is what the template of previews gets.
type previewPage struct {
	*preview
	Action string
	Form   url.Values
}

// WindowTitle returns the title of the window.
func (p previewPage) WindowTitle() string { return p.Title }

// perform does an action, records it in the audit trail, and leads to the page that shows its effect.
func (c *Console) perform(w http.ResponseWriter, r *http.Request) {
	if !c.readForm(w, r) {
		return
	}
	a, to := c.actOf(w, r, r.PostForm)
	if a == nil {
		return
	}
	end, tooMany := to.Visitor.Begin(false)
	if tooMany != "" {
		c.answer(w, r, http.StatusTooManyRequests, "Nothing was done", tooMany)
		return
	}
	defer end()
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	d, err := a.do(ctx, to)
	if err != nil {
		c.answer(w, r, codeOf(err), "This was not done", textOf(err))
		return
	}
	said := notice{Text: d.Text, URL: d.URL, Link: d.Link}
	if err := c.record(ctx, r, to.Visitor, d.Command); err != nil {
		said.Text += ". This is not in the audit trail: " + err.Error()
		said.Bad = true
	}
	c.hub.stale()
	to2, err := url.Parse(local(d.To))
	if err != nil {
		to2 = &url.URL{Path: "/"}
	}
	q := to2.Query()
	q.Set("_said", c.notices.keep(to.Visitor, said))
	to2.RawQuery = q.Encode()
	http.Redirect(w, r, to2.String(), http.StatusSeeOther)
}

// record adds an action to the audit trail.
func (c *Console) record(ctx context.Context, r *http.Request, v *gateway.Visitor, command string) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	name := v.Name()
	if name == "" {
		name = "console"
	}
	e := audit.Entry{At: time.Now().UTC(), By: fmt.Sprintf("%s@%s (console)", name, host), Command: command}
	if c.cfg.User != nil {
		e.User, e.Account = c.cfg.User(ctx)
	}
	return audit.Add(ctx, c.cfg.Bus, e)
}
