package star

import (
	"context"
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

const people = `
def split(old):
    names = old.name.split(" ")
    return {"first": names[0], "last": names[1]}

def listed(old):
    return {"names": [old.first, old.last], "seen": 0}

person = cell("person", version = 3, upgrades = [split, listed])
team = cell("team", version = 3, upgrades = [split, listed], rows = True)

def see(e):
    person.seen += 1

def touch(e):
    person.set(person.get())
    team["a"].set(team["a"].get())

handle("see", see)
handle("touch", touch)
handle("drop", lambda e: person.delete("names"))
handle("names", lambda e: person.names)
handle("keys", lambda e: person.keys() if person.exists() else "none")
compute("first", lambda: person.names[0])
compute("there", lambda: doc("person", space = "test", version = 3, upgrades = [split, listed]).names)
compute("row", lambda: {k: row.names[1] for k, row in team.items()})
compute("all", lambda: team)
`

const peopleTests = `
ann = {"names": ["Ann", "Lee"], "seen": 0}

def stored1():
    cell("person", version = 1).set({"name": "Ann Lee"})
    cell("team", version = 1).set({"a": {"name": "Ann Lee"}, "b": {"name": "Bo Ray"}})

def stored2():
    cell("person", version = 2).set({"first": "Ann", "last": "Lee"})
    cell("team", version = 2, rows = True).set({"a": {"first": "Ann", "last": "Lee"}, "b": {"first": "Bo", "last": "Ray"}})

def stored3():
    cell("person", version = 3).set(ann)
    cell("team", version = 3, rows = True).set({"a": ann, "b": {"names": ["Bo", "Ray"], "seen": 0}})

def reads():
    expect("first", "Ann")
    equal(send("names"), ["Ann", "Lee"])
    equal(send("keys"), ["names", "seen"])
    expect("row", {"a": "Lee", "b": "Ray"})
    expect("all", {"a": ann, "b": {"names": ["Bo", "Ray"], "seen": 0}})
    expect("there", ["Ann", "Lee"])
    expect("there", ["Ann", "Lee"], space = "other")

def test_reads_1():
    stored1()
    reads()

def test_reads_2():
    stored2()
    reads()

def test_reads_3():
    stored3()
    reads()

def test_a_read_writes_nothing():
    stored1()
    reads()
    expect("person", {"name": "Ann Lee"})

def test_a_part_is_written():
    stored2()
    send("see")
    expect("person", {"names": ["Ann", "Lee"], "seen": 1, "$version": 3})

def test_a_part_is_deleted():
    stored1()
    send("drop")
    expect("person", {"seen": 0, "$version": 3})

def test_a_part_of_nothing_is_deleted():
    send("drop")
    expect("person", None)
    equal(send("keys"), "none")

def test_all_is_written():
    stored1()
    send("touch")
    expect("person", {"names": ["Ann", "Lee"], "seen": 0, "$version": 3})
    expect("team", {"a": {"names": ["Ann", "Lee"], "seen": 0, "$version": 3}, "b": {"name": "Bo Ray"}})

def test_a_bad_document_fails_the_event():
    cell("person", version = 1).set({"name": "Ann"})
    send("see", fails = "upgrade person from version 1")
    expect("person", {"name": "Ann"})
`

func TestForms_OlderDocumentsAreUpgraded(t *testing.T) {
	results, err := RunTests(context.Background(), source(people, "people_test.star", peopleTests), "people_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 9 {
		t.Errorf("%d tests ran, want 9", len(results))
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

const peopleElsewhere = `
def split(old):
    names = old.name.split(" ")
    return {"first": names[0], "chief": old.chief}

def listed(old):
    return {"names": [old.first], "chief": old.chief}

def there(version, upgrades):
    return doc("person", space = "there", version = version, upgrades = upgrades)

person = cell("person")
chief = cell("chief")

def store(e):
    person.set({"name": "Ann Lee", "chief": link(chief)})
    chief.set(e)

handle("store", store)
handle("both", lambda e: [there(2, [split]).first, there(3, [split, listed]).names, there(2, [split]).first])
handle("chief", lambda e: there(2, [split]).chief)
compute("twice", lambda: [there(2, [split]).first, there(3, [split, listed]).names])
`

// A program may read a document of another space in two versions, and a link in one leads to where it leads in that space.
func TestForms_DocumentsOfOtherSpacesAreReadInTheVersionThatIsNamed(t *testing.T) {
	results, err := RunTests(context.Background(), source(peopleElsewhere, "people_test.star", `
def test_it():
    send("store", "Bo", space = "there")
    send("store", "Cy")
    equal(send("both"), ["Ann", ["Ann"], "Ann"])
    equal(send("chief"), "Bo")
    expect("twice", ["Ann", ["Ann"]])
`), "people_test.star", TestOptions{Engine: testEngine})
	if err != nil || len(results) != 1 || results[0].Err != nil {
		t.Errorf("%v %+v", err, results)
	}
}

// The keys of an upgraded document may follow from all of what is stored.
func TestForms_KeysDependOnAllThatIsUpgraded(t *testing.T) {
	src := source(`flags = cell("flags", version = 2, upgrades = [lambda old: {name: True for name in old.names}])
compute("keys", lambda: flags.keys())
`, "flags_test.star", `
def test_it():
    cell("flags", version = 1).set({"names": ["a"]})
    expect("keys", ["a"])
    cell("flags", version = 1).names.set(["b"])
    expect("keys", ["b"])
`)
	results, err := RunTests(context.Background(), src, "flags_test.star", TestOptions{Engine: testEngine})
	if err != nil || len(results) != 1 || results[0].Err != nil {
		t.Errorf("%v %+v", err, results)
	}
}

// An event of a program that does not know the version waits.
func TestForms_AnEventWaitsForTheVersion(t *testing.T) {
	for name, do := range map[string]string{
		"read": "person.get()", "part": "person.first", "write": "person.set({})", "writePart": "person.set({})", "delete": "person.delete()",
		"exists": "person.exists()", "keys": "person.keys()", "without": "[cell(\"other\").get(), reject(\"no\", \"no\")] if person.first else reject(\"no\", \"no\")",
	} {
		src := source(`person = cell("person", version = 2, upgrades = [lambda old: old])
handle("do", lambda e: `+do+`)
`, "x_test.star", `
def test_it():
    cell("person", version = 3).set({"names": ["Ann"]})
    send("do")
`)
		results, err := RunTests(context.Background(), src, "x_test.star", TestOptions{Engine: testEngine})
		if err != nil || len(results) != 1 {
			t.Fatalf("%s: %v %+v", name, err, results)
		}
		for _, part := range []string{"the event is not handled", "person has version 3, and this program reads version", "deploy that program"} {
			if err := results[0].Err; err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: the event does not wait, or does not name %q: %v", name, part, err)
			}
		}
	}
}

// An upgrade uses nothing but the value, so it is the same on each worker and at each time.
func TestForms_AnUpgradeIsPure(t *testing.T) {
	for body, want := range map[string]string{
		`cell("limit").get()`: "uses nothing else",
		`now()`:               "uses nothing else",
		`send("x", "y")`:      "uses nothing else",
		`1`:                   "is an object",
	} {
		src := source("def up(old):\n    return "+body+"\n\nx = cell(\"x\", version = 2, upgrades = [up])\nhandle(\"read\", lambda e: x.get())\nhandle(\"y\", lambda e: None)\n", "x_test.star", `
def test_it():
    cell("x", version = 1).set({"a": 1})
    send("read", fails = "`+want+`")
`)
		results, err := RunTests(context.Background(), src, "x_test.star", TestOptions{Engine: testEngine})
		if err != nil || len(results) != 1 || results[0].Err != nil {
			t.Errorf("%s: %v %+v", body, err, results)
		}
	}
}

func TestForms_MistakesAreFoundWhenTheProgramIsLoaded(t *testing.T) {
	for src, want := range map[string]string{
		`cell("x", version = 2, upgrades = [1])`:                        "a list of functions",
		`cell("x", version = 2, upgrades = [lambda: 1])`:                "takes one parameter",
		`cell("x", version = 2, upgrades = [lambda a: a, lambda a: a])`: "version 2",
		`cell("x", version = -1)`:                                       "version -1",
		`cell("x", rows = True)`:                                        "name it: version = 2",
		"cell(\"x\", version = 2)\ncell(\"x\", version = 3)":            "another version",
		"cell(\"x\")\ncell(\"x\", version = 3)":                         "another version",
		"def f():\n    n = []\n    def up(a):\n        n.append(1)\n        return a\n    return up\nx = cell(\"x\", version = 2, upgrades = [f()])\nhandle(\"do\", lambda e: x.get())\n": "",
	} {
		_, err := Compile(source(src), Options{})
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) || want == "" && err != nil {
			t.Errorf("%s: %v, want %q", src, err, want)
		}
	}
}

// A key that a client has chosen does not become the version of a document, which no program could read then.
func TestForms_AVersionIsNoKeyFromOutside(t *testing.T) {
	s := newStage(t, compiled(t, `
scores = cell("scores")
person = cell("person", version = 2, upgrades = [lambda p: p])

def put(e):
    where = scores if e.where == "scores" else person
    where[e.key] = 5
    return where.get()

handle("put", put)
handle("drop", lambda e: scores.delete(e))
`).Space())
	for _, where := range []string{"scores", "person"} {
		s.must("put", map[string]any{"where": where, "key": "ann"})
		rc := s.send("put", map[string]any{"where": where, "key": "$version"})
		if rc.Outcome != model.Failed || !strings.Contains(rc.Error, "the key $version is reserved") {
			t.Errorf("%s: %s %s", where, rc.Outcome, rc.Error)
		}
		if got := s.must("put", map[string]any{"where": where, "key": "bob"}).String(); got != `{"ann":5,"bob":5}` {
			t.Errorf("%s is %s", where, got)
		}
	}
	if rc := s.send("drop", "$version"); rc.Outcome != model.Failed {
		t.Errorf("%s %s", rc.Outcome, rc.Error)
	}
}

// A write to a part goes where links lead, and so does the upgrade before it: the link stays, and there is one document.
func TestForms_AnUpgradeFollowsLinks(t *testing.T) {
	src := source(`person = cell("person", version = 2, upgrades = [lambda old: {"first": old.name, "seen": 0}])
base = cell("base", version = 2, upgrades = [lambda old: {"first": old.name, "seen": 0}])

def see(e):
    person.seen += 1

def name(e):
    person.first = e

handle("see", see)
handle("name", name)
`, "x_test.star", `
def point(at):
    cell("person", version = 1).set(link(cell(at, version = 1)))

def test_here():
    cell("base", version = 1).set({"name": "Ann"})
    point("base")
    send("see")
    expect("base", {"first": "Ann", "seen": 1, "$version": 2})
    send("see")
    expect("person", {"first": "Ann", "seen": 2, "$version": 2})
    expect("base", {"first": "Ann", "seen": 2, "$version": 2})

def test_nothing_is_there():
    point("base")
    send("name", "Bo")
    expect("base", {"first": "Bo", "$version": 2})
`)
	results, err := RunTests(context.Background(), src, "x_test.star", TestOptions{Engine: testEngine})
	if err != nil || len(results) != 2 {
		t.Fatalf("%v %+v", err, results)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Name, r.Err)
		}
	}
}

const versionedTests = `
def test_a_name_alone():
    send("add")
    doc("count").n

def test_another_version():
    send("add")
    cell("count", version = 2).set({"n": 2})

def test_expect_of_a_place():
    send("add")
    expect(doc("count"), {"n": 1})

def test_expect_of_a_name():
    send("add")
    expect("count", {"n": 1})

def test_a_row():
    send("add")
    equal(doc("lines")["a"], {"n": 1})

def test_another_value():
    send("add")
    expect("count", {"n": 2, "$version": 3})

def test_with_its_version():
    send("add")
    equal(cell("count", version = 3).n, 1)
    expect(cell("count", version = 3), {"n": 1})
    equal(cell("lines", version = 3, rows = True)["a"].get(), {"n": 1})
`

// A test that uses a document with a version under its name alone, or compares what is stored, fails with how it uses the present form.
func TestForms_ATestNamesTheVersionOfADocument(t *testing.T) {
	const program = `
count = cell("count", {"n": 0}, version = 3)
lines = cell("lines", {}, version = 3, rows = True)

def add(e):
    count.n += 1
    lines["a"] = {"n": 1}

handle("add", add)
`
	results, err := RunTests(context.Background(), source(program, "versioned_test.star", versionedTests), "versioned_test.star", TestOptions{Engine: testEngine})
	if err != nil {
		t.Fatal(err)
	}
	const present = "load the cell from the program, or name the version: cell(NAME, version = 3), with rows = True if its rows have the version"
	stored := "It is compared as it is stored. To compare its present form, " + present
	want := map[string]string{
		"test_a_name_alone":      "the test uses version 1 of count, and version 3 is stored: " + present,
		"test_another_version":   "the test uses version 2 of count, and version 3 is stored: " + present,
		"test_expect_of_a_place": "the test uses version 1 of count, and version 3 is stored: " + present,
		"test_expect_of_a_name":  stored, "test_a_row": stored,
	}
	for _, r := range results {
		text := ""
		if r.Err != nil {
			text = r.Err.Error()
		}
		words := want[r.Name]
		if words == "" && strings.Contains(text, present) || !strings.Contains(text, words) || r.Name == "test_with_its_version" && text != "" {
			t.Errorf("%s: %s, not %q", r.Name, text, words)
		}
	}
	if len(results) != 7 {
		t.Errorf("%d tests ran", len(results))
	}
}
