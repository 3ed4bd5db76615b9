package space

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/model"
)

// usages are the arguments of each command, as in testdata/README.md. They are checked because an unnoticed
// typing error would change the story.
//
// Capitals are placeholders: RUNTIME and SPACE for existing ones (register, put and send may mention a space
// for the first time), DURATION and N for a time and a number, anything else for a word. Lower-case words are
// literal. Arguments in brackets are optional, dots mean repetition, and a colon at the end means lines
// below.
var usages = map[string]string{
	"case":         "[NAME...]",
	"register":     "SPACE :",
	"runtimes":     "NAME... [spare] [attached] [without-events] [check-idempotency] [max-iterations=N] [run-budget=N] [lane-limit=N] [max-group=N] [run-retries=N] [event-retries=N] [lost-attempts=N] [max-chain=N] [conflict-window=DURATION]",
	"put":          "SPACE [group=NAME] :",
	"send":         "SPACE/STREAM id=ID [at=DURATION] [invalid=WHY] [raw] :",
	"run":          "[RUNTIME...]",
	"decide":       "[RUNTIME...]",
	"deliver":      "[RUNTIME...] [only] [unmirrored]",
	"stabilize":    "[RUNTIME...]",
	"write":        "RUNTIME [group=NAME] :",
	"add":          "RUNTIME :",
	"remove":       "RUNTIME NODE",
	"observe":      "RUNTIME DOC",
	"unobserve":    "RUNTIME DOC",
	"gate":         "RUNTIME NODE [debounce=DURATION] [max-wait=DURATION] [throttle=DURATION] [no-auto-debounce]",
	"took":         "RUNTIME NODE DURATION [times=N]",
	"advance":      "DURATION",
	"wake":         "[RUNTIME...]",
	"clock":        "DURATION",
	"later":        "SPACE",
	"repeat":       "N :",
	"idle":         "[RUNTIME...]",
	"begin":        "RUNTIME NAME",
	"end":          "RUNTIME NAME",
	"close":        "RUNTIME",
	"takeover":     "RUNTIME",
	"attach":       "RUNTIME",
	"crash":        "RUNTIME",
	"checkpoint":   "RUNTIME",
	"observations": "SPACE [forget] [NODE]",
	"resumed":      "[RUNTIME...]",
	"release":      "[again] [reverse]",
	"lane":         "SPACE [redeliver=ID]",
	"graph":        "[RUNTIME...]",
	"values":       "[RUNTIME...]",
	"log":          "SPACE",
	"receipts":     "SPACE",
	"runs":         "[RUNTIME...]",
	"stats":        "[RUNTIME...]",
	"work":         "[RUNTIME...]",
	"errors":       "[RUNTIME...]",
	"markers":      "[RUNTIME...]",
	"durable":      "[RUNTIME...]",
	"links":        "RUNTIME NODE",
	"why":          "RUNTIME [NODE...]",
	"nodestats":    "RUNTIME NODE...",
	"trace":        "RUNTIME [on] [off] [runs] [triggers]",
	"diagnose":     "RUNTIME [on] [off] [when-busy]",
	"busy":         "RUNTIME DURATION seconds=N",
	"tasks":        "SPACE",
	"perform":      "SPACE ACTION KEY [n=N] :",
	"operator":     "[RUNTIME...]",
	"damage":       "SPACE DOC",
	"repair":       "SPACE",
}

// check refuses arguments and input that a command does not accept.
func (s *stage) check(d *datadriven.TestData) error {
	form, ok := usages[d.Cmd]
	if !ok {
		return nil
	}
	err := s.checkForm(form, d)
	if err != nil {
		err = fmt.Errorf("%w; it is: %s", err, strings.TrimSpace(d.Cmd+" "+form))
	}
	return err
}

func (s *stage) checkForm(form string, d *datadriven.TestData) error {
	form, input := strings.CutSuffix(form, " :")
	if d.Input != "" && !input {
		first, _, _ := strings.Cut(strings.TrimSpace(d.Input), "\n")
		return fmt.Errorf("%s takes nothing on the lines below it, and there is %q; "+
			"a command ends in a line ----, with -rewrite too", d.Cmd, first)
	}
	given := slices.DeleteFunc(slices.Clone(d.CmdArgs), func(a datadriven.CmdArg) bool {
		return a.Key == "quiet" && len(a.Vals) == 0
	})
	take := func(one func(a datadriven.CmdArg) bool) (string, bool) {
		i := slices.IndexFunc(given, one)
		if i < 0 {
			return "", false
		}
		word := given[i].Key
		if len(given[i].Vals) > 0 {
			word = strings.Join(given[i].Vals, ",")
		}
		given = slices.Delete(given, i, i+1)
		return word, true
	}
	// Literal words and options first: they may be anywhere.
	var places []string
	for _, part := range strings.Fields(form) {
		name, optional := strings.CutPrefix(part, "[")
		name = strings.TrimSuffix(name, "]")
		name, what, option := strings.Cut(name, "=")
		if !option && strings.ToLower(name) != name {
			places = append(places, part)
			continue
		}
		word, ok := take(func(a datadriven.CmdArg) bool { return a.Key == name && len(a.Vals) > 0 == option })
		if !ok && !optional {
			return fmt.Errorf("%s= is missing", name)
		}
		if ok && option {
			if err := s.checkWord(d.Cmd, what, word); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, part := range places {
		what, optional := strings.CutPrefix(part, "[")
		what, more := strings.CutSuffix(strings.TrimSuffix(what, "]"), "...")
		for n := 0; n == 0 || more; n++ {
			word, ok := take(func(a datadriven.CmdArg) bool { return len(a.Vals) == 0 })
			if !ok && n == 0 && !optional {
				return fmt.Errorf("%s is missing", what)
			}
			if !ok {
				break
			}
			if err := s.checkWord(d.Cmd, what, word); err != nil {
				return err
			}
		}
	}
	if len(given) > 0 {
		return fmt.Errorf("%s does not take %s", d.Cmd, given[0].String())
	}
	return nil
}

// checkWord refuses a word that does not fit its placeholder.
func (s *stage) checkWord(cmd, what, word string) error {
	switch what {
	case "RUNTIME":
		if s.find(word) == nil {
			return s.noRuntime(word)
		}
	case "SPACE", "SPACE/STREAM":
		space, stream, _ := strings.Cut(word, "/")
		if (stream == "") != (what == "SPACE") {
			return fmt.Errorf("%q is not %s", word, what)
		}
		if cmd == "register" || cmd == "put" || cmd == "send" { // the command may be the first to mention the space
			return model.CheckName("space", space)
		}
		if there := s.spaces(); !slices.Contains(there, space) {
			return fmt.Errorf("there is no space %q; there are: %s", space, names(there))
		}
	case "DURATION":
		if _, err := time.ParseDuration(word); err != nil {
			return fmt.Errorf("%q is not a time such as 250ms, 1.5s or 0", word)
		}
	case "N":
		if n, err := strconv.Atoi(word); err != nil || n < 0 {
			return fmt.Errorf("%q is not a number", word)
		}
	}
	return nil
}

func (s *stage) noRuntime(name string) error {
	var there []string
	for _, a := range s.actors {
		there = append(there, a.name)
	}
	return fmt.Errorf("there is no runtime %q; there are: %s", name, names(there))
}

// spaces returns the spaces that a scenario has mentioned.
func (s *stage) spaces() []string {
	out := slices.Concat(sortedKeys(s.scripts), sortedKeys(s.logs), sortedKeys(s.lanes))
	slices.Sort(out)
	return slices.Compact(out)
}

func TestScenarios_EveryCommandHasUsages(t *testing.T) {
	for _, c := range commands {
		if _, ok := usages[c.name]; !ok && c.name != "case" {
			t.Errorf("usages has no %s", c.name)
		}
	}
}

func TestScenarios_RefuseInvalidArguments(t *testing.T) {
	s := newStage(t)
	if err := s.do("register s : computation total = a"); err != nil {
		t.Fatal(err)
	}
	if err := s.do("runtimes r1.s"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ line, says string }{
		{"run r1.t", `there is no runtime "r1.t"; there are: r1.s; it is: run [RUNTIME...]`},
		{"run r1.s loudly", `there is no runtime "loudly"; there are: r1.s; it is: run [RUNTIME...]`},
		{"run : a = 1", `run takes nothing on the lines below it, and there is "a = 1"; a command ends in a line ----, with -rewrite too; it is: run [RUNTIME...]`},
		{"crash", "RUNTIME is missing; it is: crash RUNTIME"},
		{"put r1.s : a = 1", `space "r1.s": character '.' is not allowed; use letters, digits, '-' and '_'; it is: put SPACE [group=NAME] :`},
		{"lane r1.s", `there is no space "r1.s"; there are: s; it is: lane SPACE [redeliver=ID]`},
		{"send s id=e1", `"s" is not SPACE/STREAM; it is: send SPACE/STREAM id=ID [at=DURATION] [invalid=WHY] [raw] :`},
		{"send s/add", "id= is missing; it is: send SPACE/STREAM id=ID [at=DURATION] [invalid=WHY] [raw] :"},
		{"advance 5", `"5" is not a time such as 250ms, 1.5s or 0; it is: advance DURATION`},
		{"advance -5ms", "time does not go back"},
		{"advance 1s 2s", "advance does not take 2s; it is: advance DURATION"},
		{"took r1.s total 1s times=x", `times: "x" is not a number; it is: took RUNTIME NODE DURATION [times=N]`},
		{"release backwards", "release does not take backwards; it is: release [again] [reverse]"},
		{"observations s forget", ""},
		{"diagnose r1.s when-busy", ""},
		{"deliver only r1.s quiet", ""},
		{"why r1.s total total", ""},
	} {
		err := s.do(tc.line)
		if err == nil {
			err = errors.New("")
		}
		if err.Error() != tc.says {
			t.Errorf("%s:\n  %s\nand not\n  %s", tc.line, err, tc.says)
		}
	}
}
