package compile

import (
	"errors"
	"regexp"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/syntax"
)

// hint is what to write in place of a construct of Python that the parser does not know. The patterns are matched with
// the parser's message, the line up to the error, and the line from there on; one that is nil matches anything.
type hint struct {
	message, before, at *regexp.Regexp
	advice              string
}

func pattern(text string) *regexp.Regexp { return regexp.MustCompile(text) }

// hints are tried in order. The parser reports some errors in front of a token, and others behind it.
var hints = []hint{
	{at: pattern(`^(try|except|finally)\b`), advice: `handle an error with r = attempt(action(...)), and after it if r.failed("Type"): ...`},
	{at: pattern(`^raise\b`), advice: `write fail(error("Type", "message"))`},
	{at: pattern(`^with\b`), advice: `call an action that opens and, after an attempt of the work, one that closes`},
	{at: pattern(`^class\b`), advice: `there are no classes: write functions, and keep data in dicts`},
	{at: pattern(`^(import|from)\b`), advice: `a workflow imports nothing but actions: name = action("name")`},
	{at: pattern(`^del\b`), advice: `write d.pop(key) or xs.pop(index)`},
	{at: pattern(`^(global|nonlocal)\b`), advice: `a function takes values as arguments and returns what it has changed`},
	{at: pattern(`^yield\b`), advice: `there are no generators: append to a list, and return it`},
	{at: pattern(`^(await|async)\b`), advice: `calls of actions are awaited as they are: leave it out`},
	{at: pattern(`^else\b`), advice: `a loop has no else: set a variable before break, or return`},
	{at: pattern(`^@`), advice: `there are no decorators: write workflow("name", run) below the function run`},
	{message: pattern(`got is`), advice: `write == or !=`},
	{before: pattern(`:$`), at: pattern(`^=`), advice: `assign in a statement before`},
	{before: pattern(`^\s*match\s+\w+$`), advice: `write if and elif`},
	{before: pattern(`^\s*assert\b`), message: pattern(`want newline`), advice: `write if not ...: fail("message")`},
	{before: pattern(`\b[fF]["'].*$`), message: pattern(`got string literal`), advice: `there are no f-strings: write "n is %s" % n, or "n is {}".format(n)`},
	{message: pattern(`got string literal`), advice: `join texts with +`},
	{before: pattern(`^\s*def\b.*(:|-)$`), advice: `there are no types of parameters and results: leave them out`},
	{message: pattern(`got (',', want ':'|'}', want ':'|for, want ':')`), advice: `there are no literals of sets: write set([...])`},
	{message: pattern(`got for, want `), advice: `there are no generators: make a list, [... for ...]`},
	{message: pattern(`does not associate`), advice: `write a < b and b < c`},
	{message: pattern(`got '\*\*'`), advice: `there is no **: multiply, in a loop if need be`},
	{at: pattern(`^\*`), before: pattern(`[\[,]\s*$`), advice: `there is no * here: join lists with +, and take parts with xs[0] and xs[1:]`},
	{message: pattern(`got '='`), advice: `a statement has one assignment`},
	{before: pattern(`[0-9]_\w*$`), message: pattern(`got identifier`), advice: `write a number without _`},
	{message: pattern(`not within a function`), advice: `a file declares: load, def, constants and workflow(...)`},
}

var declaresWorkflow = pattern(`(?m)^workflow\(`)

// Explain adds advice to an error of the parser in a file that declares workflows.
func Explain(src []byte, err error) error {
	if !declaresWorkflow.Match(src) {
		return err
	}
	return newText(src).explained(err)
}

// explained adds advice to an error of the parser or the resolver.
func (t text) explained(err error) error {
	var at syntax.Error
	if errors.As(err, &at) {
		if advice := t.hint(at.Pos, at.Msg); advice != "" {
			return &Error{Pos: at.Pos, Text: at.Msg + "; " + advice}
		}
		return err
	}
	var list resolve.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		first := list[0]
		advice := t.hint(first.Pos, first.Msg)
		if undefined.MatchString(first.Msg) {
			name := undefined.ReplaceAllString(first.Msg, "")
			advice = "there are the names of this file, the builtins of Starlark, " + available() + declareAction(strings.Fields(name + " ?")[0])
		}
		if advice != "" {
			return &Error{Pos: first.Pos, Text: first.Msg + "; " + advice}
		}
	}
	return err
}

var undefined = pattern(`^undefined: `)

func (t text) hint(pos syntax.Position, message string) string {
	before, at := "", ""
	if i := int(pos.Line) - 1; i >= 0 && i < len(t) {
		line := []rune(t[i])
		col := min(max(int(pos.Col)-1, 0), len(line))
		before, at = string(line[:col]), string(line[col:])
	}
	for _, h := range hints {
		is := func(p *regexp.Regexp, text string) bool { return p == nil || p.MatchString(text) }
		if is(h.message, message) && is(h.before, before) && is(h.at, at) {
			return h.advice
		}
	}
	return ""
}
