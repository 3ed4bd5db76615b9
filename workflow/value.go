package workflow

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"
)

// Arguments and results of actions are JSON. A number without a fraction or an exponent is an int, any other a
// float; a float is written with one of them. A tuple becomes an array, and returns as a list.

// maxNesting is the largest depth of an argument.
const maxNesting = 200

// ToJSON returns the encoding of a value as an argument of an action.
func ToJSON(v starlark.Value) (jsontext.Value, error) { return appendJSON(nil, v, 0) }

func appendJSON(b []byte, v starlark.Value, depth int) (_ []byte, err error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("a value that is nested more than %d deep, or holds itself", maxNesting)
	}
	switch v := v.(type) {
	case starlark.NoneType:
		return append(b, "null"...), nil
	case starlark.Bytes:
		return nil, errors.New("bytes cannot be given away; make them a text or a list")
	case starlark.Bool:
		return strconv.AppendBool(b, bool(v)), nil
	case starlark.Int:
		i, is := v.Int64()
		if !is {
			return nil, fmt.Errorf("the int %.30s has more than 64 bits and cannot be given away; make it a text", v.String())
		}
		return strconv.AppendInt(b, i, 10), nil
	case starlark.Float:
		return appendFloat(b, float64(v))
	case starlark.String:
		if !utf8.ValidString(string(v)) {
			return nil, errors.New("a string that is not UTF-8; use bytes only inside of the workflow")
		}
		return jsontext.AppendQuote(b, string(v))
	case *Failure:
		d := starlark.NewDict(3)
		_ = d.SetKey(starlark.String("type"), starlark.String(v.Name)) // a new dict takes all
		_ = d.SetKey(starlark.String("message"), starlark.String(v.Message))
		if v.Detail != nil {
			_ = d.SetKey(starlark.String("detail"), v.Detail)
		}
		if undone, _ := v.Attr("undone"); undone != starlark.None {
			_ = d.SetKey(starlark.String("undone"), undone)
		}
		return appendJSON(b, d, depth)
	case *Result:
		return nil, errors.New("the result of attempt cannot be given away; give its value or its error")
	case *starlark.Dict:
		return appendObject(b, v, depth)
	case starlark.Indexable: // lists, tuples, ranges
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, v.Index(i), depth+1); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	}
	return nil, fmt.Errorf("a %s cannot be given away; make it a number, a text, a list or a dict", v.Type())
}

func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("the number %v cannot be given away", f)
	}
	from := len(b)
	b = strconv.AppendFloat(b, f, 'g', -1, 64)
	if !bytes.ContainsAny(b[from:], ".e") {
		b = append(b, ".0"...)
	}
	return b, nil
}

func appendObject(b []byte, d *starlark.Dict, depth int) (_ []byte, err error) {
	b = append(b, '{')
	for i, item := range d.Items() {
		if i > 0 {
			b = append(b, ',')
		}
		if _, is := item[0].(starlark.String); !is {
			return nil, fmt.Errorf("a dict with the key %v cannot be given away: keys must be texts", item[0])
		}
		if b, err = appendJSON(b, item[0], depth+1); err != nil {
			return nil, err
		}
		b = append(b, ':')
		if b, err = appendJSON(b, item[1], depth+1); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}

// FromJSON is the inverse of ToJSON, except for tuples.
func FromJSON(data jsontext.Value) (starlark.Value, error) {
	if i, is := smallInt(string(data)); is {
		return starlark.MakeInt64(i), nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(data))
	v, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	if rest := bytes.TrimSpace(d.UnreadBuffer()); len(rest) > 0 {
		return nil, errors.New("there is something behind the value")
	}
	return v, nil
}

func decodeValue(d *jsontext.Decoder) (starlark.Value, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return starlark.None, nil
	case 't', 'f':
		return starlark.Bool(t.Bool()), nil
	case '"':
		return starlark.String(t.String()), nil
	case '0':
		return number(t.String())
	case '[':
		var list []starlark.Value
		for d.PeekKind() != ']' {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return starlark.NewList(list), err
	default: // '{'
		o := starlark.NewDict(0)
		for d.PeekKind() != '}' {
			k, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d)
			if err == nil {
				err = o.SetKey(k, v)
			}
			if err != nil {
				return nil, err
			}
		}
		_, err := d.ReadToken()
		return o, err
	}
}

// maxDigits is the largest number of digits of an int in a result.
const maxDigits = 1000

// smallInt returns the number of a text that is nothing but an int of at most 18 digits.
func smallInt(text string) (int64, bool) {
	digits := strings.TrimPrefix(text, "-")
	if len(digits) == 0 || len(digits) > 18 || digits[0] == '0' && len(text) > 1 {
		return 0, false
	}
	i, err := strconv.ParseInt(text, 10, 64)
	return i, err == nil && text[0] != '+'
}

func number(text string) (starlark.Value, error) {
	if i, is := smallInt(text); is {
		return starlark.MakeInt64(i), nil
	}
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		return starlark.Float(f), err
	}
	if len(text) > maxDigits {
		return nil, fmt.Errorf("a number of %d digits", len(text))
	}
	i, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return nil, fmt.Errorf("%s is no number", text)
	}
	return starlark.MakeBigInt(i), nil
}
