package star_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/program/star"
)

// A condition reads the default of a cell where the document has no value, as a handler does.
func TestCondition_ReadsTheDefaultOfACell(t *testing.T) {
	runTests(t, `
gate = cell("gate", {"closed": True, "by": {"name": "bob", "n": 0}})
visits = cell("visits", 3)
other = cell("gate", {"closed": False}, space = "elsewhere")

def look(): return [gate.closed, gate.by.name, visits.get()]
def change(e): gate[e.key] = e.value

handle("look", look)
handle("change", change)

def through():
    wait(lambda: not get("gate", "closed"))
    return wait(lambda: get("gate"))

def counted():
    return wait(lambda: get("gate", "by", "n") > 5)

def read():
    return wait(lambda: [get("gate", "closed"), get("gate", "by", "name"), get("visits"), get("nothing"), get("gate", "nothing")])

workflow("through", through)
workflow("counted", counted)
workflow("read", read)
`, `
def test_it_waits_for_what_the_default_is_not():
    equal(send("look"), [True, "bob", 3])
    start_workflow("through", "r", {})
    equal(doc("run_r").state, "running")
    restart()
    send("change", {"key": "by", "value": {"name": "ann"}})
    equal(doc("run_r").state, "running")
    send("change", {"key": "closed", "value": False})
    expect(doc("run_r").result, {"closed": False, "by": {"name": "ann", "n": 0}})

def test_it_compares_with_a_number_of_the_default():
    start_workflow("counted", "r", {})
    equal(doc("run_r").state, "running")
    send("change", {"key": "by", "value": {"name": "ann"}})
    equal(doc("run_r").state, "running")
    send("change", {"key": "by", "value": {"n": 6}})
    expect(doc("run_r").result, True)

def test_it_reads_what_a_handler_reads():
    start_workflow("read", "r", {})
    expect(doc("run_r").result, [True, "bob", 3, None, None])

def test_a_value_of_another_kind_has_no_fields_of_the_default():
    send("change", {"key": "by", "value": 7})
    start_workflow("read", "r", {})
    expect(doc("run_r").result, [True, None, 3, None, None])
`)
}

// Two defaults of one document are refused where a condition could read either.
func TestCondition_OfADocumentWithTwoDefaultsIsRefused(t *testing.T) {
	const cells = "a = cell(\"gate\", {\"n\": 1})\nb = cell(\"gate\", {\"n\": %s})\ndef run(): return wait(%s)\nworkflow(\"w\", run)\n"
	for _, c := range []struct{ n, wait, want string }{
		{"2", `lambda: get("gate", "n")`, `p.star:2:9: document gate has another default at p.star:1:9, and the condition of a wait, get("gate"), would have two values`},
		{"1", `lambda: get("gate", "n")`, ""},
		{"2", `"signal"`, ""},
	} {
		text := strings.Replace(strings.Replace(cells, "%s", c.n, 1), "%s", c.wait, 1)
		_, err := star.Compile(star.Source{Name: "p", Entry: "p.star", Files: map[string]string{"p.star": text}}, star.Options{})
		if got := ""; err != nil {
			if got = err.Error(); c.want == "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: %s", text, got)
			}
		} else if c.want != "" {
			t.Errorf("%s: it is taken", text)
		}
	}
}
