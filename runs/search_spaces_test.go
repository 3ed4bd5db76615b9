package runs

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

// Pages of a search over spaces have every run once, the one started last first, whatever the pages' size: as a search in one
// space would find them all.
func TestSearch_PagesOverSpacesHaveEveryRunOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		docs := map[string]map[string]model.Value{}
		var all []string
		for i := range 1 + r.IntN(5) {
			space := fmt.Sprint("s", i)
			index, attributes := model.Object(), map[string]model.Value{}
			for j := range r.IntN(8) {
				id, at := fmt.Sprint("r", j), 1+r.IntN(4)
				index = with(index, id, model.Object(model.F("workflow", "w"), model.F("state", string(Done)), model.F("at", at)))
				if r.IntN(2) == 0 {
					attributes[attributeDoc(id)] = with(attributes[attributeDoc(id)], id, model.Object(model.F("vip", true)))
					all = append(all, fmt.Sprintf("%d/%s/%s", 9-at, space, id))
				}
			}
			attributes[Index] = index
			docs[space] = attributes
		}
		slices.Sort(all)
		s := Search{Filter: Filter{Limit: 1 + r.IntN(6), Attributes: map[string]model.Value{"vip": model.Bool(true)}}}
		var got []string
		for n := 0; n == 0 || s.After != ""; n++ {
			found := map[string]*Page{}
			for space, own := range docs {
				f, err := s.In(space)
				if err != nil {
					t.Fatal(err)
				}
				if found[space], err = Find(f, func(doc string) (model.Value, error) { return own[doc], nil }); err != nil {
					t.Fatal(err)
				}
			}
			p := s.Page(found)
			if len(p.Runs) > s.Limit || p.Searched != len(docs) {
				t.Fatalf("a page of %d has %d runs of %d spaces", s.Limit, len(p.Runs), p.Searched)
			}
			for _, f := range p.Runs {
				got = append(got, fmt.Sprintf("%d/%s/%s", 9-f.Started, f.Space, f.ID))
			}
			s.After = p.Next
		}
		if !slices.Equal(got, all) {
			t.Fatalf("pages of %d: %v, want %v", s.Limit, got, all)
		}
	}
}

func TestSearch_NamesAndPatternsSelectSpaces(t *testing.T) {
	all := []string{"shop", "order-2", "order-1", "bazaar"}
	for pattern, want := range map[string]string{"": "bazaar order-1 order-2 shop", "order-*": "order-1 order-2", "*a*r": "bazaar", "shop,order-2": "order-2 shop", "x": ""} {
		s := Search{}
		if pattern != "" {
			s.Spaces = strings.Split(pattern, ",")
		}
		got, err := s.Select(all)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v, want %s", pattern, got, err, want)
		}
	}
	if _, err := (&Search{}).Select(make([]string, MaxSearched+1)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "at most 10000 are possible") {
		t.Error(err)
	}
}

func TestSearch_WhatIsNotValidIsRefused(t *testing.T) {
	for want, s := range map[string]Search{
		"a page has from 1 to 1000 runs": {Filter: Filter{Limit: 1001}},
		"there is no state":              {Filter: Filter{State: "late"}},
		"the pattern of spaces":          {Spaces: []string{"a/*"}},
		"101 patterns":                   {Spaces: make([]string, 101)},
		"is not the end of a page":       {Filter: Filter{After: "5.r1"}},
		"is not the end of a page of a":  {Filter: Filter{After: "s"}},
	} {
		if err := s.Check(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if err := (&Search{Spaces: []string{"order-*", "shop"}, Filter: Filter{State: Done, After: "shop.5.r1"}}).Check(); err != nil {
		t.Error(err)
	}
}

// with returns an object with another member.
func with(o model.Value, key string, v model.Value) model.Value {
	fields := []model.Field{model.F(key, v)}
	for k, was := range o.All() {
		fields = append(fields, model.F(k, was))
	}
	return model.Object(fields...)
}
