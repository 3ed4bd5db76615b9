package schedule

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/settlehq/settle/model"
)

// durations encodes durations as texts such as "1h30m".
var durations = json.JoinOptions(
	json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) { return strconv.AppendQuote(nil, short(d)), nil })),
	json.WithUnmarshalers(json.UnmarshalFunc(func(data []byte, d *time.Duration) error {
		text, err := strconv.Unquote(string(data))
		if err == nil {
			*d, err = ParseDuration(text)
		}
		if err != nil {
			return fmt.Errorf("%.100s is not a duration; write a text such as \"90s\", \"1h30m\" or \"7d\"", data)
		}
		return nil
	})),
)

// ParseDuration parses a duration such as "90s", "1h30m" or "7d".
func ParseDuration(text string) (time.Duration, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	return time.ParseDuration(text)
}

// Value returns the stored form of a schedule, without its lists.
func (s *Schedule) Value() (model.Value, error) { return encode(s) }

// Value returns the stored form of the lists.
func (l *Lists) Value() (model.Value, error) { return encode(l) }

// Value returns the definition as clients send it.
func (d *Definition) Value() (model.Value, error) { return encode(d) }

func encode(x any) (model.Value, error) {
	data, err := json.Marshal(x, durations)
	if err != nil {
		return model.Value{}, err
	}
	return model.ParseValue(data)
}

// Read is the inverse of both, for a schedule of a space; absent lists are empty. Without the name of a space the result is
// for reading only: it has no turns.
func Read(space, name string, v, lists model.Value) (*Schedule, error) {
	s := &Schedule{Name: name}
	err := json.Unmarshal([]byte(v.String()), s, durations)
	if err == nil && !lists.IsAbsent() {
		err = json.Unmarshal([]byte(lists.String()), &s.Lists, durations)
	}
	if err == nil && space != "" {
		err = s.Load(space)
	}
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", name, err)
	}
	return s, nil
}

// ReadDefinition reads a definition that a client has sent, and checks it.
func ReadDefinition(v model.Value) (d Definition, err error) {
	if err = json.Unmarshal([]byte(v.String()), &d, durations, json.RejectUnknownMembers(true)); err != nil {
		return d, fmt.Errorf("the definition cannot be read: %.300s", unreadable(err)) // which may quote what the client has sent
	}
	d.Start, d.End = utc(d.Start), utc(d.End)
	return d, d.Check()
}

// unreadable says which field cannot be read, and why.
func unreadable(err error) string {
	e, is := errors.AsType[*json.SemanticError](err)
	if !is || e.JSONPointer == "" {
		return err.Error()
	}
	field := strings.TrimPrefix(string(e.JSONPointer), "/")
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return "there is no field " + field
	case e.GoType == reflect.TypeFor[time.Time]():
		return field + ` must be a time, such as "2026-11-27T03:00:00Z"`
	case e.Err != nil:
		return field + ": " + e.Err.Error()
	}
	return err.Error()
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
