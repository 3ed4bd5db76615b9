package buscontract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

var deadChecks = []check{
	{"a letter is read with all its fields", letterRoundTrip},
	{"a second letter about an event is a success and the first one stays", secondLetter},
	{"of racing writers of one letter one is kept", racingLetters},
	{"letters are read in order and in pages, of a space or of all", readLetters},
	{"letters are listed by name, of a space or of all, and got by their names", listLetters},
	{"a letter in doubt is stored once", letterInDoubt},
	{"a letter larger than the server accepts is refused and the bus stays usable", oversizeLetter},
	{"a letter with an invalid name is refused", badLetter},
	{"letters survive a disconnection", lettersSurvive},
	{"storing and reading letters ends with the client and with its context", lettersEnd},
}

func letter(space, id string) *model.DeadLetter {
	return &model.DeadLetter{
		Version: model.DeadVersion, Space: space, Stream: "add", Event: id,
		Outcome: model.Failed, Error: "why " + id + " failed", Lane: 7, Commit: 9,
	}
}

func (w *world) bury(c Client, letters ...*model.DeadLetter) {
	w.Helper()
	for _, d := range letters {
		w.must(c.StoreDead(w.ctx, d))
	}
}

func (w *world) dead(c Client, space string, after uint64, limit int) []model.DeadLetter {
	w.Helper()
	found, err := c.ReadDead(w.ctx, space, after, limit)
	w.must(err)
	return found
}

// names lists letters as "space stream event".
func names(letters []model.DeadLetter) string {
	var list []string
	for _, d := range letters {
		list = append(list, d.Space+" "+d.Stream+" "+d.Event)
	}
	return strings.Join(list, ", ")
}

func letterRoundTrip(w *world) {
	c := w.connect("a")
	minted := letter(cart, "origin:17:2:0")
	minted.Outcome, minted.Raw = model.Refused, []byte("not { JSON \x00")
	full := letter(cart, "e1")
	full.Payload = model.MustOf(map[string]any{"n": 1})
	full.Trace = model.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	full.Ended = time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	other := letter(cart, "e1")
	other.Stream = "remove"
	w.bury(c, minted, full, other)
	for i, want := range []*model.DeadLetter{minted, full, other} {
		found, err := c.FindDead(w.ctx, cart, want.Event)
		w.must(err)
		for _, got := range found {
			if got.Stream != want.Stream {
				continue
			}
			w.equal("sequence", got.Seq, uint64(i+1))
			got.Seq = 0
			w.equal("letter", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", *want))
			w.equal("payload", string(got.Bytes()), string(want.Bytes()))
		}
	}
	found, err := c.FindDead(w.ctx, cart, "e1")
	w.must(err)
	w.equal("letters about e1", len(found), 2)
	found, err = c.FindDead(w.ctx, space(1, 0), "e1")
	w.must(err)
	w.equal("letters about an event of that id elsewhere", len(found), 0)
}

func secondLetter(w *world) {
	a, b := w.connect("a"), w.connect("b")
	w.bury(a, letter(cart, "e1"))
	again := letter(cart, "e1")
	again.Error = "another reason"
	w.bury(a, again)
	w.bury(b, again)
	found := w.dead(b, cart, 0, 10)
	w.equal("letters", names(found), cart+" add e1")
	w.equal("reason", found[0].Error, "why e1 failed")
}

func racingLetters(w *world) {
	const n = 4
	ended := make(chan error, n)
	for i := range n {
		c := w.connect(fmt.Sprint("c", i))
		go func() { ended <- c.StoreDead(w.ctx, letter(cart, "e1")) }() // ends with the answer
	}
	for range n {
		w.must(<-ended)
	}
	w.equal("letters", len(w.dead(w.connect("reader"), "", 0, 10)), 1)
}

func readLetters(w *world) {
	c := w.connect("a")
	for i := range 20 {
		w.bury(c, letter(space(i%2, 0), fmt.Sprint("e", i)))
	}
	all := w.dead(c, "", 0, 100)
	w.equal("letters of all spaces", len(all), 20)
	for i, d := range all {
		w.equal("order", d.Event, fmt.Sprint("e", i))
	}
	first := w.dead(c, cart, 0, 4)
	w.equal("first page", names(first), names([]model.DeadLetter{all[0], all[2], all[4], all[6]}))
	second := w.dead(c, cart, first[3].Seq, 100)
	w.equal("second page", len(second), 6)
	w.equal("second page begins", second[0].Event, "e8")
	w.equal("behind the end", len(w.dead(c, "", all[19].Seq, 100)), 0)
	w.equal("of a space without any", len(w.dead(c, space(0, 5), 0, 100)), 0)
}

func letterInDoubt(w *world) {
	for i, fault := range faults {
		c := w.connect(fmt.Sprint("c", i))
		if fault != Duplicate {
			w.inject(c, StoreDead, fault)
		} else {
			c.Inject(StoreDead, fault, nil)
		}
		w.bury(c, letter(cart, fmt.Sprint("e", i)))
		w.equal("letters", len(w.dead(c, "", 0, 10)), i+1)
	}
}

func oversizeLetter(w *world) {
	c := w.connect("a")
	d := letter(cart, "e1")
	d.Raw = []byte(strings.Repeat("x", c.MaxPayload()))
	if err := c.StoreDead(w.ctx, d); !errors.Is(err, model.ErrTooLarge) {
		w.Errorf("bury: %v, want ErrTooLarge", err)
	}
	w.bury(c, letter(cart, "e2"))
	w.equal("letters", names(w.dead(c, "", 0, 10)), cart+" add e2")
}

func listLetters(w *world) {
	c := w.connect("a")
	var all, ofCart []string
	var wanted []model.DeadName
	for i := range 1200 { // more than are fetched at a time
		d := letter(space(i%2, 0), fmt.Sprint("e", i))
		w.bury(c, d)
		all = append(all, fmt.Sprint(d.Name()))
		if i%2 == 0 {
			ofCart = append(ofCart, fmt.Sprint(d.Name()))
		}
		wanted = append(wanted, d.Name(), d.Name().Note(model.Dismissed)) // of which there are no letters
	}
	listed := func(space string) []string {
		found, err := c.ListDead(w.ctx, space)
		w.must(err)
		var names []string
		for _, n := range found {
			names = append(names, fmt.Sprint(n))
		}
		slices.Sort(names)
		return names
	}
	slices.Sort(all)
	slices.Sort(ofCart)
	w.equal("names of all", strings.Join(listed(""), " "), strings.Join(all, " "))
	w.equal("names of a space", strings.Join(listed(cart), " "), strings.Join(ofCart, " "))
	w.equal("names of a space without any", len(listed(space(0, 5))), 0)
	found, err := c.GetDead(w.ctx, wanted)
	w.must(err)
	var got []string
	for i := range found {
		got = append(got, fmt.Sprint(found[i].Name()))
	}
	slices.Sort(got)
	w.equal("letters by name", strings.Join(got, " "), strings.Join(all, " "))
	w.equal("an error", found[0].Error, "why "+found[0].Event+" failed")
	none, err := c.GetDead(w.ctx, nil)
	w.must(err)
	w.equal("letters of no name", len(none), 0)
}

func badLetter(w *world) {
	c := w.connect("a")
	var name *model.NameError
	for _, d := range []*model.DeadLetter{letter("a.b", "e1"), letter("", "e1"), letter(cart, "a.b"), letter(cart, ">")} {
		if err := c.StoreDead(w.ctx, d); !errors.As(err, &name) {
			w.Errorf("bury %s of %s: %v", d.Event, d.Space, err)
		}
	}
	if _, err := c.ReadDead(w.ctx, "*", 0, 1); !errors.As(err, &name) {
		w.Errorf("read: %v", err)
	}
	if _, err := c.FindDead(w.ctx, cart, "*"); !errors.As(err, &name) {
		w.Errorf("find: %v", err)
	}
	if _, err := c.ListDead(w.ctx, ">"); !errors.As(err, &name) {
		w.Errorf("list: %v", err)
	}
	if _, err := c.GetDead(w.ctx, []model.DeadName{{Space: cart, Stream: "add", Event: "*"}}); !errors.As(err, &name) {
		w.Errorf("get: %v", err)
	}
	w.equal("letters", len(w.dead(c, "", 0, 10)), 0)
}

func lettersSurvive(w *world) {
	c := w.connect("a")
	w.bury(c, letter(cart, "e1"))
	w.Disconnect(w.T)
	late := make(chan error, 1)
	go func() { late <- c.StoreDead(w.ctx, letter(cart, "e2")) }() // ends with the answer
	w.Reconnect(w.T)
	w.must(<-late)
	w.equal("letters", len(w.dead(c, cart, 0, 10)), 2)
}

func lettersEnd(w *world) {
	c := w.connect("a")
	w.Disconnect(w.T)
	for name, call := range map[string]func(context.Context) error{
		"bury": func(ctx context.Context) error { return c.StoreDead(ctx, letter(cart, "e1")) },
		"read": func(ctx context.Context) error { _, err := c.ReadDead(ctx, "", 0, 1); return err },
		"find": func(ctx context.Context) error { _, err := c.FindDead(ctx, cart, "e1"); return err },
		"list": func(ctx context.Context) error { _, err := c.ListDead(ctx, ""); return err },
		"get": func(ctx context.Context) error {
			_, err := c.GetDead(ctx, []model.DeadName{letter(cart, "e1").Name()})
			return err
		},
	} {
		if err := w.briefly(call); err == nil {
			w.Errorf("%s succeeded with no server there", name)
		}
	}
	w.Reconnect(w.T)
	c.Kill()
	w.wantStopped("bury", c.StoreDead(w.ctx, letter(cart, "e1")))
	_, err := c.ReadDead(w.ctx, "", 0, 1)
	w.wantStopped("read", err)
	_, err = c.FindDead(w.ctx, cart, "e1")
	w.wantStopped("find", err)
}
