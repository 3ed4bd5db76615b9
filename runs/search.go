package runs

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/settlehq/settle/model"
)

// Bounds of the attributes of a run, and of a page of found ones.
const (
	// MaxAttributes is the largest number of attributes of a run, and MaxAttributeBytes the size of their JSON.
	MaxAttributes     = 16
	MaxAttributeBytes = 512
	// MaxFound is the largest number of runs of a page, and defaultFound that of a filter without a limit.
	MaxFound     = 1000
	defaultFound = 100
	// attributeDocs is the number of documents that have the attributes of a space's runs: with 2,000 runs, one
	// would be too large.
	attributeDocs = 4
)

// AttributeDocs returns the names of the documents with the attributes of the runs of a space: {RUN: {KEY: SCALAR}}.
func AttributeDocs() []string {
	var list []string
	for i := range attributeDocs {
		list = append(list, "runs_attributes_"+strconv.Itoa(i))
	}
	return list
}

// attributeDoc returns the document that has the attributes of a run.
func attributeDoc(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // never fails
	return AttributeDocs()[h.Sum32()%attributeDocs]
}

// checkAttributes checks the attributes of a start. It returns an absent value if there are none.
func checkAttributes(v model.Value) (model.Value, error) {
	switch {
	case v.IsAbsent() || v.IsNull() || v.Kind() == model.KindObject && v.Len() == 0:
		return model.Value{}, nil
	case v.Kind() != model.KindObject:
		return v, refuse(Invalid, `the attributes must be an object of scalars, such as {"customer": "c7"}, not %s`, v.Kind())
	case v.Len() > MaxAttributes:
		return v, refuse(Invalid, "the run has %d attributes; at most %d are possible", v.Len(), MaxAttributes)
	}
	if size := len(v.String()); size > MaxAttributeBytes {
		return v, refuse(Invalid, "the attributes have %d bytes; at most %d are possible", size, MaxAttributeBytes)
	}
	for key, x := range v.All() {
		if err := model.CheckName("attribute", key); err != nil {
			return v, refuse(Invalid, "%s", err)
		}
		switch x.Kind() {
		case model.KindString, model.KindInt, model.KindFloat, model.KindBool:
		default:
			return v, refuse(Invalid, "attribute %s must be a text, a number or a boolean, not %s", key, x.Kind())
		}
	}
	return v, nil
}

// setAttributes stores the attributes of a run that starts.
func (h *host) setAttributes(id string, v model.Value) {
	if v.IsAbsent() {
		return
	}
	h.tx.Set(Doc(id), v, "attributes")
	h.tx.Set(attributeDoc(id), v, id)
}

func (h *host) dropAttributes(id string) {
	if doc := attributeDoc(id); !h.tx.Peek(doc, id).IsAbsent() {
		h.tx.Delete(doc, id)
	}
}

// AttributeOf returns the value of an attribute that a text stands for: a scalar in JSON, or else the text.
func AttributeOf(text string) model.Value {
	v, err := model.ParseValue([]byte(text))
	if err != nil || v.Kind() == model.KindObject || v.Kind() == model.KindArray || v.IsNull() {
		return model.String(text)
	}
	return v
}

// Filter selects runs of a space. A field that is not set selects all.
type Filter struct {
	Workflow string
	State    State
	// Since and Before select runs that were started at a time or after it, and before one, in milliseconds since 1970.
	Since, Before int64
	// Attributes are values that the run's attributes must have.
	Attributes map[string]model.Value
	// Limit is the largest number of runs of a page, 100 if it is 0; at most MaxFound.
	Limit int
	// After is the Next of the page before.
	After string
}

// Page are runs that a filter selects, the one started last first.
type Page struct {
	Runs []*Status
	// Next is for the page after this one, "" if there is none.
	Next string
}

// Find returns the runs that a filter selects. read reads a document of the space.
func Find(f *Filter, read func(doc string) (model.Value, error)) (*Page, error) {
	if f.Limit < 0 || f.Limit > MaxFound {
		return nil, fmt.Errorf("%w: a page has from 1 to %d runs, not %d", ErrInvalid, MaxFound, f.Limit)
	}
	after, err := parsePlace(f.After)
	if err != nil {
		return nil, err
	}
	index, err := read(Index)
	if err != nil {
		return nil, err
	}
	var list []*Status
	for id, entry := range index.All() {
		if s := indexed(id, entry); f.selects(s) && (f.After == "" || compareRuns(after, s) < 0) {
			list = append(list, s)
		}
	}
	if list, err = f.withAttributes(list, read); err != nil {
		return nil, err
	}
	slices.SortFunc(list, compareRuns)
	p := &Page{Runs: list}
	if limit := cmp.Or(f.Limit, defaultFound); len(list) > limit {
		p.Runs = list[:limit]
		last := p.Runs[limit-1]
		p.Next = placeOf(last)
	}
	return p, nil
}

// withAttributes adds the attributes of runs, and returns those whose attributes the filter selects.
func (f *Filter) withAttributes(list []*Status, read func(doc string) (model.Value, error)) ([]*Status, error) {
	if len(list) == 0 {
		return nil, nil
	}
	attributes := map[string]model.Value{}
	for _, doc := range AttributeDocs() {
		v, err := read(doc)
		if err != nil {
			return nil, err
		}
		for id, own := range v.All() {
			attributes[id] = own
		}
	}
	return slices.DeleteFunc(list, func(s *Status) bool {
		s.Attributes = attributes[s.ID]
		return !f.selectsAttributes(s)
	}), nil
}

// indexed returns what the index says of a run.
func indexed(id string, entry model.Value) *Status {
	s := &Status{ID: id}
	s.Workflow, _ = entry.Get("workflow").AsString()
	state, _ := entry.Get("state").AsString()
	s.State = State(state)
	s.Started, _ = entry.Get("at").AsInt()
	s.Ended, _ = entry.Get("ended").AsInt()
	s.Parent = ParentOf(entry)
	return s
}

// selects reports whether a filter selects a run, apart from its place and its attributes.
func (f *Filter) selects(s *Status) bool {
	return (f.Workflow == "" || f.Workflow == s.Workflow) && (f.State == "" || f.State == s.State) &&
		s.Started >= f.Since && (f.Before == 0 || s.Started < f.Before)
}

func (f *Filter) selectsAttributes(s *Status) bool {
	for key, want := range f.Attributes { // any order: all must be so
		if !model.Equal(s.Attributes.Get(key), want) {
			return false
		}
	}
	return true
}

// compareRuns orders runs: the one started last first.
func compareRuns(a, b *Status) int {
	return cmp.Or(cmp.Compare(b.Started, a.Started), cmp.Compare(a.ID, b.ID))
}

// parsePlace parses the Next of a page.
func parsePlace(text string) (*Status, error) {
	s := &Status{}
	if text == "" {
		return s, nil
	}
	at, id, is := strings.Cut(text, ".")
	var err error
	if s.Started, err = strconv.ParseInt(at, 10, 64); err != nil || !is || CheckID(id) != nil {
		return nil, fmt.Errorf("%w: %.100q is not the end of a page; take that of the page before", ErrInvalid, text)
	}
	s.ID = id
	return s, nil
}

// List returns what the index of a space says of all its runs, by ID.
func List(index model.Value) map[string]*Status {
	all := map[string]*Status{}
	for id, entry := range index.All() {
		all[id] = indexed(id, entry)
	}
	return all
}
