package model

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckName(t *testing.T) {
	long := strings.Repeat("n", MaxNameLen)
	for _, name := range []string{"a", "A-Z_0-9", long} {
		if err := CheckName("space", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	// Names that would split, widen or end a subject, or resemble another name.
	for _, name := range []string{"", long + "n", "a.b", "*", ">", "a b", "a\nb", "a:b", "$SYS", "/", "é", "a\x00", "\xff"} {
		err := CheckName("space", name)
		var bad *NameError
		if !errors.As(err, &bad) || bad.What != "space" || bad.Name != name {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Links are recognised by isName, which must agree with CheckName.
func TestIsName_AgreesWithCheckName(t *testing.T) {
	for _, name := range []string{"", "a", "é", "a\xe9", strings.Repeat("x", MaxNameLen), strings.Repeat("x", MaxNameLen+1)} {
		if isName(name) != (CheckName("document", name) == nil) {
			t.Errorf("%q: isName says %v", name, isName(name))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(genName(), rapid.String(), rapid.StringN(0, 2, -1)).Draw(t, "name")
		if isName(name) != (CheckName("document", name) == nil) {
			t.Fatalf("%q: isName says %v", name, isName(name))
		}
	})
}

func TestCheckName_NamesTheInvalidCharacter(t *testing.T) {
	if err := CheckName("stream", "orders.>"); err == nil || !strings.Contains(err.Error(), `'.'`) {
		t.Errorf("error %v does not name the dot", err)
	}
}

// No client can choose an id that Settle mints.
func TestO04_CheckEventID_RefusesMintedIDsFromClients(t *testing.T) {
	minted := TxID{Space: "cart", Epoch: 7, N: 3}.Event(0)
	if CheckEventID(minted) == nil {
		t.Errorf("a client may send %s", minted)
	}
	if err := CheckAnyEventID(minted); err != nil {
		t.Errorf("%s may not be in a lane: %v", minted, err)
	}
	if err := CheckEventID(strings.Repeat("x", MaxEventIDLen)); err != nil {
		t.Error(err)
	}
	if CheckEventID(strings.Repeat("x", MaxEventIDLen+1)) == nil {
		t.Error("an id beyond the limit is accepted")
	}
}

func genTxID() *rapid.Generator[TxID] {
	return rapid.Custom(func(t *rapid.T) TxID {
		return TxID{
			Space: rapid.StringMatching(`[A-Za-z0-9_-]{1,64}`).Draw(t, "space"),
			Epoch: rapid.Uint64().Draw(t, "epoch"), N: rapid.Uint64().Draw(t, "n"),
		}
	})
}

// An id that a client may choose contains no delimiter of a minted id or of a subject, and so cannot be
// mistaken for one.
func TestO04_ClientIDsContainNoDelimiter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`[a-z0-9]{0,4}`), rapid.String()), 1, 5).Draw(t, "parts")
		id := strings.Join(parts, rapid.SampledFrom([]string{":", ".", "/", " ", "*", ">", "=", "", "-"}).Draw(t, "joined with"))
		if CheckEventID(id) != nil && CheckName("stream", id) != nil {
			return
		}
		if strings.ContainsAny(id, ":./ *>=@") {
			t.Fatalf("%q is accepted", id)
		}
		if tx, ok := OriginOf(id); ok {
			t.Fatalf("%q is mistaken for an event sent by %v", id, tx)
		}
	})
}

// A minted id is always the same for the same arguments, and different if the space, the epoch, the
// transaction or the number of the send differs.
func TestO03_MintedIDsDependOnAllTheirParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		few := rapid.Custom(func(t *rapid.T) TxID {
			return TxID{
				Space: rapid.SampledFrom([]string{"a", "a1", "a-1", "1"}).Draw(t, "space"),
				Epoch: rapid.Uint64Range(0, 12).Draw(t, "epoch"), N: rapid.Uint64Range(0, 12).Draw(t, "n"),
			}
		})
		a, i := few.Draw(t, "a"), rapid.IntRange(0, 12).Draw(t, "i")
		b, k, other := a, i, few.Draw(t, "other")
		for _, part := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"space", "epoch", "n", "k"}), rapid.ID).Draw(t, "differ") {
			switch part {
			case "space":
				b.Space = other.Space
			case "epoch":
				b.Epoch = other.Epoch
			case "n":
				b.N = other.N
			default:
				k = rapid.IntRange(0, 12).Draw(t, "k")
			}
		}
		if same := a == b && i == k; same != (a.Event(i) == b.Event(k)) {
			t.Fatalf("%v, %d and %v, %d: ids %s and %s", a, i, b, k, a.Event(i), b.Event(k))
		}
	})
}

// No part of a minted id can extend into the next: the parts of each pair are the same digits and letters, cut at other places.
func TestO04_MintedIDsAreCutAtOnePlace(t *testing.T) {
	for _, c := range []struct {
		a, b TxID
		i, k int
	}{
		{TxID{Space: "cart", Epoch: 1, N: 1}, TxID{Space: "cart", Epoch: 1, N: 11}, 12, 2},
		{TxID{Space: "cart", Epoch: 1, N: 11}, TxID{Space: "cart", Epoch: 11, N: 1}, 0, 0},
		{TxID{Space: "cart", Epoch: 11, N: 1}, TxID{Space: "cart1", Epoch: 1, N: 1}, 0, 0},
	} {
		if c.a.Event(c.i) == c.b.Event(c.k) {
			t.Errorf("%v, %d and %v, %d have one id, %s", c.a, c.i, c.b, c.k, c.a.Event(c.i))
		}
	}
}

// A minted id is valid in a lane, and identifies its origin.
func TestOriginOf_IsTheInverseOfEvent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tx, k := genTxID().Draw(t, "tx"), rapid.IntRange(0, 1<<20).Draw(t, "k")
		id := tx.Event(k)
		if got, ok := OriginOf(id); !ok || got != tx {
			t.Fatalf("OriginOf(%s) = %v, %v, want %v", id, got, ok, tx)
		}
		if err := CheckAnyEventID(id); err != nil {
			t.Fatal(err)
		}
	})
}

func TestOriginOf_IsFalseForIDsThatAreNotMinted(t *testing.T) {
	for _, id := range []string{
		"", "e1", "cart:1:2", "cart:1:2:3:4", ":1:2:3", "cart:x:2:3", "cart:1:-2:3", "cart:1:2:",
		"cart:18446744073709551616:2:3", "cart:1:2:4294967296",
	} {
		if tx, ok := OriginOf(id); ok {
			t.Errorf("OriginOf(%q) = %v", id, tx)
		}
	}
}

func TestEvent_Origin(t *testing.T) {
	minted := TxID{Space: "north", Epoch: 1, N: 2}.Event(3)
	for _, c := range []struct {
		what string
		ev   Event
		want string
	}{
		{"from outside", Event{ID: "e1", Lane: 4}, ""},
		{"released by a coordinator", Event{ID: minted, Lane: 4, Position: 1}, "north"},
		{"a follow-up", Event{ID: minted}, "north"},
	} {
		if got := c.ev.Origin(); got != c.want {
			t.Errorf("%s: origin %q, want %q", c.what, got, c.want)
		}
	}
}

// The mapping is part of the stored format. If this test fails, every deployment would look for its spaces in
// the wrong place: the change is wrong, not the test.
func TestPartitionOf_Golden(t *testing.T) {
	for _, c := range []struct {
		space string
		n     int
		want  int
	}{
		{"a", 1, 0},
		{"a", 4, 0},
		{"a", 16, 12},
		{"a", 64, 12},
		{"cart", 1, 0},
		{"cart", 4, 3},
		{"cart", 16, 15},
		{"cart", 64, 15},
		{"LHR", 1, 0},
		{"LHR", 4, 1},
		{"LHR", 16, 1},
		{"LHR", 64, 17},
		{"tenant-0042", 1, 0},
		{"tenant-0042", 4, 2},
		{"tenant-0042", 16, 2},
		{"tenant-0042", 64, 34},
		{"x_y-Z9", 1, 0},
		{"x_y-Z9", 4, 3},
		{"x_y-Z9", 16, 11},
		{"x_y-Z9", 64, 43},
	} {
		if got := PartitionOf(c.space, c.n); got != c.want {
			t.Errorf("PartitionOf(%q, %d) = %d, want %d", c.space, c.n, got, c.want)
		}
	}
}

func TestPartitionOf_SpreadsSpaces(t *testing.T) {
	const partitions, spaces = 16, 16000
	var count [partitions]int
	for i := range spaces {
		count[PartitionOf(fmt.Sprintf("tenant-%d", i), partitions)]++
	}
	for p, n := range count {
		if n < spaces/partitions/2 || n > spaces/partitions*2 {
			t.Errorf("partition %d has %d of %d spaces", p, n, spaces)
		}
	}
}

// Names made from keys are stored, for instance as names of timers and nodes, so they must not change.
func TestNameOf_IsTheKeyOrAStableHash(t *testing.T) {
	long := strings.Repeat("x", MaxNameLen)
	for key, want := range map[string]string{
		"order-7": "order-7", long: long,
		"": "-key-seoc8gkovge196nruj49irtp4g", "two words": "-key-k0vhqo8m8nll7b8mo6nl8r50f4", "é": "-key-9aclavi06f1l77f2tdike80np8", long + "x": "-key-ikrsbvfh4142uvaoq9f9tlc3uk",
	} {
		got := NameOf(key)
		if got != want {
			t.Errorf("NameOf(%q) is %q, want %q", key, got, want)
		}
		if err := CheckName("timer", got); err != nil {
			t.Error(err)
		}
	}
}

func TestRowNode_IsANameForEveryKey(t *testing.T) {
	long := strings.Repeat("x", MaxNameLen)
	for _, c := range [][3]string{
		{"totals", "order-7", "totals--order-7"},
		{"totals", "two words", "totals--" + hashName("totals--two words")},
		{"totals", long, "totals--" + hashName("totals--"+long)},
		{"totals", "-key-0", "totals--" + hashName("totals---key-0")},
		{long, "a", long[:31] + "--" + hashName(long+"--a")},
	} {
		got := RowNode(c[0], c[1])
		if err := CheckName("node", got); got != c[2] || err != nil {
			t.Errorf("the node of row %q of %s is %q, want %q: %v", c[1], c[0], got, c[2], err)
		}
	}
}

// Outsiders may choose keys: a key may be the hashed name of another key. Nor do two documents whose names
// begin alike share a node.
func TestNameOf_CraftedKeysDoNotCollide(t *testing.T) {
	for _, pair := range [][2]string{{"two words", NameOf("two words")}, {"é", NameOf("é")}} {
		if NameOf(pair[0]) == NameOf(pair[1]) {
			t.Errorf("%q and %q have the same name, %s", pair[0], pair[1], NameOf(pair[0]))
		}
		hash, _ := strings.CutPrefix(RowNode("totals", pair[0]), "totals--")
		if RowNode("totals", hash) == RowNode("totals", pair[0]) {
			t.Errorf("%q and %q have the same node", pair[0], hash)
		}
	}
	long := strings.Repeat("x", MaxNameLen-1)
	if RowNode(long+"a", "k") == RowNode(long+"b", "k") {
		t.Error("two documents with a long name have the same node")
	}
}
