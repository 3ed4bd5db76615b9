package codec

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

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

// describe describes v by its kind. Errors get into logs and traces, and values do not.
func describe(v model.Value) string {
	switch v.Kind() {
	case model.KindNull:
		return "null is here"
	case model.KindBool:
		return "a bool is here"
	case model.KindInt:
		return "an integer is here"
	case model.KindFloat:
		return "a number is here"
	case model.KindString:
		return "a string is here"
	case model.KindArray:
		return "an array of " + strconv.Itoa(v.Len()) + " is here"
	case model.KindObject:
		return "an object is here"
	}
	return "nothing is here"
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
