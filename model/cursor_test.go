package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func upTo(n int, step func(i int) uint64) (list []uint64) {
	last := uint64(0)
	for i := range n {
		last += step(i)
		list = append(list, last)
	}
	return list
}

// Cursors with few held events are stored in the same bytes as before, and old programs can read them.
func TestCursor_OfFewHeldEventsIsStoredAsItWas(t *testing.T) {
	for _, c := range []struct {
		cursor Cursor
		want   string
	}{
		{Cursor{}, `{}`},
		{Cursor{Floor: 90}, `{"f":90}`},
		{Cursor{Floor: 90, Held: []uint64{7, 8, 40}}, `{"f":90,"h":[7,8,40]}`},
		{Cursor{Floor: 90, Held: upTo(16, func(int) uint64 { return 2 })}, `{"f":90,"h":[2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32]}`},
	} {
		commit := &Commit{Version: CommitVersion, Space: "s", Runtime: "w1", Cursor: c.cursor}
		want := `{"v":1,"sp":"s","rt":"w1","cur":` + c.want + `}`
		if got := string(AppendCommit(nil, commit, nil)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		m := Mark{Version: MarkVersion, Cursor: c.cursor}
		data, err := m.Encode()
		if want := `{"v":1,"ep":0,"rt":"","cur":` + c.want + `}`; err != nil || string(data) != want {
			t.Errorf("%s, want %s (%v)", data, want, err)
		}
	}
}

// Old programs refuse the version of a cursor with many held events, because they would consider all of them
// done.
func TestCursor_OfManyHeldEventsHasAnotherVersion(t *testing.T) {
	held := upTo(17, func(int) uint64 { return 2 })
	c := Cursor{Floor: 90, Held: held}
	data := AppendCommit(nil, &Commit{Version: CommitVersion, Space: "s", Cursor: c}, nil)
	if !strings.HasPrefix(string(data), `{"v":2,`) || !strings.Contains(string(data), `"cur":{"f":90,"hs":"2,2,2`) {
		t.Errorf("stored as %s", data)
	}
	for split, want := range map[bool]string{false: `{"v":3,`, true: `{"v":4,`} { // any order: each is independent
		m := Mark{Version: MarkVersion, Cursor: c}
		if split {
			m.Version = SplitMarkVersion
		}
		data, err := m.Encode()
		if err != nil || !strings.HasPrefix(string(data), want) {
			t.Errorf("stored as %s (%v)", data, err)
		}
		back, err := DecodeMark(data)
		if err != nil || back.Version != m.Version || !slices.Equal(back.Cursor.Held, held) {
			t.Errorf("read as %+v (%v)", back, err)
		}
	}
}

func TestCursor_TwentyThousandHeldEventsAreFewBytes(t *testing.T) {
	for _, c := range []struct {
		name string
		step func(i int) uint64
		most int
	}{
		{"one behind the other", func(int) uint64 { return 1 }, 40},
		{"every third", func(int) uint64 { return 3 }, 41_000},
		{"here and there", func(i int) uint64 { return uint64(1 + i*i%7) }, 41_000},
	} {
		if n := len(appendCursor(nil, Cursor{Floor: 1 << 30, Held: upTo(20_000, c.step)})); n > c.most {
			t.Errorf("%s: %d bytes", c.name, n)
		}
	}
}

func TestCursor_RoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Uint64Range(1, 4), 0, 60).Draw(t, "steps")
		want := Cursor{Held: upTo(len(steps), func(i int) uint64 { return steps[i] }), Floor: 1000}
		back, err := DecodeCommit(AppendCommit(nil, &Commit{Version: CommitVersion, Space: "s", Cursor: want}, nil))
		if err != nil || back.Version != CommitVersion || back.Cursor.Floor != want.Floor || !slices.Equal(back.Cursor.Held, want.Held) {
			t.Fatalf("%+v was read as %+v, %v", want, back, err)
		}
	})
}

// The old form is accepted with any length.
func TestCursor_OldLogsStayReadable(t *testing.T) {
	held := upTo(5000, func(int) uint64 { return 2 })
	list := strings.ReplaceAll(strings.Trim(fmt.Sprint(held), "[]"), " ", ",")
	c, err := DecodeCommit([]byte(`{"v":1,"sp":"s","rt":"w","cur":{"f":20000,"h":[` + list + `]}}`))
	if err != nil || !slices.Equal(c.Cursor.Held, held) {
		t.Errorf("%d are held, %v", len(c.Cursor.Held), err)
	}
}

func TestCursor_InvalidRangesAreRefused(t *testing.T) {
	for _, text := range []string{"x", "1,", "0", "1,0", "-1", "1+x", "1+-1", "1+4000000000", "18446744073709551615,1", "18446744073709551615+1", "1+16777215,1", "+1", "1+"} {
		_, err := DecodeCommit([]byte(`{"v":2,"sp":"s","rt":"w","cur":{"f":9,"hs":"` + text + `"}}`))
		if err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
