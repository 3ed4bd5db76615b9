package settle

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/internal/runsearch"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/runs"
)

// foundRun is a run as the gateway answers it.
type foundRun struct {
	Space      string `json:"space"`
	Run        string `json:"run"`
	Workflow   string `json:"workflow"`
	State      string `json:"state"`
	Started    int64  `json:"started"` // in milliseconds since 1970
	Ended      int64  `json:"ended,omitzero"`
	Attributes *Value `json:"attributes,omitempty"`
	Parent     string `json:"parent,omitzero"` // SPACE/RUN
}

// foundRuns is the answer to a search.
type foundRuns struct {
	Runs     []foundRun `json:"runs"`
	Searched int        `json:"searched"` // spaces
	Next     string     `json:"next,omitzero"`
}

// FindRuns answers a search of runs over HTTP, see package gateway.
func (in *ingress) FindRuns(ctx context.Context, parameters url.Values, mayRead func(space, document string) bool) (any, error) {
	s, err := searchOf(parameters, time.Now())
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	spaces, err := spacesOf(ctx, in.bus)
	if err != nil {
		return nil, err
	}
	documents := append(runs.AttributeDocs(), runs.Index)
	spaces = slices.DeleteFunc(spaces, func(space string) bool {
		return slices.ContainsFunc(documents, func(doc string) bool { return !mayRead(space, doc) })
	})
	p, err := runsearch.Find(ctx, s, spaces, func(ctx context.Context, space, doc string) (Value, error) {
		d, err := history.Read(ctx, in.bus, space, doc)
		if err != nil {
			return Value{}, err
		}
		return d.Value, nil
	})
	if errors.Is(err, runs.ErrInvalid) {
		err = &model.ServiceError{Code: model.CodeBadRequest, Text: err.Error()}
	}
	if err != nil {
		return nil, err
	}
	answer := foundRuns{Runs: []foundRun{}, Searched: p.Searched, Next: p.Next}
	for _, f := range p.Runs {
		r := foundRun{Space: f.Space, Run: f.ID, Workflow: f.Workflow, State: string(f.State), Started: f.Started, Ended: f.Ended}
		if !f.Attributes.IsAbsent() {
			r.Attributes = &f.Attributes
		}
		if f.Parent != nil {
			r.Parent = f.Parent.Space + "/" + f.Parent.Run
		}
		answer.Runs = append(answer.Runs, r)
	}
	return answer, nil
}

// searchOf reads the parameters of a search.
func searchOf(parameters url.Values, now time.Time) (*runs.Search, error) {
	s := &runs.Search{}
	s.Attributes = map[string]Value{}
	for name, values := range parameters { // any order: each on its own
		var err error
		key, isAttribute := strings.CutPrefix(name, "attribute.")
		switch last := values[len(values)-1]; {
		case name == "space":
			s.Spaces = values
		case name == "access_token":
		case len(values) > 1:
			err = errors.New("it is there twice")
		case isAttribute:
			s.Attributes[key] = runs.AttributeOf(last)
		case name == "workflow":
			s.Workflow = last
		case name == "state":
			s.State = runs.State(last)
		case name == "since":
			s.Since, err = searchTimeOf(last, now)
		case name == "before":
			s.Before, err = searchTimeOf(last, now)
		case name == "limit":
			s.Limit, err = strconv.Atoi(last)
		case name == "after":
			s.After = last
		default:
			err = errors.New("there is no such parameter: it may be space, workflow, state, since, before, attribute.KEY, limit or after")
		}
		if err != nil {
			return nil, fmt.Errorf("parameter %.100q: %w", name, err)
		}
	}
	return s, nil
}

// searchTimeOf returns a time in milliseconds since 1970: RFC 3339, or a duration before now.
func searchTimeOf(text string, now time.Time) (int64, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d).UnixMilli(), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("%.50q is neither a duration such as 24h nor a time such as 2026-11-22T09:00:00Z", text)
	}
	return at.UnixMilli(), nil
}
