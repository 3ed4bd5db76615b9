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
	entries := slices.DeleteFunc(entriesOf(all, prefix, page), func(e Entry) bool { return !mayRead(e.Name) })
	answer := listedDocuments{Documents: []listedDocument{}}
	if len(entries) > limit {
		entries, answer.Next = entries[:limit], entries[limit-1].Name
	}
	for _, e := range entries {
		answer.Documents = append(answer.Documents, listedDocument{e.Name, e.Revision, e.Value, e.Derived})
	}
	return answer, nil
}

// listOf reads the parameters of a list.
func listOf(parameters url.Values) (prefix string, page Page, err error) {
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
