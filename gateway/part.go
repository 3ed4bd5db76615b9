package gateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

// wanted is what a request wants of a document.
type wanted struct {
	live.Get
	// paged is set if the answer is a page of the members or elements at the path: those behind After, at most Limit.
	paged bool
	page  model.Page
	// fromFirst is set if the page begins with the first entry.
	fromFirst bool
}

// read reads the parameters of a request for a document. The error is a *model.ServiceError.
func (d *wanted) read(q url.Values) (err error) {
	if err = knownParameters(q, "timeout", "path", "after", "limit", "order"); err != nil {
		return err
	}
	if t := q.Get("timeout"); t != "" {
		if err := d.Timeout.UnmarshalText([]byte(t)); err != nil {
			return badRequest("timeout: %v", err)
		}
	}
	d.Path = q["path"]
	if d.paged = q.Has("after") || q.Has("limit") || q.Has("order"); !d.paged {
		return nil
	}
	d.page.After = q.Get("after")
	switch order := q.Get("order"); order {
	case "desc":
		d.page.Descending = true
	case "", "asc":
	default:
		return badRequest("order is %.40q; use asc or desc", order)
	}
	d.fromFirst = !q.Has("after") && !d.page.Descending
	d.page.Limit, err = limitOf(q)
	return err
}

// where names the place in the document, for people.
func (d *wanted) where() string {
	if len(d.Path) == 0 {
		return "document " + d.Document
	}
	return "document " + d.Document + " at " + strings.Join(d.Path, "/")
}

// entry is a member of an object, or an element of an array, whose key is its index.
type entry struct {
	Key   any         `json:"key"`
	Value model.Value `json:"value"`
}

// entries is a page of them.
type entries struct {
	Revision uint64  `json:"revision"`
	Size     int     `json:"size"` // of the object or array
	Entries  []entry `json:"entries"`
	Next     any     `json:"next,omitempty"`
}

// answerPage answers with a page of the value.
func (d *wanted) answerPage(w http.ResponseWriter, a *live.Answer, patience time.Duration) {
	v, err := model.ParseValue(a.Value)
	if err != nil {
		failWith(w, err)
		return
	}
	p := entries{Revision: a.Revision, Size: v.Len(), Entries: []entry{}}
	switch v.Kind() {
	case model.KindObject:
		p.ofObject(v, d.page, d.fromFirst)
	case model.KindArray:
		err = p.ofArray(v, d.page)
	default:
		err = badRequest("%s is %s; there are pages of objects and arrays only: leave out after, limit and order", d.where(), v.Kind())
	}
	if err != nil {
		failWith(w, err)
		return
	}
	data, err := json.Marshal(p)
	if err != nil {
		failWith(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Del("ETag")                                                       // it is of the value, and not of the page
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // not every writer supports it
	_, _ = w.Write(append(data, '\n'))                                           // the client may be gone
}

// ofObject adds members: from the first one, or those of the page. The first may have the empty name, behind which a model.Page begins.
func (p *entries) ofObject(v model.Value, page model.Page, fromFirst bool) {
	limit := page.Limit
	page.Limit = 0
	keys := v.Keys()
	if !fromFirst {
		keys = page.Of(keys)
	}
	if len(keys) > limit {
		keys = keys[:limit]
		p.Next = keys[limit-1]
	}
	for _, k := range keys {
		p.Entries = append(p.Entries, entry{k, v.Get(k)})
	}
}

func (p *entries) ofArray(v model.Value, page model.Page) error {
	n, step := v.Len(), 1
	at := 0
	if page.Descending {
		at, step = n-1, -1
	}
	if page.After != "" {
		after, err := strconv.Atoi(page.After)
		if err != nil || after < 0 {
			return badRequest("after is %.40q; it is the index of an element here, such as 99", page.After)
		}
		at = min(after, n) + step
	}
	for ; at >= 0 && at < n; at += step {
		if len(p.Entries) == page.Limit {
			p.Next = p.Entries[page.Limit-1].Key
			break
		}
		p.Entries = append(p.Entries, entry{at, v.Index(at)})
	}
	return nil
}
