package flights

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// dateLayout is how the input writes dates.
const dateLayout = "2006/01/02 15:04"

// maxNumber bounds delays and distances, so that no sum of them overflows.
const maxNumber = 1_000_000

// The requirements for each field, as the end of an error message.
const (
	wantDate     = `use a string such as "2001/01/31 09:30" (year/month/day hour:minute)`
	wantDelay    = "use a whole number of minutes, negative if the flight was early"
	wantDistance = "use a whole number of miles, 0 or more"
	wantCode     = `use an airport code such as "LAS": letters, digits, '-' and '_'`
)

// flight checks one entry of the array. Fields that it does not know are ignored.
func (in *input) flight(raw jsontext.Value) (Flight, error) {
	var f Flight
	if k := raw.Kind(); k != jsontext.KindBeginObject {
		return f, in.fault(fmt.Sprintf("is a JSON %s, not an object", kindName(k)), "an entry is "+shape[len("an array of "):])
	}
	var fields map[string]jsontext.Value
	if err := json.Unmarshal(raw, &fields); err != nil {
		return f, in.broken(err)
	}
	e := entry{in: in, fields: fields}
	f.Date = e.date("date")
	f.Delay = e.number("delay", -maxNumber, wantDelay)
	f.Distance = e.number("distance", 0, wantDistance)
	f.Origin = e.code("origin")
	f.Destination = e.code("destination")
	return f, e.err
}

// entry reads the fields of one entry and keeps the first error.
type entry struct {
	in     *input
	fields map[string]jsontext.Value
	err    error
}

func (e *entry) fault(field, problem, remedy string) {
	if e.err == nil {
		e.err = &InputError{File: e.in.name, Entry: e.in.entry, Field: field, Problem: problem, Remedy: remedy}
	}
}

// field returns the text of a field, and false if there is none.
func (e *entry) field(name, want string) (jsontext.Value, bool) {
	raw, ok := e.fields[name]
	if !ok {
		e.fault(name, "is missing", want)
	}
	return raw, ok
}

// text returns a field that must be a string.
func (e *entry) text(name, want string) (string, bool) {
	raw, ok := e.field(name, want)
	if !ok {
		return "", false
	}
	if raw.Kind() != jsontext.KindString {
		e.fault(name, fmt.Sprintf("is %s, not a string", clip(raw)), want)
		return "", false
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		e.fault(name, fmt.Sprintf("is %s: %v", clip(raw), err), want)
		return "", false
	}
	return string(text), true
}

func (e *entry) date(name string) string {
	text, ok := e.text(name, wantDate)
	if !ok {
		return ""
	}
	if _, err := time.Parse(dateLayout, text); err != nil {
		e.fault(name, fmt.Sprintf("is %s, which is no date and time", clip(e.fields[name])), wantDate)
	}
	return text
}

func (e *entry) number(name string, least int64, want string) int64 {
	raw, ok := e.field(name, want)
	if !ok {
		return 0
	}
	if raw.Kind() != jsontext.KindNumber {
		e.fault(name, fmt.Sprintf("is %s, not a number", clip(raw)), want)
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		e.fault(name, fmt.Sprintf("is %s, not a whole number", clip(raw)), want)
	case err != nil || n < least || n > maxNumber:
		e.fault(name, fmt.Sprintf("is %s, not between %d and %d", clip(raw), least, maxNumber), want)
	}
	return n
}

func (e *entry) code(name string) string {
	text, ok := e.text(name, wantCode)
	if !ok {
		return ""
	}
	if err := checkCode(text); err != nil {
		e.fault(name, err.Error(), wantCode)
	}
	return text
}

// clip shortens a quoted value.
func clip(raw jsontext.Value) string {
	const most = 40
	text := []rune(string(raw))
	if len(text) <= most {
		return string(text)
	}
	return string(text[:most]) + "…"
}

// kindName returns the usual name of a JSON kind.
func kindName(k jsontext.Kind) string {
	switch k {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "boolean"
	case jsontext.KindString:
		return "string"
	case jsontext.KindNumber:
		return "number"
	case jsontext.KindBeginArray:
		return "array"
	case jsontext.KindBeginObject:
		return "object"
	}
	return "value"
}
