package console

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/program"
	"github.com/settlehq/settle/program/star"
)

// basket is a program with a price.
func basket(price string) string {
	return `items = cell("items", {"n": 0})

def add(e):
    items.n += 1
    return items.n

handle("add", add)

def total():
    return ` + price + ` * items.n

compute("total", total)
`
}

// deploys deploys a version to spaces cart*.
func (w *world) deploys(text, note string) program.Target {
	w.Helper()
	v, err := program.NewVersion(star.Source{Name: "cart", Entry: "cart.star", Files: map[string]string{"cart.star": text}}, "ann", note, time.Now())
	if err != nil {
		w.Fatal(err)
	}
	if _, _, err := program.Publish(w.Context(), w.d.Bus(), v); err != nil {
		w.Fatal(err)
	}
	_, err = program.Decide(w.Context(), w.d.Bus(), "cart*", func(program.Rule) (program.Choice, error) {
		return program.Choice{Target: v.Target(), By: "ann", At: time.Now(), Note: note}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
	return v.Target()
}

// Versions, what spaces run by which rule, the difference of two versions with its lines and nodes, and the source with the line of a node.
func TestPrograms_VersionsAndTheirDifference(t *testing.T) {
	w := operate(t, settle.Config{Hosted: true})
	w.want("/programs", 200, "No program was deployed", "settle deploy")
	first := w.deploys(basket("5"), "the first")
	w.send("cart-1", "add", "a1", nil)
	w.send("cart-2", "add", "a1", nil)
	w.until("/programs", "2 spaces run deployed programs, in 1 version")
	var second program.Target
	w.changes("/programs", func() { second = w.deploys(basket("7"), "dearer") }, second.Version)
	w.until("/programs/cart", "2 spaces run cart, in 1 version")
	w.want("/programs/cart", 200, first.Version, second.Version, "dearer", "ann", "Roll back", "to "+first.Version, "cart*")
	source := sourceURL("cart", second.Version)
	w.want(source, 200, "return 7 * items.n", "total")
	text := w.want(source+"?against="+first.Version, 200, "changed", "return 5 * items.n", "return 7 * items.n")
	if added, gone := strings.Count(text, `class="added`), strings.Count(text, `class="gone`); added != 1 || gone != 1 {
		t.Errorf("%d lines are added and %d gone", added, gone)
	}
	w.want(source+"?node=total", 200, "total")
	w.want(sourceURL("cart", "000000000000"), 404)
	w.want("/programs/tray", 404, "No program tray was deployed here")
}

// A rollback to a version that does not read what the present one writes warns before it is confirmed.
func TestRollback_WarnsOfDocumentsThatItCannotRead(t *testing.T) {
	w := operate(t, settle.Config{Hosted: true})
	first := w.deploys(basket("5"), "the first")
	w.deploys(strings.Replace(basket("5"), `cell("items", {"n": 0}`, `cell("items", {"n": 0}, version = 2, upgrades = [lambda old: old]`, 1), "two")
	before, _ := w.acts("rollback", url.Values{"program": {"cart"}}, nil, "settle rollback cart")
	if !strings.Contains(before, first.String()+" cannot read document items in version 2 (it reads versions up to 1)") || !strings.Contains(before, "settle upgrades items=2") {
		t.Error(before)
	}
}

// A rollback says how many spaces change over, and gives them the version before.
func TestRollback_GivesSpacesTheVersionBefore(t *testing.T) {
	w := operate(t, settle.Config{Hosted: true})
	first := w.deploys(basket("5"), "the first")
	w.send("cart-1", "add", "a1", nil)
	w.until("/programs", "1 space runs deployed programs")
	second := w.deploys(basket("7"), "dearer")
	before, _ := w.acts("rollback", url.Values{"program": {"cart"}}, url.Values{"note": {"too dear"}}, "settle rollback cart")
	if !strings.Contains(before, "Roll cart back in 1 space") || !strings.Contains(before, first.String()+", in place of "+second.String()) {
		t.Error(before)
	}
	table, err := program.Rules(t.Context(), w.d.Bus())
	if err != nil || table.Rule("cart-1").Target != first || table.Rule("cart-1").Note != "too dear" || table.Rule("cart-1").By != "boss" {
		t.Errorf("%+v, %v", table.Rule("cart-1"), err)
	}
	w.until("/programs/cart", "too dear")
	w.want("/-/do/rollback?program=tray", 400, "There is nothing to go back to")
}

// The page of a space whose program has no handler for events of clients explains that, and has no form.
func TestSend_AProgramWithoutHandlersForClients(t *testing.T) {
	w := operate(t, settle.Config{Hosted: true})
	w.deploys(basket("5"), "")
	w.send("cart-1", "add", "a1", nil)
	w.until("/spaces/cart-1", "Send add")
	w.deploys(`handle("tick", lambda: None, internal = True)`, "")
	if text := w.until("/spaces/cart-1", "The program of this space has no handler for events of clients"); strings.Contains(text, "/-/do/send") {
		t.Error("there is a form")
	}
}
