package codec

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
)

// Error reports that a value and a Go type do not match, and where.
type Error struct {
	// Path is the place of the mismatch in the value. In an error of Of, "*" stands for any key or
	// index.
	Path model.Path
	// Problem describes the value there and what was expected.
	Problem string
}

func (e *Error) Error() string {
	if len(e.Path) == 0 {
		return e.Problem
	}
	return e.Path.String() + ": " + e.Problem
}

func problem(what string) error { return &Error{Problem: what} }

// at prefixes the path of err with a step.
func at(step string, err error) error {
	e, ok := err.(*Error) //nolint:errorlint // it is not wrapped on the way up
	if !ok {
		return &Error{Path: model.Path{step}, Problem: err.Error()}
	}
	return &Error{Path: append(model.Path{step}, e.Path...), Problem: e.Problem}
}

func atIndex(i int, err error) error { return at(strconv.Itoa(i), err) }

// of returns an error of Of, with the type that it is about.
func of(t reflect.Type, err error) error {
	var e *Error
	if !errors.As(err, &e) || len(e.Path) == 0 {
		return fmt.Errorf("%s: %w", t, err)
	}
	return fmt.Errorf("%s, %w", t, err)
}

// misfit returns the error of finding v where something else was expected.
func misfit(v model.Value, wanted string) error {
	return problem(describe(v) + "; " + wanted + " is wanted")
}

// describe describes v: `"x" is a string`.
func describe(v model.Value) string {
	switch v.Kind() {
	case model.KindNull:
		return "null is here"
	case model.KindBool:
		return v.String() + " is a bool"
	case model.KindInt, model.KindFloat:
		return v.String() + " is a number"
	case model.KindString:
		return quoted(v) + " is a string"
	case model.KindArray:
		return "an array of " + strconv.Itoa(v.Len()) + " is here"
	case model.KindObject:
		return "an object is here"
	}
	return "nothing is here"
}

// quoted returns the string v as JSON, shortened to a readable length.
func quoted(v model.Value) string {
	const readable = 60 // bytes
	s, _ := v.AsString()
	if len(s) <= readable {
		return v.String()
	}
	cut := readable
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return model.String(s[:cut] + "…").String()
}

// inText converts an error of encoding or decoding by text, with its place.
func inText(err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var s *json.SemanticError
	if !errors.As(err, &s) {
		return problem(strings.TrimPrefix(err.Error(), "decode value: "))
	}
	path, _ := model.ParsePath(string(s.JSONPointer))
	return &Error{Path: path, Problem: semantic(s)}
}

// semantic returns the message of an error of the JSON package, without the place.
func semantic(s *json.SemanticError) string {
	if s.Err != nil {
		return s.Err.Error()
	}
	if s.GoType != nil && s.JSONKind != 0 {
		return fmt.Sprintf("a JSON %s does not fit %s", s.JSONKind, s.GoType)
	}
	return s.Error()
}
