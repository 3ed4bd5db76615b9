package model

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Cursor is the place in a lane that a commit has reached. Every lane event of the space with a sequence up
// to Floor is done, except those in Held, which were set aside and still wait.
//
// Usually few are held, and the list is stored as it is. A longer list is stored as ranges, under a format
// version of its own, because a program that cannot read the ranges would consider all held events done.
//
//	{"f":90,"h":[7,8,40]}        {"f":90,"hs":"7+1,32"}
type Cursor struct {
	Floor uint64
	Held  []uint64 // in order
}

// fewHeld is the longest list that is stored as it is.
const fewHeld = 16

// ranged reports whether the cursor is stored as ranges.
func (c *Cursor) ranged() bool { return len(c.Held) > fewHeld }

func appendCursor(dst []byte, c Cursor) []byte {
	start := len(dst)
	dst = appendNumber(dst, `,"f":`, c.Floor)
	switch {
	case c.ranged():
		dst = append(appendRanges(append(dst, `,"hs":"`...), c.Held), '"')
	case len(c.Held) > 0:
		dst = append(dst, `,"h":[`...)
		for i, seq := range c.Held {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendUint(dst, seq, 10)
		}
		dst = append(dst, ']')
	}
	return closeObject(dst, start)
}

// appendRanges writes, for each range, the distance of its first number from the last number of the previous
// range and, after a plus sign, the number of further ones.
func appendRanges(dst []byte, list []uint64) []byte {
	last := uint64(0)
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i+n-1]+1 {
			n++
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, list[i]-last, 10)
		if n > 1 {
			dst = strconv.AppendInt(append(dst, '+'), int64(n-1), 10)
		}
		last = list[i+n-1]
		i += n
	}
	return dst
}

// readRanges is the inverse of appendRanges. It validates its input.
func readRanges(text string) (list []uint64, err error) {
	last := uint64(0)
	for item := range strings.SplitSeq(text, ",") {
		gap, more, found := strings.Cut(item, "+")
		by, err := strconv.ParseUint(gap, 10, 64)
		n := uint64(0)
		if err == nil && found {
			n, err = strconv.ParseUint(more, 10, 32)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q is no range: %w", item, errors.Unwrap(err))
		case by == 0 || last+by < last || last+by+n < last+by:
			return nil, fmt.Errorf("%q leads nowhere", item)
		case uint64(len(list))+n >= MaxHeld:
			return nil, fmt.Errorf("it names more than %d events", MaxHeld)
		}
		last += by
		for k := range n + 1 {
			list = append(list, last+k)
		}
		last += n
	}
	return list, nil
}

// MarshalJSONTo writes the same bytes as appendCursor.
func (c Cursor) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(appendCursor(nil, c))
}

// UnmarshalJSONFrom reads both forms.
func (c *Cursor) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var s struct {
		Floor  uint64   `json:"f"`
		Held   []uint64 `json:"h"`
		Ranges string   `json:"hs"`
	}
	if err := json.UnmarshalDecode(dec, &s); err != nil {
		return err
	}
	*c = Cursor{Floor: s.Floor, Held: s.Held}
	if s.Ranges == "" {
		return nil
	}
	held, err := readRanges(s.Ranges)
	if err != nil {
		return fmt.Errorf("the events that a cursor has set aside: %w", err)
	}
	c.Held = held
	return nil
}
