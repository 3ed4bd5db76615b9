package settle

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// maxListed is the size of the largest page of documents that is answered over HTTP, usualListed that of one without a limit.
const maxListed, usualListed = 1000, 100

// listedDocument is a document as the gateway lists it.
type listedDocument struct {
	Document string `json:"document"`
	Revision uint64 `json:"revision"`
	Value    Value  `json:"value"`
	Derived  bool   `json:"derived,omitzero"`
}

// listedDocuments is a page of documents.
type listedDocuments struct {
	Documents []listedDocument `json:"documents"`
	Next      string           `json:"next,omitzero"`
}

// ListDocuments answers a list of documents over HTTP, see package gateway.
func (in *ingress) ListDocuments(ctx context.Context, space string, parameters url.Values, mayRead func(document string) bool) (any, error) {
	prefix, page, err := listOf(parameters)
	if err == nil {
		err = model.CheckName("space", space)
	}
	if err != nil {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	all, err := history.ReadContents(ctx, in.bus, space)
	if err != nil {
		return nil, err
	}
	limit := page.Limit
	page.Limit = 0
	entries := slices.DeleteFunc(all.List(prefix, page), func(e history.Listed) bool { return !mayRead(e.Name) })
	answer := listedDocuments{Documents: []listedDocument{}}
	if len(entries) > limit {
		entries, answer.Next = entries[:limit], entries[limit-1].Name
	}
	for _, e := range entries {
		answer.Documents = append(answer.Documents, listedDocument{e.Name, e.Revision, e.Value, e.Derived})
	}
	return answer, nil
}

// FindSpaces answers which spaces match a pattern, see package gateway.
func (in *ingress) FindSpaces(ctx context.Context, pattern, after string, limit int) (names []string, next string, err error) {
	all, err := spacesOf(ctx, in.bus)
	if err != nil {
		return nil, "", err
	}
	of, err := model.SpacesOf(pattern)
	if err != nil {
		return nil, "", err
	}
	names = model.Page{After: after}.Of(of.Among(all))
	if len(names) > limit {
		names, next = names[:limit], names[limit-1]
	}
	return names, next, nil
}

// listOf reads the parameters of a list.
func listOf(parameters url.Values) (prefix string, page model.Page, err error) {
	page.Limit = usualListed
	for name, values := range parameters { // any order: each on its own
		var wrong error
		switch last := values[len(values)-1]; {
		case name == "access_token":
		case len(values) > 1:
			wrong = errors.New("it is there twice")
		case name == "prefix":
			prefix, wrong = last, model.CheckPattern("documents", model.PatternOf(last))
		case name == "after":
			page.After = last
		case name == "order":
			if page.Descending = last == "desc"; last != "desc" && last != "asc" {
				wrong = errors.New("use asc or desc")
			}
		case name == "limit":
			if page.Limit, wrong = strconv.Atoi(last); wrong != nil || page.Limit < 1 || page.Limit > maxListed {
				wrong = fmt.Errorf("use a number from 1 to %d", maxListed)
			}
		default:
			wrong = errors.New("there is no such parameter: it may be prefix, after, limit or order")
		}
		if wrong != nil && err == nil {
			err = fmt.Errorf("parameter %.100q: %w", name, wrong)
		}
	}
	return prefix, page, err
}

// List returns the documents of the space whose names begin with a prefix, "" for all, as they are in the log: at one moment, in the
// order of their names. It reads the whole space, needs no worker, and computes nothing. A space that does not exist has none.
func (s Space) List(ctx context.Context, prefix string, page ...model.Page) ([]history.Listed, error) {
	var p model.Page
	if len(page) > 0 {
		p = page[0]
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("list documents: %w", err)
	}
	if err := model.CheckPattern("documents", model.PatternOf(prefix)); err != nil {
		return nil, err
	}
	if err := s.client.deployed(ctx); err != nil {
		return nil, err
	}
	all, err := history.ReadContents(ctx, s.client.bus, s.name)
	if err != nil {
		return nil, err
	}
	return all.List(prefix, p), nil
}
