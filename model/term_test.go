package model

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// received returns the state after positions and terms were handled, one after the other.
func received(list ...[2]uint64) (r Received) {
	for _, at := range list {
		r.Take(at[0], at[1])
	}
	return r
}

func TestReceived_Judge(t *testing.T) {
	upTo := func(position, term uint64, of *Received) {
		for p := of.Position + 1; p <= position; p++ {
			of.Take(p, term)
		}
	}
	var plain, known, mixed, late Received // plain: 5 positions without terms; known: 1-3 of term 10, 4-6 of 20, 7-8 of 30; mixed: 1-3 of 10, 4-5 without; late: 1-5 without, 6-7 of 20
	upTo(5, 0, &plain)
	upTo(3, 10, &known)
	upTo(6, 20, &known)
	upTo(8, 30, &known)
	upTo(3, 10, &mixed)
	upTo(5, 0, &mixed)
	upTo(5, 0, &late)
	upTo(7, 20, &late)
	var parted Received // 1-3 of 10, 4 without a term because another coordinator released it, 5 of 10
	upTo(3, 10, &parted)
	upTo(4, 0, &parted)
	upTo(5, 10, &parted)
	for name, c := range map[string]struct { // any order: each is independent
		of                       *Received
		position, term, prevTerm uint64
		want                     Verdict
	}{
		"the first of all":                                         {&Received{}, 1, 10, NoTerm, InTurn},
		"the first of all, without a term":                         {&Received{}, 1, 0, 0, InTurn},
		"one that is not the first":                                {&Received{}, 2, 10, 0, Early},
		"the next, without terms":                                  {&plain, 6, 0, 0, InTurn},
		"one that was, without terms":                              {&plain, 5, 0, 0, Repetition},
		"the first one with a term":                                {&plain, 6, 10, NoTerm, InTurn},
		"one that was without a term, and has one now":             {&plain, 5, 10, NoTerm, Repetition},
		"the next of the last term":                                {&known, 9, 30, 0, InTurn},
		"the one after that":                                       {&known, 10, 30, 0, Early},
		"one of the last term that was":                            {&known, 7, 30, 20, Repetition},
		"one of an earlier term that was":                          {&known, 5, 20, 0, Repetition},
		"one of the first term that was":                           {&known, 1, 10, NoTerm, Repetition},
		"one of a term before the first one in the place of that":  {&known, 2, 5, NoTerm, Conflict},
		"one of before anything that is remembered":                {&late, 2, 5, NoTerm, Repetition},
		"the first of a later term":                                {&known, 9, 40, 30, InTurn},
		"the second of a later term":                               {&known, 10, 40, 0, Early},
		"the first of a later term, of which one is missing":       {&known, 10, 40, 30, Early},
		"the first of a term after that":                           {&known, 9, 50, 40, Early},
		"a position that is assigned again":                        {&known, 8, 40, 30, Reissue},
		"one of the term before":                                   {&known, 5, 40, 20, Reissue},
		"all from the first one on":                                {&known, 1, 40, NoTerm, Reissue},
		"the second one that is assigned again":                    {&known, 8, 40, 0, Early},
		"one of the last term before it began":                     {&known, 6, 30, 0, Conflict},
		"one of an earlier term in the place of a later one":       {&known, 7, 20, 0, Conflict},
		"one of an earlier term behind all":                        {&known, 9, 20, 0, Conflict},
		"one of a term that is not known":                          {&known, 5, 25, 20, Conflict},
		"one that was, of a term that was parted":                  {&parted, 2, 10, 0, Repetition},
		"one that was, in between":                                 {&parted, 4, 10, 0, Repetition},
		"the next, of a version without terms":                     {&known, 9, 0, 0, InTurn},
		"one that was, of a version without terms":                 {&known, 8, 0, 0, Repetition},
		"the next after one of a version without terms":            {&mixed, 6, 20, 0, InTurn},
		"the next after one without, of the same term as before":   {&mixed, 6, 10, 0, InTurn},
		"one that was, where the last one had none":                {&mixed, 5, 20, 10, Repetition},
		"one that is early, where the last one had none":           {&mixed, 7, 20, 0, Early},
		"the next of one that does not know the term before":       {&known, 9, 40, NoTerm, InTurn},
		"the second next of one that does not know the one before": {&known, 10, 40, NoTerm, Early},
	} {
		if got := c.of.Judge(c.position, c.term, c.prevTerm); got != c.want {
			t.Errorf("%s: verdict %d, want %d", name, got, c.want)
		}
	}
}

func TestReceived_ALaterTermReplacesLostPositions(t *testing.T) {
	r := received([2]uint64{1, 10}, [2]uint64{2, 10}, [2]uint64{3, 20}, [2]uint64{4, 20}, [2]uint64{5, 20})
	again := r
	if !again.Take(4, 30) {
		t.Error("Take reports no change")
	}
	want := Received{Position: 4, Terms: []TermStart{{10, 1}, {20, 3}, {30, 4}}, Again: Again{30, 4, 5}}
	if again.Position != want.Position || !slices.Equal(again.Terms, want.Terms) || again.Again != want.Again {
		t.Errorf("%+v, want %+v", again, want)
	}
	if len(r.Terms) != 2 || r.Position != 5 {
		t.Errorf("Take has changed the copy: %+v", r)
	}
	if !again.After(&r) || r.After(&again) {
		t.Error("the state with the later term is not further")
	}
	again.Take(5, 30)
	again.Take(2, 40) // the same again
	if want := (Again{40, 2, 5}); again.Again != want || len(again.Terms) != 2 {
		t.Errorf("%+v, want %+v", again, want)
	}
	again.Take(3, 40+againFor+1)
	if want := (Again{}); again.Again != want {
		t.Errorf("a day later Again is %+v", again.Again)
	}
	for _, of := range [][2]uint64{{1, 10}, {9, 20}, {3, 30}, {2, 40 + againFor + 1}} { // repetitions and conflicts
		if before := again; again.Take(of[0], of[1]) || again.Position != before.Position {
			t.Errorf("position %d of term %d has changed the state to %+v", of[0], of[1], again)
		}
	}
}

func TestReceived_RemembersAFewTerms(t *testing.T) {
	var r Received
	for n := uint64(1); n <= 100; n++ {
		r.Take(n, 10*n)
	}
	if len(r.Terms) != maxTerms || r.Terms[0].First != 97 {
		t.Errorf("it remembers %+v", r.Terms)
	}
}

func TestReceived_IsStoredAndReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Received
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			r.Take(rapid.Uint64Range(1, 12).Draw(t, "position"), rapid.SampledFrom([]uint64{0, 10, 20, 30, 40, 50}).Draw(t, "term"))
		}
		terms, again := r.Numbers()
		back := ReceivedOf(r.Position, terms, again)
		if back.Position != r.Position || !slices.Equal(back.Terms, r.Terms) || back.Again != r.Again {
			t.Fatalf("%+v is read back as %+v", r, back)
		}
	})
}

// Two epochs with the same log sequence share no transaction id, even if the first one made as many
// transactions as possible in the time between them.
func TestBeforeFirstTx_TwoTermsShareNoNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Uint64Range(1, 1<<42).Draw(t, "term")
		after := rapid.Uint64Range(1, txMillis-1).Draw(t, "milliseconds later")
		first, second := BeforeFirstTx(at), BeforeFirstTx(at+after)
		if made := after * txsPerMilli; second > first && first+made > second {
			t.Fatalf("terms %d and %d: %d and %d", at, at+after, first, second)
		}
		if first == second {
			t.Fatalf("terms %d and %d both begin at %d", at, at+after, first)
		}
	})
	if BeforeFirstTx(0) != 0 {
		t.Error("without a term, transactions do not begin at 1")
	}
}

func TestNextTerm_OnlyGrows(t *testing.T) {
	for _, c := range [][3]uint64{{0, 0, 0}, {0, 5, 0}, {7, 5, 7}, {5, 5, 6}, {3, 5, 6}} {
		if got := NextTerm(c[0], c[1]); got != c[2] {
			t.Errorf("at %d behind %d: %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// The sends of a handling have the same keys when its event is handled again, in whatever transaction; all
// other sends have other keys.
func TestKeySends_DependOnTheCause(t *testing.T) {
	event := func(id string, key uint64) *Event { return &Event{Space: "s", Stream: "add", ID: id, ReplayKey: key} }
	sends := func() []Send {
		return []Send{{To: "b", Stream: "x"}, {To: "b", Stream: "x"}, {To: "c", Stream: "x"}, {To: "b", Stream: "y"}}
	}
	seen := map[uint64]string{}
	for _, of := range []*Event{event("e1", 0), event("e2", 0), {Space: "t", Stream: "add", ID: "e1"}, {Space: "s", Stream: "drop", ID: "e1"}, event("s:1:2:0", 77), event("s:1:2:0", 78)} {
		first, second := sends(), sends()
		KeySends(of.CauseKey(), first)
		KeySends(of.CauseKey(), second)
		for i := range first {
			k := first[i].ReplayKey
			if k == 0 || k != second[i].ReplayKey {
				t.Errorf("send %d of %s has the key %d, and then %d", i, of.ID, k, second[i].ReplayKey)
			}
			if was := seen[k]; was != "" {
				t.Errorf("send %d of %s has the key of %s", i, of.ID, was)
			}
			seen[k] = of.ID
		}
	}
	if key := event("s:1:2:0", 0).CauseKey(); key != 0 {
		t.Errorf("a send without a key stands for %d", key)
	}
	none, timer := sends(), []Send{{To: "s", Stream: "tick", Timer: "cron", NotBefore: 5}, {To: "s", Stream: "tick", Timer: "cron", NotBefore: 6}}
	KeySends(0, none)
	KeySends(0, timer)
	if none[0].ReplayKey != 0 || timer[0].ReplayKey == 0 || timer[0].ReplayKey == timer[1].ReplayKey {
		t.Errorf("without an event: %d, %d and %d", none[0].ReplayKey, timer[0].ReplayKey, timer[1].ReplayKey)
	}
}
