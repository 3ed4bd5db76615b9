package space

import (
	"fmt"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// script is a program written as the lines of a register command.
type script struct {
	*Program
	// derive has the expressions of the computations by node id; the runner checks their results with them.
	derive map[string]expr
	// seen is the result of the last effect's run, which the core does not keep.
	seen model.Value
	// ticks counts the calls of tick().
	ticks int
	// actions are the actions and inputs, by name.
	actions map[string]*ActionSpec
}

func parseScript(name, input string) (*script, error) {
	s := &script{Program: NewProgram(name), derive: map[string]expr{}, actions: map[string]*ActionSpec{}}
	for _, line := range joinIndented(input) {
		if err := s.line(line); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return s, nil
}

// joinIndented drops comments and joins indented lines to the line that they continue.
func joinIndented(input string) []string {
	var lines []string
	for line := range strings.Lines(input) {
		t := strings.TrimSpace(line)
		switch {
		case t == "" || t[0] == '#':
		case line[0] == ' ' && len(lines) > 0:
			last := &lines[len(lines)-1]
			if !strings.HasSuffix(*last, ":") {
				*last += ";"
			}
			*last += " " + t
		default:
			lines = append(lines, t)
		}
	}
	return lines
}

func (s *script) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	if word == "handler" {
		return s.handler(rest)
	}
	switch word {
	case "cron":
		return s.cron(rest)
	case "action", "input":
		return s.action(word == "input", rest)
	}
	spec, err := s.node(line)
	if err != nil {
		return err
	}
	return s.Add(spec)
}

func definition(rest string) (name string, e expr, err error) {
	name, src, ok := strings.Cut(rest, "=")
	if !ok {
		return "", nil, fmt.Errorf("%q: there is no '=', as in address = expr", rest)
	}
	e, err = parseExpr(strings.TrimSpace(src))
	return strings.TrimSpace(name), e, err
}

// node parses a definition: kind, id, optionally "-> output", options, and either "= expr" or ": statements".
func (s *script) node(line string) (NodeSpec, error) {
	kind, rest, _ := strings.Cut(line, " ")
	var spec NodeSpec
	switch kind {
	case "computation", "materializer":
		spec.Kind = Computation
	case "effect":
		spec.Kind = Effect
	default:
		return spec, fmt.Errorf("a line begins with computation, effect, materializer, handler, action, input or cron")
	}
	output := ""
	for first := true; ; first = false {
		word, more, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
		body := strings.HasSuffix(word, ":")
		word = strings.TrimSuffix(word, ":")
		var err error
		switch {
		case word == "=":
			return s.finish(spec, kind, output, more, "")
		case first:
			spec.ID = word
		case word == "->":
			output, more, _ = strings.Cut(strings.TrimLeft(more, " "), " ")
			body = strings.HasSuffix(output, ":")
			output = strings.TrimSuffix(output, ":")
		case word == "" && !body:
			return spec, fmt.Errorf("there is neither ' = ' nor ':'")
		default:
			err = s.nodeOption(&spec, word)
		}
		if err != nil {
			return spec, err
		}
		if body {
			return s.finish(spec, kind, output, "", more)
		}
		rest = more
	}
}

// nodeOption parses an option of a node.
func (s *script) nodeOption(spec *NodeSpec, word string) (err error) {
	name, value, _ := strings.Cut(word, "=")
	switch name {
	case "using":
		of := s.actions[value]
		if of == nil {
			return fmt.Errorf("there is no input %q above", value)
		}
		spec.Writes = append(spec.Writes, of.Wants())
	case "writes":
		spec.Writes, err = parseAddresses(value)
	case "envelope":
		spec.Envelope, err = parseAddresses(value)
	case "declares":
		spec.DeclaredReads, err = parseAddresses(value)
	case "debounce":
		spec.Gate.Debounce, err = time.ParseDuration(value)
	case "max-wait":
		spec.Gate.MaxWait, err = time.ParseDuration(value)
	case "throttle":
		spec.Gate.Throttle, err = time.ParseDuration(value)
	case "no-auto-debounce":
		spec.Gate.NoAutoDebounce = true
	case "group":
		spec.Group = value
	case "version":
		spec.Version = value
	case "volatile":
		spec.Volatile = true
	default:
		return fmt.Errorf("a node has no option %q; what it does stands behind ' = ' or ':'", word)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

func parseAddresses(list string) ([]Address, error) {
	var out []Address
	for one := range strings.SplitSeq(list, ",") {
		a, err := parseAddress(one)
		if err != nil {
			return nil, err
		}
		out = append(out, Address{Space: a.space, Doc: a.doc, Path: a.path})
	}
	return out, nil
}

// finish sets the node's output and function. A computation writes the document of its id unless an output is
// given; "-> -" means none.
func (s *script) finish(spec NodeSpec, kind, output, src, body string) (NodeSpec, error) {
	switch {
	case output == "" && kind == "computation":
		spec.Output = spec.ID
	case output != "-":
		spec.Output = output
	}
	run, err := s.body(src, body)
	if err != nil {
		return spec, err
	}
	if src != "" && spec.Output != "" {
		s.derive[spec.ID] = run
	}
	spec.Run = func(tx *Tx) (model.Value, error) {
		v, err := run.eval(s.env(tx, nil))
		if spec.Kind == Effect {
			s.seen = v
		}
		return v, err
	}
	return spec, nil
}

// body parses an expression, or statements as one.
func (s *script) body(src, body string) (expr, error) {
	if src != "" {
		return parseExpr(strings.TrimSpace(src))
	}
	statements, err := s.statements(body)
	return func(v *env) model.Value {
		for _, st := range statements {
			if r, done := st(v.tx, v); done {
				return r
			}
		}
		return model.Value{}
	}, err
}

func (s *script) statements(body string) ([]statement, error) {
	var out []statement
	for _, src := range splitStatements(body) {
		st, err := s.parseStatement(src)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, nil
}

func (s *script) env(tx *Tx, ev *model.Event) *env { return &env{tx: tx, event: ev, ticks: &s.ticks} }

// handler parses "stream: statement; statement".
func (s *script) handler(rest string) error {
	stream, body, ok := strings.Cut(rest, ":")
	if !ok {
		return fmt.Errorf("there is no ':' after the stream")
	}
	run, err := s.body("", body)
	if err != nil {
		return err
	}
	return s.Handle(stream, func(tx *Tx, ev *model.Event) (model.Value, error) {
		return run.eval(s.env(tx, ev))
	})
}

// splitStatements splits at semicolons outside quotes.
func splitStatements(body string) []string {
	var out []string
	quoted := false
	from := 0
	for i := range len(body) + 1 {
		switch {
		case i == len(body) || body[i] == ';' && !quoted:
			if st := strings.TrimSpace(body[from:i]); st != "" {
				out = append(out, st)
			}
			from = i + 1
		case body[i] == '"':
			quoted = !quoted
		}
	}
	return out
}

// statement does one thing in a handler; done ends it with a result.
type statement func(tx *Tx, v *env) (result model.Value, done bool)

func (s *script) parseStatement(src string) (statement, error) {
	word, rest, _ := strings.Cut(src, " ")
	switch word {
	case "send":
		return parseSend(rest)
	case "after":
		return parseAfter(rest)
	case "timer":
		return parseTimer(rest)
	case "cancel":
		return parseCancel(rest)
	case "start":
		return parseStart(rest)
	case "cancel-task", "drop-task", "refresh":
		return parseTaskStatement(word, rest)
	case "delete":
		a, err := parseAddress(strings.TrimSpace(rest))
		return func(tx *Tx, _ *env) (model.Value, bool) {
			tx.Delete(a.doc, a.path...)
			return model.Value{}, false
		}, err
	case "return":
		e, err := parseExpr(rest)
		return func(_ *Tx, v *env) (model.Value, bool) { return e(v), true }, err
	case "if":
		return s.parseIf(rest)
	case "for":
		return s.parseFor(rest)
	case "node":
		spec, err := s.node(rest)
		return func(tx *Tx, _ *env) (model.Value, bool) {
			tx.Node(spec)
			return model.Value{}, false
		}, err
	case "group":
		return func(tx *Tx, _ *env) (model.Value, bool) {
			tx.Group(strings.TrimSpace(rest))
			return model.Value{}, false
		}, nil
	}
	if target, _, ok := strings.Cut(src, "="); !ok || strings.Contains(target, "(") {
		return parseCall(src)
	}
	name, e, err := definition(src)
	if err != nil {
		return nil, err
	}
	return parseWrite(name, e)
}

// parseWrite parses "address = expr".
func parseWrite(name string, e expr) (statement, error) {
	a, err := parseAddress(name)
	return func(tx *Tx, v *env) (model.Value, bool) {
		tx.Set(a.doc, e(v), a.path...)
		return model.Value{}, false
	}, err
}

// parseCall parses an expression without a used value, such as fail("...").
func parseCall(src string) (statement, error) {
	e, err := parseExpr(src)
	return func(_ *Tx, v *env) (model.Value, bool) {
		e(v)
		return model.Value{}, false
	}, err
}

// parseIf parses "expr then statement".
func (s *script) parseIf(rest string) (statement, error) {
	cond, then, ok := strings.Cut(rest, " then ")
	if !ok {
		return nil, fmt.Errorf("if without then")
	}
	e, err := parseExpr(cond)
	if err != nil {
		return nil, err
	}
	st, err := s.parseStatement(then)
	return func(tx *Tx, v *env) (model.Value, bool) {
		if truth(e(v)) {
			return st(tx, v)
		}
		return model.Value{}, false
	}, err
}

// parseFor parses "name in expr do statement": the statement is executed with {name} replaced by each
// element, as text.
func (s *script) parseFor(rest string) (statement, error) {
	name, rest, ok1 := strings.Cut(rest, " in ")
	src, do, ok2 := strings.Cut(rest, " do ")
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("for without in or do")
	}
	e, err := parseExpr(src)
	return func(tx *Tx, v *env) (model.Value, bool) {
		for x := range e(v).Elements() {
			st, err := s.parseStatement(strings.ReplaceAll(do, "{"+name+"}", text([]model.Value{x})))
			if err != nil {
				panic(failure{why: err.Error()})
			}
			if r, done := st(tx, v); done {
				return r, true
			}
		}
		return model.Value{}, false
	}, err
}

// parseSend parses "stream [expr]" or "space/stream [expr]".
func parseSend(rest string) (statement, error) {
	return parseSending(rest, func(tx *Tx, space, stream string, v model.Value) { tx.Send(space, stream, v) })
}

func parseSending(rest string, send func(tx *Tx, space, stream string, v model.Value)) (statement, error) {
	to, src, _ := strings.Cut(strings.TrimSpace(rest), " ")
	e := constant(model.Value{})
	if src = strings.TrimSpace(src); src != "" {
		var err error
		if e, err = parseExpr(src); err != nil {
			return nil, err
		}
	}
	space, stream, other := strings.Cut(to, "/")
	return func(tx *Tx, v *env) (model.Value, bool) {
		if other {
			send(tx, space, stream, e(v))
		} else {
			send(tx, tx.Space(), to, e(v))
		}
		return model.Value{}, false
	}, nil
}
