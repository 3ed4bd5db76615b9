package flights

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed" // for the built-in flights
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json/jsontext"
)

//go:embed flights-20k.json.gz
var builtIn []byte

// builtInName stands for the built-in flights in messages.
const builtInName = "flights-20k.json.gz (built in)"

// BuiltIn returns the flights that the package comes with.
func BuiltIn() ([]Flight, error) { return Parse(builtInName, bytes.NewReader(builtIn)) }

// Load reads flights from a file: a JSON array, or a gzip file of one.
func Load(path string) ([]Flight, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return Parse(path, file)
}

// InputError describes an error in the input, its place, and the remedy.
type InputError struct {
	File    string
	Entry   int    // from 1; 0 if it is not about one
	Field   string // "" if it is not about one
	Problem string
	Remedy  string
}

func (e *InputError) Error() string {
	where := e.File
	if e.Entry > 0 {
		where += fmt.Sprintf(": entry %d", e.Entry)
	}
	if e.Field != "" {
		where += fmt.Sprintf(": field %q", e.Field)
	}
	return where + ": " + e.Problem + "; " + e.Remedy
}

const shape = `an array of {"date":"2001/01/31 09:30","delay":-3,"distance":407,"origin":"LAS","destination":"OAK"}`

// Parse reads and checks flights, all of them before the first one is used. Whether
// the input is compressed is seen by its content, whatever the file is called. The
// error is an *InputError unless reading itself failed.
func Parse(name string, r io.Reader) ([]Flight, error) {
	in := &input{name: name, source: source{r: bufio.NewReader(r)}}
	if err := in.open(); err != nil {
		return nil, err
	}
	flights, err := in.array()
	if err != nil {
		return nil, err
	}
	if len(flights) == 0 {
		return nil, in.fault("has no flights: the array is empty", "give it at least one entry")
	}
	return flights, nil
}

// input is one input while it is read.
type input struct {
	name   string
	source source
	dec    *jsontext.Decoder
	entry  int // the one at hand, from 1
}

// source remembers why reading failed, which a decoder on top of it does not distinguish from errors in
// the text.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

func (in *input) fault(problem, remedy string) error {
	return &InputError{File: in.name, Entry: in.entry, Problem: problem, Remedy: remedy}
}

// open decompresses the input if necessary.
func (in *input) open() error {
	plain := in.source.r.(*bufio.Reader)
	magic, err := plain.Peek(2)
	switch {
	case len(magic) == 0 && errors.Is(err, io.EOF):
		return in.empty()
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case bytes.Equal(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(plain)
		if err != nil {
			return in.broken(err)
		}
		in.source.r = z
	}
	in.dec = jsontext.NewDecoder(&in.source)
	return nil
}

func (in *input) empty() error { return in.fault("is empty", "it must be "+shape) }

// array reads the whole input.
func (in *input) array() ([]Flight, error) {
	switch token, err := in.dec.ReadToken(); {
	case errors.Is(err, io.EOF) && in.source.err == nil:
		return nil, in.empty()
	case err != nil:
		return nil, in.broken(err)
	case token.Kind() != jsontext.KindBeginArray:
		return nil, in.fault(fmt.Sprintf("is a JSON %v, not an array", kindName(token.Kind())), "it must be "+shape)
	}
	var flights []Flight
	for in.entry = 1; in.dec.PeekKind() != jsontext.KindEndArray; in.entry++ {
		raw, err := in.dec.ReadValue()
		if err != nil {
			return nil, in.broken(err)
		}
		f, err := in.flight(raw)
		if err != nil {
			return nil, err
		}
		f.ID = flightID(len(flights))
		flights = append(flights, f)
	}
	in.entry = 0
	return flights, in.end()
}

// end checks that nothing follows the array.
func (in *input) end() error {
	if _, err := in.dec.ReadToken(); err != nil {
		return in.broken(err)
	}
	closed := in.dec.InputOffset()
	switch _, err := in.dec.ReadToken(); {
	case in.source.err != nil:
		return in.broken(err)
	case !errors.Is(err, io.EOF):
		return in.fault(fmt.Sprintf("has more after the array, which ends at byte %d", closed), "remove what follows")
	}
	return nil
}

// broken converts an error of a reader or decoder to one that the caller can act on.
func (in *input) broken(err error) error {
	if in.source.err != nil {
		err = in.source.err
	}
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &syntax):
		return &InputError{File: in.name, Entry: in.entry, Field: syntax.JSONPointer.LastToken(), Problem: "is there twice", Remedy: "keep one of them"}
	case errors.As(err, &syntax) && errors.Is(err, io.ErrUnexpectedEOF):
		return in.fault("the JSON ends in the middle", "the file was cut short: fetch or write it again")
	case errors.As(err, &syntax):
		return in.fault(fmt.Sprintf("is not JSON: %v at byte %d", syntax.Err, syntax.ByteOffset), "it must be "+shape)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return in.fault("the gzip data ends in the middle", "the file was cut short: fetch or compress it again")
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return in.damaged(err)
	}
	if _, ok := in.source.r.(*gzip.Reader); ok {
		return in.damaged(err)
	}
	return fmt.Errorf("read %s: %w", in.name, err)
}

func (in *input) damaged(err error) error {
	return in.fault(fmt.Sprintf("the gzip data is damaged: %v", err), "fetch or compress it again")
}
