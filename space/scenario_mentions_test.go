package space

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// named are the expectations whose value is one of these where nothing has the name: a misspelt name would be found to be so.
var named = map[string]struct{ of, nothing string }{
	"outcome": {"event", "none"}, "result": {"event", "none"}, "end": {"event", "none"}, "receipts": {"event", "0"}, "by": {"event", "none"},
	"value": {"document", "absent"}, "status": {"node", "gone"}, "seen": {"node", "nothing"},
}

// unmentioned returns an error if nothing has a name that the case mentions only where it expects that.
func (s *stage) unmentioned(what, name, got string) error {
	n, is := named[what]
	if s.mentions == nil || !is || got != n.nothing || s.mentions(name) {
		return nil
	}
	return fmt.Errorf("the case has no %s %q", n.of, name)
}

// textsOfCases returns the lines of a file of scenarios by its cases, without comments and what is expected. The first text is what
// stands before the first case.
func textsOfCases(file string) []string {
	texts := make([]string, 1)
	expecting := false
	for line := range strings.Lines(file) {
		switch begins := strings.HasPrefix(line, "expect "); {
		case expecting:
			expecting = strings.TrimSpace(line) != "----"
		case begins:
			expecting = !strings.Contains(line, " : ") // it is a line of repeat otherwise
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "case", strings.HasPrefix(line, "case "):
			texts = append(texts, line)
		default:
			texts[len(texts)-1] += line
		}
	}
	return texts
}

// numbersIn finds the numbers in a name. Each may stand for a variable: e{n} of repeat, piece{x} of the statements of a node.
var numbersIn = regexp.MustCompile("[0-9]+")

// mentionsIn returns a function that reports whether a text has a name, or each part of one that the space makes, such as
// observe:NODE and SPACE:1:1:0.
func mentionsIn(text string) func(name string) bool {
	has := func(name string) bool {
		pattern := numbersIn.ReplaceAllString(regexp.QuoteMeta(name), `(?:$0|\{\w+\})`)
		return regexp.MustCompile(`(^|[^\w-])` + pattern + `($|[^\w-])`).MatchString(text)
	}
	return func(name string) bool {
		if has(name) {
			return true
		}
		parts := strings.Split(strings.TrimPrefix(name, "observe:"), ":")
		return strings.Contains(name, ":") && has(parts[0]) && !slices.ContainsFunc(parts[1:], func(part string) bool {
			_, err := strconv.Atoi(part)
			return err != nil
		})
	}
}

func TestScenarios_ExpectRefusesNamesThatTheCaseDoesNotMention(t *testing.T) {
	s := newStage(t)
	for _, line := range []string{"register s : computation total = sum(a, 0)", "runtimes r1.s", "observe r1.s total", "stabilize"} {
		if err := s.do(line); err != nil {
			t.Fatal(err)
		}
	}
	texts := textsOfCases("# a1\n\ncase one\n----\n\nsend s/add id=e1\n----\n\nexpect r1.s\nvalue of b1 is absent\n----\nok\n\nput s\nc1\n----\n\nrepeat 2\nexpect r1.s : value of d1 is absent\nsend s/add id=x{n}\n----\n\ncase two\n----\nf1\n")
	if len(texts) != 3 {
		t.Fatalf("the cases are %q", texts)
	}
	s.mentions = mentionsIn(texts[1])
	for _, name := range []string{"e1", "c1", "x2", "a1", "b1", "d1", "f1", "e", "e11", "observe:e1", "observe:e2", "s:1:1:0", "t:1:1:0", "s:1:x"} {
		want := !slices.Contains([]string{"a1", "b1", "d1", "f1", "e", "e11", "observe:e2", "t:1:1:0", "s:1:x"}, name)
		for what, n := range named { // any order: each is a line
			err := s.do(fmt.Sprintf("expect r1.s : %s of %s is %s", what, name, n.nothing))
			switch text := fmt.Sprintf("%s of %s is %s: the case has no %s %q", what, name, n.nothing, n.of, name); {
			case want && err != nil:
				t.Error(err)
			case !want && (err == nil || err.Error() != text):
				t.Errorf("%v, not %s", err, text)
			}
		}
	}
	if err := s.do("expect r1.s : value of total is 0; status of total is clean"); err != nil {
		t.Errorf("what is there needs no mention: %v", err)
	}
}
