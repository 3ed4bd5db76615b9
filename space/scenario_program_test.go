package space

import (
	"fmt"
	"strings"

	"github.com/settlehq/settle/model"
)

// script is a program written in the lines of a register command.
type script struct {
	*Program
	// derive are the expressions of the computations by node id, with which the runner
	// checks what they came to.
	derive map[string]expr
	// seen is what the last effect's run came to: the core does not keep it.
	seen model.Value
}

func parseScript(name, input string) (*script, error) {
	s := &script{Program: NewProgram(name), derive: map[string]expr{}}
	for _, line := range joinIndented(input) {
		if err := s.line(line); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return s, nil
}

// joinIndented drops comments and adds indented lines to the one they belong to.
func joinIndented(input string) []string {
	var lines []string
	for line := range strings.Lines(input) {
		t := strings.TrimSpace(line)
		switch {
		case t == "" || t[0] == '#':
		case line[0] == ' ' && len(lines) > 0:
			lines[len(lines)-1] += "; " + t
		default:
			lines = append(lines, t)
		}
	}
	return lines
}

func (s *script) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "computation":
		return s.computation(rest)
	case "effect":
		return s.effect(rest)
	case "handler":
		return s.handler(rest)
	}
	return fmt.Errorf("a line begins with computation, effect or handler")
}

func definition(rest string) (name string, e expr, err error) {
	name, src, ok := strings.Cut(rest, "=")
	if !ok {
		return "", nil, fmt.Errorf("there is no '='")
	}
	e, err = parseExpr(strings.TrimSpace(src))
	return strings.TrimSpace(name), e, err
}

// computation takes "id = expr" or "id -> output = expr".
func (s *script) computation(rest string) error {
	id, e, err := definition(rest)
	if err != nil {
		return err
	}
	output := id
	if from, to, ok := strings.Cut(id, "->"); ok {
		id, output = strings.TrimSpace(from), strings.TrimSpace(to)
	}
	s.derive[id] = e
	return s.Add(NodeSpec{ID: id, Kind: Computation, Output: output, Run: func(tx *Tx) (model.Value, error) {
		return e.eval(envOf(tx, nil))
	}})
}

// effect takes "id = expr".
func (s *script) effect(rest string) error {
	id, e, err := definition(rest)
	if err != nil {
		return err
	}
	return s.Add(NodeSpec{ID: id, Kind: Effect, Run: func(tx *Tx) (v model.Value, err error) {
		s.seen, err = e.eval(envOf(tx, nil))
		return s.seen, err
	}})
}

func envOf(tx *Tx, ev *model.Event) *env {
	return &env{event: ev, get: func(space, doc string, path []string) model.Value {
		if space == "" {
			return tx.Get(doc, path...)
		}
		return tx.GetFrom(space, doc, path...)
	}}
}

// handler takes "stream: statement; statement".
func (s *script) handler(rest string) error {
	stream, body, ok := strings.Cut(rest, ":")
	if !ok {
		return fmt.Errorf("there is no ':' after the stream")
	}
	var statements []statement
	for _, src := range splitStatements(body) {
		st, err := parseStatement(src)
		if err != nil {
			return err
		}
		statements = append(statements, st)
	}
	return s.Handle(stream, func(tx *Tx, ev *model.Event) (result model.Value, err error) {
		v := envOf(tx, ev)
		_, err = expr(func(*env) model.Value {
			for _, st := range statements {
				if r, done := st(tx, v); done {
					result = r
					break
				}
			}
			return model.Value{}
		}).eval(v)
		return result, err
	})
}

// splitStatements splits at semicolons outside of quotes.
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

func parseStatement(src string) (statement, error) {
	word, rest, _ := strings.Cut(src, " ")
	switch word {
	case "send":
		return parseSend(rest)
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
		return parseIf(rest)
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

// parseWrite takes "address = expr".
func parseWrite(name string, e expr) (statement, error) {
	a, err := parseAddress(name)
	return func(tx *Tx, v *env) (model.Value, bool) {
		tx.Set(a.doc, e(v), a.path...)
		return model.Value{}, false
	}, err
}

// parseCall takes an expression whose value does not matter, as fail("...").
func parseCall(src string) (statement, error) {
	e, err := parseExpr(src)
	return func(_ *Tx, v *env) (model.Value, bool) {
		e(v)
		return model.Value{}, false
	}, err
}

// parseIf takes "expr then statement".
func parseIf(rest string) (statement, error) {
	cond, then, ok := strings.Cut(rest, " then ")
	if !ok {
		return nil, fmt.Errorf("if without then")
	}
	e, err := parseExpr(cond)
	if err != nil {
		return nil, err
	}
	st, err := parseStatement(then)
	return func(tx *Tx, v *env) (model.Value, bool) {
		if truth(e(v)) {
			return st(tx, v)
		}
		return model.Value{}, false
	}, err
}

// parseSend takes "stream [expr]" or "space/stream [expr]".
func parseSend(rest string) (statement, error) {
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
			tx.Send(space, stream, e(v))
		} else {
			tx.Send(tx.Space(), to, e(v))
		}
		return model.Value{}, false
	}, nil
}
