package settle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
	"github.com/settlehq/settle/upgrade"
)

// naming are the events of a program over the version of a document that it knows. To rename writes all of it, to marry a part.
type naming struct {
	rename, marry func(tx *settle.Tx, to string)
	forget        func(tx *settle.Tx)
	exists        func(tx *settle.Tx) bool
}

// namings are the programs of versions 1 to 3, which do the same.
func namings() []naming {
	one, two := upgrade.From(1, splitName), upgrade.From(2, listName)
	v1, v2 := settle.NewCell[nameV1]("person"), settle.NewCell[nameV2]("person").Version(2, one)
	v3 := settle.NewCell[nameV3]("person").Version(3, one, two)
	name, last := settle.Field[string](v1, "name"), settle.Field[string](v2, "last")
	names := settle.Field[[]string](v3, "names")
	return []naming{
		{
			func(tx *settle.Tx, to string) {
				old := v1.Or(nameV1{"- -"}).Get(tx).Name
				v1.Set(tx, nameV1{to + " " + strings.Fields(old)[1]})
			},
			func(tx *settle.Tx, to string) { name.Set(tx, strings.Fields(name.Get(tx))[0]+" "+to) },
			func(tx *settle.Tx) { v1.Delete(tx) }, func(tx *settle.Tx) bool { return v1.Exists(tx) },
		},
		{
			func(tx *settle.Tx, to string) { v2.Set(tx, nameV2{to, v2.Or(nameV2{"-", "-"}).Get(tx).Last}) },
			func(tx *settle.Tx, to string) { last.Set(tx, to) },
			func(tx *settle.Tx) { v2.Delete(tx) }, func(tx *settle.Tx) bool { return v2.Exists(tx) },
		},
		{
			func(tx *settle.Tx, to string) {
				v3.Set(tx, nameV3{Names: []string{to, v3.Or(nameV3{Names: []string{"-", "-"}}).Get(tx).Names[1]}})
			},
			func(tx *settle.Tx, to string) { names.Set(tx, []string{names.Get(tx)[0], to}) },
			func(tx *settle.Tx) { v3.Delete(tx) }, func(tx *settle.Tx) bool { return v3.Exists(tx) },
		},
	}
}

func (n naming) program(version int) *settle.Program {
	p := settle.NewProgram("people")
	p.Version(fmt.Sprint(version))
	settle.NewStream[string]("rename").Handle(p, func(tx *settle.Tx, to string) error { n.rename(tx, to); return nil })
	settle.NewStream[string]("marry").Handle(p, func(tx *settle.Tx, to string) error {
		if n.exists(tx) {
			n.marry(tx, to)
		}
		return nil
	})
	settle.NewStream[string]("forget").Handle(p, func(tx *settle.Tx, _ string) error { n.forget(tx); return nil })
	settle.NewStream[string]("other").Handle(p, func(*settle.Tx, string) error { return nil })
	return p
}

// plainNames is a person, and the events that are not handled yet, in a few lines: an event waits while what is stored is of a later version than
// that of the program, and all events behind it do.
type plainNames struct {
	stored      int // 0 if there is none
	first, last string
	queue       []string // streams
	to          []string
}

func (p *plainNames) handle(version int) (handled int) {
	for len(p.queue) > 0 && (p.queue[0] == "other" || p.stored <= version) {
		exists := p.stored > 0
		switch p.queue[0] {
		case "rename":
			if !exists {
				p.last = "-"
			}
			p.first, p.stored = p.to[0], version
		case "marry":
			if exists {
				p.last, p.stored = p.to[0], version
			}
		case "forget":
			p.stored = 0
		}
		p.queue, p.to = p.queue[1:], p.to[1:]
		handled++
	}
	return handled
}

func (p *plainNames) document() string {
	switch p.stored {
	case 1:
		return fmt.Sprintf(`{"name":"%s %s"}`, p.first, p.last)
	case 2:
		return fmt.Sprintf(`{"$version":2,"first":"%s","last":"%s"}`, p.first, p.last)
	case 3:
		return fmt.Sprintf(`{"$version":3,"names":["%s","%s"],"seen":0}`, p.first, p.last)
	}
	return "absent"
}

// Programs of three versions serve a space in any order. After each step the document is wholly in the version of the program that wrote it
// last, has what all handled events have made of it, and the events that a program must not handle wait, in their order.
func TestVersion_PropertyProgramsInAnyOrderLoseNothing(t *testing.T) {
	all := namings()
	rapid.Check(t, func(r *rapid.T) {
		version := rapid.IntRange(1, 3).Draw(r, "version")
		w := settletest.New(t, func(string) *settle.Program { return all[version-1].program(version) })
		s := w.Space("x")
		var is plainNames
		sent, handled := []string{}, 0
		check := func(did string) {
			t.Helper()
			handled += is.handle(version)
			if got := s.Get("person").String(); got != is.document() {
				r.Fatalf("%s with version %d: %s, want %s", did, version, got, is.document())
			}
			for i, stream := range sent {
				rc, ended := s.Receipt(stream, settle.ID(fmt.Sprint("e", i)))
				if ended != (i < handled) || ended && rc.Outcome != model.Handled {
					r.Fatalf("%s with version %d: event %d of %v, of which %d are handled: %v %+v", did, version, i, sent, handled, ended, rc)
				}
			}
		}
		change := func(to int) {
			version = to
			w.Restart()
			w.Advance(time.Minute)
			check("deploy")
		}
		for i := range rapid.IntRange(1, 12).Draw(r, "steps") {
			if rapid.IntRange(0, 2).Draw(r, "deploy") == 0 {
				change(rapid.IntRange(1, 3).Draw(r, "version"))
				continue
			}
			stream, to := rapid.SampledFrom([]string{"rename", "marry", "forget", "other"}).Draw(r, "stream"), fmt.Sprint("n", i)
			is.queue, is.to = append(is.queue, stream), append(is.to, to)
			s.SendID(stream, settle.ID(fmt.Sprint("e", len(sent))), to)
			sent = append(sent, stream)
			check(stream)
		}
		change(3)
		if len(is.queue) > 0 {
			r.Fatalf("%v are left", is.queue)
		}
	})
}
