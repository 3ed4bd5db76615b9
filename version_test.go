package settle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/bus/embedded"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/upgrade"
)

type nameV1 struct {
	Name string `json:"name"`
}

type nameV2 struct {
	First string `json:"first"`
	Last  string `json:"last"`
}

type nameV3 struct {
	Names []string `json:"names"`
	Seen  int      `json:"seen"`
}

func splitName(v nameV1) (nameV2, error) {
	first, last, ok := strings.Cut(v.Name, " ")
	if !ok {
		return nameV2{}, errors.New("a name has two parts")
	}
	return nameV2{first, last}, nil
}

func listName(v nameV2) (nameV3, error) { return nameV3{Names: []string{v.First, v.Last}}, nil }

// versioned is a program over documents of version 3, and one that still has version 2 of them.
type versioned struct {
	person settle.Cell[nameV3]
	people settle.Rows[nameV3]
	old    settle.Cell[nameV2]
}

func versions() versioned {
	one, two := upgrade.From(1, splitName), upgrade.From(2, listName)
	return versioned{
		person: settle.NewCell[nameV3]("person").Version(3, one, two),
		people: settle.NewRows[nameV3]("people").Version(3, one, two),
		old:    settle.NewCell[nameV2]("person").Version(2, one),
	}
}

var (
	stored1 = map[string]any{"name": "Ann Lee"}
	stored2 = map[string]any{"first": "Ann", "last": "Lee", "$version": 2}
	stored3 = map[string]any{"names": []string{"Ann", "Lee"}, "seen": 0, "$version": 3}
	ann     = nameV3{Names: []string{"Ann", "Lee"}}
)

// program reads a document whole and in part, here and in another space, and writes it whole and in part.
func (v versioned) program() *settle.Program {
	p := settle.NewProgram("people")
	names := settle.Field[[]string](v.person, "names")
	seen := settle.Field[int](v.person, "seen")
	settle.NewTrigger("touch").Handle(p, func(tx *settle.Tx) error {
		v.person.Update(tx, func(*nameV3) {})
		return nil
	})
	settle.NewTrigger("see").Handle(p, func(tx *settle.Tx) error { seen.Set(tx, seen.Get(tx)+1); return nil })
	settle.NewTrigger("forget").Handle(p, func(tx *settle.Tx) error { names.Delete(tx); return nil })
	settle.NewTrigger("row").Handle(p, func(tx *settle.Tx) error {
		v.people.Update(tx, "a", func(n *nameV3) { n.Seen++ })
		return nil
	})
	whole := settle.NewDerived[nameV3]("whole")
	whole.Compute(p, func(w *settle.View) (nameV3, error) { return v.person.Get(w), nil })
	part := settle.NewDerived[[]string]("part")
	part.Compute(p, func(w *settle.View) ([]string, error) {
		if !names.Exists(w) {
			return nil, settle.NoValue
		}
		return names.Get(w), nil
	})
	there := settle.NewDerived[[]string]("there")
	there.Compute(p, func(w *settle.View) (all []string, _ error) {
		for _, n := range v.person.Across(w, settle.All("x-*")) {
			all = append(all, n.Names...)
		}
		return append(all, names.In("x-1").Get(w)...), nil
	})
	rows := settle.NewDerived[map[string]nameV3]("rows")
	rows.Compute(p, func(w *settle.View) (map[string]nameV3, error) {
		all := map[string]nameV3{}
		for k, n := range v.people.All(w) {
			all[k] = n
		}
		for _, k := range v.people.Keys(w) {
			if one := v.people.Get(w, k); one.Seen != all[k].Seen {
				return nil, errors.New("two reads of a row differ")
			}
		}
		return all, nil
	})
	return p
}

func TestVersion_OlderDocumentsAreReadInTheirPresentForm(t *testing.T) {
	for _, stored := range []any{stored1, stored2, stored3} {
		v := versions()
		w := settletest.New(t, v.program())
		s := w.Space("x-1")
		s.Set("person", stored)
		s.Set("people", map[string]any{"a": stored, "b": stored2})
		settletest.Expect(s, settle.NewDerived[nameV3]("whole"), ann)
		settletest.Expect(s, settle.NewDerived[[]string]("part"), ann.Names)
		settletest.Expect(w.Space("y"), settle.NewDerived[[]string]("there"), []string{"Ann", "Lee", "Ann", "Lee"})
		settletest.Expect(s, settle.NewDerived[map[string]nameV3]("rows"), map[string]nameV3{"a": ann, "b": ann})
		settletest.Expect(s, v.person, ann)
		settletest.Expect(s, settle.Field[int](v.person, "seen"), 0)
		settletest.Expect(s, v.people, map[string]nameV3{"a": ann, "b": ann})
		if got := s.Get("person").String(); got != valueOf(t, stored) {
			t.Errorf("a read has changed what is stored: %s", got)
		}
	}
}

func TestVersion_WritesStoreThePresentForm(t *testing.T) {
	for _, stored := range []any{stored1, stored2, stored3} {
		for event, want := range map[string]string{
			"touch": `{"$version":3,"names":["Ann","Lee"],"seen":0}`, "see": `{"$version":3,"names":["Ann","Lee"],"seen":1}`,
			"forget": `{"$version":3,"seen":0}`,
		} {
			s := settletest.New(t, versions().program()).Space("x")
			s.Set("person", stored)
			s.Send(event, nil)
			if got := s.Get("person").String(); got != want {
				t.Errorf("%s of %v stores %s, want %s", event, stored, got, want)
			}
		}
		s := settletest.New(t, versions().program()).Space("x")
		s.Set("people", map[string]any{"a": stored, "b": stored1})
		s.Send("row", nil)
		if got, want := s.Get("people").String(), `{"a":{"$version":3,"names":["Ann","Lee"],"seen":1},"b":{"name":"Ann Lee"}}`; got != want {
			t.Errorf("the write of a row stores %s, want %s", got, want)
		}
	}
	s := settletest.New(t, versions().program()).Space("new")
	s.Send("see", nil)
	if got, want := s.Get("person").String(), `{"$version":3,"seen":1}`; got != want {
		t.Errorf("a part of a new document stores %s, want %s", got, want)
	}
}

// The event waits, and is handled when a worker of the later version serves the space: nothing is lost, and nothing is misread.
func TestVersion_AnEventWaitsForTheWorkerThatKnowsTheVersion(t *testing.T) {
	v := versions()
	for name, handle := range map[string]func(tx *settle.Tx) error{
		"whole":     func(tx *settle.Tx) error { v.old.Update(tx, func(*nameV2) {}); return nil },
		"part":      func(tx *settle.Tx) error { settle.Field[string](v.old, "first").Get(tx); return nil },
		"write":     func(tx *settle.Tx) error { v.old.Set(tx, nameV2{"a", "b"}); return nil },
		"writePart": func(tx *settle.Tx) error { settle.Field[string](v.old, "first").Set(tx, "b"); return nil },
		"delete":    func(tx *settle.Tx) error { v.old.Delete(tx); return nil },
		"rejects": func(tx *settle.Tx) error {
			if v.old.Get(tx).First == "" {
				return settle.Reject("unknown", "there is no such person", nil)
			}
			return nil
		},
		"panics":  func(tx *settle.Tx) error { return errors.New(strings.Split(v.old.Get(tx).First, "")[0]) },
		"without": func(tx *settle.Tx) error { settle.NewCell[nameV1]("person").Get(tx); return nil },
		"withoutPart": func(tx *settle.Tx) error {
			settle.Field[string](settle.NewCell[nameV1]("person"), "name").Get(tx)
			return nil
		},
		"row": func(tx *settle.Tx) error { settle.NewRows[nameV1]("people").Get(tx, "a"); return nil },
		"rowPart": func(tx *settle.Tx) error {
			settle.Field[string](settle.NewRows[nameV1]("people").At("a"), "name").Get(tx)
			return nil
		},
		"rows": func(tx *settle.Tx) error {
			for range settle.NewRows[nameV1]("people").All(tx) { //nolint:revive // to read them
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			later := false
			programs := func(string) *settle.Program {
				p := settle.NewProgram("people")
				p.Version(map[bool]string{true: "2", false: "1"}[later])
				settle.NewTrigger("do").Handle(p, func(tx *settle.Tx) error {
					if later {
						v.person.Get(tx)
						return nil
					}
					return handle(tx)
				})
				return p
			}
			w := settletest.New(t, programs)
			s := w.Space("x")
			s.Set("person", stored3)
			s.Set("people", map[string]any{"a": stored3})
			rc := s.SendID("do", settle.ID("e1"), nil)
			w.Advance(time.Minute) // more than the budget of a transient error
			if rc, ended := s.Receipt("do", settle.ID("e1")); ended {
				t.Fatalf("the event ended in the hands of an earlier version: %s %s", rc.Outcome, rc.Error)
			}
			if got := s.Get("person").String(); got != valueOf(t, stored3) {
				t.Fatalf("the earlier version has changed the document: %s", got)
			}
			later = true
			w.Restart()
			w.Advance(time.Minute)
			if rc, _ = s.Receipt("do", settle.ID("e1")); rc.Outcome != model.Handled {
				t.Errorf("the later version has not handled the event: %+v", rc)
			}
		})
	}
}

func valueOf(t *testing.T, x any) string {
	t.Helper()
	v, err := settle.ValueOf(x)
	if err != nil {
		t.Fatal(err)
	}
	return v.String()
}

func TestVersion_ClientsReadThePresentForm(t *testing.T) {
	v := versions()
	p := v.program()
	store := settle.NewRequest[settle.Value, int]("store")
	store.Handle(p, func(tx *settle.Tx, x settle.Value) (int, error) {
		tx.Set("person", x)
		tx.Set("people", x, "a")
		return 0, nil
	})
	d, err := settle.Start(t.Context(), settle.Config{Programs: settle.Always(p), Server: embedded.Config{StoreDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Stop(context.Background()) }) // the test is over
	s := d.Client().Space("x")
	for i, stored := range []any{stored1, stored2, stored3} {
		x, err := settle.ValueOf(stored)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Call(t.Context(), s, settle.ID(fmt.Sprint("e", i)), x); err != nil {
			t.Fatal(err)
		}
		got, err := v.person.Fetch(t.Context(), s)
		if err != nil || !reflect.DeepEqual(got, ann) {
			t.Errorf("Fetch of version %d: %v %v", i+1, got, err)
		}
		names, err := settle.Field[[]string](v.person, "names").Fetch(t.Context(), s)
		if err != nil || !reflect.DeepEqual(names, ann.Names) {
			t.Errorf("Fetch of a field of version %d: %v %v", i+1, names, err)
		}
		rows, err := v.people.Fetch(t.Context(), s)
		if err != nil || !reflect.DeepEqual(rows, map[string]nameV3{"a": ann}) {
			t.Errorf("Fetch of rows of version %d: %v %v", i+1, rows, err)
		}
		for u, err := range settle.Field[[]string](v.person, "names").Watch(t.Context(), s) {
			if err != nil || !reflect.DeepEqual(u.Value, ann.Names) {
				t.Errorf("Watch of version %d: %v %v", i+1, u.Value, err)
			}
			break
		}
	}
	var newer *model.NewerError
	if _, err := v.old.Fetch(t.Context(), s); !errors.As(err, &newer) || newer.Version != 3 || newer.Known != 2 {
		t.Errorf("a client of an earlier version fetches without an error: %v", err)
	}
	for _, err := range v.old.Watch(t.Context(), s) {
		if !errors.As(err, &newer) {
			t.Errorf("a client of an earlier version watches without an error: %v", err)
		}
		break
	}
}

// The result of a computation that does not know the version stays as it was, and is not up to date; a later worker computes it, although the
// computation itself has not changed.
func TestVersion_AComputationIsRunByTheWorkerThatKnowsTheVersion(t *testing.T) {
	v, later := versions(), false
	first := settle.NewDerived[string]("first")
	w := settletest.New(t, func(string) *settle.Program {
		p := settle.NewProgram("people")
		first.Compute(p, func(w *settle.View) (string, error) {
			if later {
				return v.person.Get(w).Names[0], nil
			}
			return v.old.Get(w).First, nil
		}, settle.Version("1"))
		return p
	}, settletest.AllowErrors("first"))
	s := w.Space("x")
	seen := settletest.Watch(s, first)
	s.Set("person", stored2)
	s.Set("person", map[string]any{"names": []string{"Bo", "Lee"}, "seen": 0, "$version": 3})
	if got := seen.Last(); got != "Ann" {
		t.Errorf("a computation that does not know the version has made %q of it", got)
	}
	later = true
	w.Restart()
	settletest.Expect(w.Space("x"), first, "Bo")
}

// A test watches a part as a client does.
func TestVersion_TestsWatchThePresentForm(t *testing.T) {
	v := versions()
	s := settletest.New(t, v.program()).Space("x")
	s.Set("person", stored1)
	names, rows := settletest.Watch(s, settle.Field[[]string](v.person, "names")), settletest.Watch(s, v.people)
	s.Set("person", map[string]any{"name": "Bo Lee"})
	s.Set("people", map[string]any{"a": stored2})
	if got := names.Values(); !reflect.DeepEqual(got, [][]string{{"Ann", "Lee"}, {"Bo", "Lee"}}) {
		t.Errorf("a part was watched as %v", got)
	}
	if got := rows.Last(); !reflect.DeepEqual(got, map[string]nameV3{"a": ann}) {
		t.Errorf("rows were watched as %v", got)
	}
}

// mostLinks is how many links a read or a write follows.
const mostLinks = 32

// A write to a part goes where links lead, and so does the upgrade before it: the link stays, and there is one document.
func TestVersion_AnUpgradeFollowsLinks(t *testing.T) {
	t.Parallel()
	type profile struct {
		Name string `json:"name,omitzero"`
		Seen int    `json:"seen"`
	}
	profiles := settle.NewCell[profile]("profile").Version(2, upgrade.From(1, func(p profile) (profile, error) { return profile{p.Name, 10}, nil }))
	seen, see := settle.Field[int](profiles, "seen"), settle.NewTrigger("see")
	p := settle.NewProgram("profiles")
	see.Handle(p, func(tx *settle.Tx) error {
		seen.Update(tx, func(n *int) { *n++ })
		return nil
	})
	for stored, want := range map[string]string{`{"name":"Ann"}`: `{"$version":2,"name":"Ann","seen":11}`, "": `{"$version":2,"seen":1}`} {
		w := settletest.New(t, p)
		s := w.Space("a")
		if stored != "" {
			s.Set("base", json.RawMessage(stored))
		}
		s.Set("profile", model.Link{Doc: "middle"}.Value())
		s.Set("middle", model.Link{Doc: "base"}.Value())
		settletest.Send(s, see)
		if l, is := s.Link("profile"); !is || l.Doc != "middle" || s.Get("base").String() != want {
			t.Errorf("%q: the link is %v (%v), and behind it is %s, want %s", stored, l, is, s.Get("base"), want)
		}
	}
	// The upgrade goes as far as a write does.
	s := settletest.New(t, p).Space("a")
	s.Set("base", json.RawMessage(`{"name":"Ann"}`))
	at := "base"
	for i := range mostLinks {
		link := fmt.Sprint("link", i)
		if i == mostLinks-1 {
			link = "profile"
		}
		s.Set(link, model.Link{Doc: at}.Value())
		at = link
	}
	settletest.Send(s, see)
	if got, want := s.Get("base").String(), `{"$version":2,"name":"Ann","seen":11}`; got != want {
		t.Errorf("behind %d links is %s, want %s", mostLinks, got, want)
	}
	// A link to another space is refused, as it is without a version.
	s = settletest.New(t, p).Space("a")
	s.Set("profile", model.Link{Space: "b", Doc: "base"}.Value())
	if rc := s.SendID("see", settle.ID("e1"), nil); rc.Outcome != model.Failed || !strings.Contains(rc.Error, "a space is changed by itself only") {
		t.Errorf("a write to another space: %+v", rc)
	}
	if _, is := s.Link("profile"); !is {
		t.Error("the link to another space is gone")
	}
}

// A link in a document of another space that is upgraded leads to a document of that space.
func TestVersion_ALinkInAnUpgradedDocumentStaysInItsSpace(t *testing.T) {
	t.Parallel()
	type profile struct {
		Chief string `json:"chief"`
	}
	profiles := settle.NewCell[profile]("profile").Version(2, upgrade.Untyped(1, func(v settle.Value) (settle.Value, error) { return v, nil }))
	read := settle.NewRequest[string, []string]("read")
	p := settle.NewProgram("profiles")
	read.Handle(p, func(tx *settle.Tx, in string) ([]string, error) {
		return []string{settle.Field[string](profiles.In(in), "chief").Get(tx), settle.Field[string](profiles, "chief").Get(tx)}, nil
	})
	w := settletest.New(t, p)
	for space, chief := range map[string]string{"a": "Ann", "b": "Bo"} {
		s := w.Space(space)
		s.Set("chief", chief)
		s.Set("profile", model.Object(model.F("chief", model.Link{Doc: "chief"}.Value())))
	}
	if got := settletest.Call(w.Space("a"), read, "b"); !slices.Equal(got, []string{"Bo", "Ann"}) {
		t.Errorf("the chiefs are %q", got)
	}
}
