package model

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"
)

func genName() *rapid.Generator[string] { return rapid.StringMatching(`[A-Za-z0-9_-]{1,12}`) }

// genText generates any text that may occur in a commit: an error message, a trace state, an address.
func genText() *rapid.Generator[string] {
	return rapid.OneOf(genName(), rapid.String(), rapid.Just("<script> & \"quotes\" \\ \u2028 \x00\x1f\x7f"))
}

func genTrace() *rapid.Generator[Trace] {
	return rapid.Custom(func(t *rapid.T) Trace {
		if rapid.Bool().Draw(t, "traced") {
			return Trace{Parent: genName().Draw(t, "parent"), State: genText().Draw(t, "state")}
		}
		return Trace{}
	})
}

// genMaybe generates absent half of the time.
func genMaybe() *rapid.Generator[Value] {
	return rapid.OneOf(rapid.Just(Value{}), genValue(2))
}

func genWrite() *rapid.Generator[Write] {
	return rapid.Custom(func(t *rapid.T) Write {
		w := Write{Doc: genName().Draw(t, "doc"), Path: Path(some(t, "path", genKey()))}
		if rapid.IntRange(0, 3).Draw(t, "delete") == 0 {
			w.Delete = true
		} else {
			w.Value = genValue(2).Draw(t, "value")
		}
		return w
	})
}

func genReceipt() *rapid.Generator[*Receipt] {
	return rapid.Custom(func(t *rapid.T) *Receipt {
		if rapid.Bool().Draw(t, "computed") {
			return nil
		}
		return &Receipt{
			Event: genText().Draw(t, "event"), Lane: genNumber().Draw(t, "lane"), Pos: genNumber().Draw(t, "position"),
			Term: genNumber().Draw(t, "term"), ReplayKey: rapid.Uint64().Draw(t, "replay key"),
			Outcome: rapid.SampledFrom([]Outcome{Handled, Failed, Refused, Rejected}).Draw(t, "outcome"),
			Result:  genMaybe().Draw(t, "result"), Error: genText().Draw(t, "error"), Code: genText().Draw(t, "code"), Returned: genMaybe().Draw(t, "returned"),
			Depth: genNumber().Draw(t, "depth"),
		}
	})
}

func genSend() *rapid.Generator[Send] {
	return rapid.Custom(func(t *rapid.T) Send {
		return Send{
			ID: genText().Draw(t, "id"), To: genName().Draw(t, "to"), Stream: genName().Draw(t, "stream"),
			Payload: genMaybe().Draw(t, "payload"), Position: genNumber().Draw(t, "position"),
			PrevTerm: genNumber().Draw(t, "previous term"), ReplayKey: rapid.Uint64().Draw(t, "replay key"),
			Behind: genNumber().Draw(t, "behind"), Depth: genNumber().Draw(t, "depth"), Expires: rapid.Int64Range(0, MaxMillis).Draw(t, "expires"), Trace: genTrace().Draw(t, "trace"),
		}
	})
}

// some draws a few values, and nil for none, as decoding returns.
func some[T any](t *rapid.T, what string, g *rapid.Generator[T]) []T {
	if list := rapid.SliceOfN(g, 0, 3).Draw(t, what); len(list) > 0 {
		return list
	}
	return nil
}

func genTx() *rapid.Generator[Tx] {
	return rapid.Custom(func(t *rapid.T) Tx {
		return Tx{
			N: genNumber().Draw(t, "n"), By: genText().Draw(t, "by"),
			Causes: some(t, "causes", genText()), Reads: some(t, "reads", genText()), Group: genText().Draw(t, "group"),
			Via: genTrail().Draw(t, "via"), Writes: some(t, "writes", genWrite()), Receipt: genReceipt().Draw(t, "receipt"),
			Sends: some(t, "sends", genSend()), Trace: genTrace().Draw(t, "trace"),
		}
	})
}

func genTrail() *rapid.Generator[*Trail] {
	return rapid.Ptr(rapid.Custom(func(t *rapid.T) Trail {
		return Trail{Docs: rapid.SliceOfN(genText(), 1, MaxTrail).Draw(t, "docs"), Steps: genNumber().Draw(t, "steps")}
	}), true)
}

func genTrying() *rapid.Generator[*Trying] {
	return rapid.Ptr(rapid.Custom(func(t *rapid.T) Trying {
		return Trying{
			By: genText().Draw(t, "by"), Event: genText().Draw(t, "event"),
			Tries: rapid.IntRange(0, 1<<30).Draw(t, "tries"), Back: rapid.Bool().Draw(t, "back"),
		}
	}), true)
}

func genCommit() *rapid.Generator[*Commit] {
	return rapid.Custom(func(t *rapid.T) *Commit {
		c := &Commit{
			Version: CommitVersion, Space: genName().Draw(t, "space"), Runtime: genName().Draw(t, "runtime"),
			Epoch: genNumber().Draw(t, "epoch"), Attempt: genNumber().Draw(t, "attempt"),
			Takeover: rapid.Bool().Draw(t, "takeover"), Join: rapid.Bool().Draw(t, "join"), Term: genNumber().Draw(t, "term"),
			Program: rapid.OneOf(rapid.Just(""), genText()).Draw(t, "program"),
			Trying:  genTrying().Draw(t, "trying"), Txs: some(t, "txs", genTx()),
			Cursor: genCursor().Draw(t, "cursor"),
		}
		c.Join = c.Join && !c.Takeover
		if c.Takeover || c.Join {
			c.Epoch = 0
		}
		return c
	})
}

func genNumber() *rapid.Generator[uint64] { return rapid.Uint64Max(MaxNumber) }

// genCursor generates a cursor with held events, in order and not above its floor.
func genCursor() *rapid.Generator[Cursor] {
	return rapid.Custom(func(t *rapid.T) Cursor {
		c := Cursor{Floor: genNumber().Draw(t, "floor")}
		for _, seq := range some(t, "held", rapid.Uint64Range(1, max(c.Floor, 1))) {
			if seq <= c.Floor {
				c.Held = append(c.Held, seq)
			}
		}
		slices.Sort(c.Held)
		c.Held = slices.Compact(c.Held)
		return c
	})
}

// The hand-written encoder writes the same as the reflective one, and decoding returns what was encoded.
func TestAppendCommit_AgreesWithTheReflectiveEncoderAndRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genCommit().Draw(t, "commit")
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		got := AppendCommit([]byte("before"), c, nil)
		if !bytes.Equal(got, append([]byte("before"), want...)) {
			t.Fatalf("by hand    %s\nreflective %s", got, want)
		}
		back, err := DecodeCommit(want)
		if err != nil {
			t.Fatal(err)
		}
		if again := AppendCommit(nil, back, nil); !bytes.Equal(again, want) {
			t.Fatalf("decoded and encoded again\n%s\nwas %s", again, want)
		}
	})
}

// A group is encoded transaction by transaction, before it is sealed.
func TestAppendTx_BuildsTheGroupThatAppendCommitCarries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genCommit().Draw(t, "commit")
		var group []byte
		for i := range c.Txs {
			group = AppendTx(group, &c.Txs[i])
		}
		if got, want := AppendCommit(nil, c, group), AppendCommit(nil, c, nil); !bytes.Equal(got, want) {
			t.Fatalf("with the group %s\nwithout        %s", got, want)
		}
	})
}

// A write without a value deletes, in the encoding as in memory.
func TestAppendTx_AWriteOfNothingIsADeletion(t *testing.T) {
	c := &Commit{Version: CommitVersion, Space: "s", Txs: []Tx{{Writes: []Write{{Doc: "d", Path: Path{"k"}}}}}}
	back, err := DecodeCommit(AppendCommit(nil, c, nil))
	if err != nil {
		t.Fatal(err)
	}
	after, err := back.Txs[0].Writes[0].Apply(MustOf(map[string]any{"k": 1, "l": 2}))
	if err != nil || after.String() != `{"l":2}` {
		t.Errorf("after the write: %s, %v", after, err)
	}
}

// A commit can be read whatever error message it contains.
func TestAppendCommit_RepairsTextThatIsNotUTF8(t *testing.T) {
	c := &Commit{Version: CommitVersion, Space: "s", Txs: []Tx{{Receipt: &Receipt{Event: "e", Outcome: Failed, Error: "bad \xff\xfe byte"}}}}
	back, err := DecodeCommit(AppendCommit(nil, c, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := back.Txs[0].Receipt.Error, "bad \uFFFD\uFFFD byte"; got != want {
		t.Errorf("error text %q, want %q", got, want)
	}
}

func TestDecodeCommit_RefusesAnotherVersion(t *testing.T) {
	for _, version := range []string{`3`, `0`, `999`} {
		_, err := DecodeCommit([]byte(`{"v":` + version + `,"sp":"cart","rt":"w1","cur":{}}`))
		if err == nil || !strings.Contains(err.Error(), "version "+version) || !strings.Contains(err.Error(), "cart") {
			t.Errorf("version %s: %v", version, err)
		}
	}
}

func TestDecodeCommit_RefusesOtherInput(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"v":1`, `{"v":1,"tx":[{"w":[["d"]]}]}`, `{"v":1,"tx":[{"w":[["","/a",1]]}]}`} {
		if _, err := DecodeCommit([]byte(text)); err == nil {
			t.Errorf("%s was decoded", text)
		}
	}
}

// The encoding is a stored format: these bytes must always be readable.
func TestAppendCommit_Golden(t *testing.T) {
	c := &Commit{
		Version: 1, Space: "cart", Runtime: "w1", Epoch: 7, Attempt: 3,
		Txs: []Tx{{
			N: 1, By: "handle add",
			Writes:  []Write{{Doc: "items", Path: Path{"a/b"}, Value: Int(2)}, {Doc: "old", Delete: true}},
			Receipt: &Receipt{Event: "e1", Lane: 12, Outcome: Handled, Result: String("ok")},
			Sends:   []Send{{ID: "cart:7:1:0", To: "audit", Stream: "note", Payload: Bool(true), Position: 4}},
			Trace:   Trace{Parent: "00-1-2-01"},
		}, {
			N: 2, By: "compute total", Causes: []string{"items"}, Reads: []string{"items/a"},
			Writes: []Write{{Doc: "total", Value: Int(2)}},
		}},
		Cursor: Cursor{Floor: 12, Held: []uint64{5, 9}},
	}
	const want = `{"v":1,"sp":"cart","rt":"w1","ep":7,"at":3,"tx":[` +
		`{"n":1,"by":"handle add","w":[["items","/a~1b",2],["old",""]],"rc":{"ev":"e1","ln":12,"o":"handled","r":"ok"},` +
		`"snd":[{"id":"cart:7:1:0","to":"audit","st":"note","p":true,"pos":4}],"tp":"00-1-2-01"},` +
		`{"n":2,"by":"compute total","why":["items"],"rd":["items/a"],"w":[["total","",2]]}],` +
		`"cur":{"f":12,"h":[5,9]}}`
	if got := string(AppendCommit(nil, c, nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := c.ID(), "w1/7/3"; got != want {
		t.Errorf("ID %s, want %s", got, want)
	}
}

// Terms add members of their own to a commit: a version that does not know them reads the rest.
func TestAppendCommit_GoldenOfTerms(t *testing.T) {
	c := &Commit{
		Version: 1, Space: "cart", Runtime: "w1", Epoch: 7, Attempt: 3, Term: 1800000000123,
		Txs: []Tx{{
			N: 1, By: "handle add",
			Receipt: &Receipt{Event: "shop:3:1:0", Lane: 12, Pos: 4, Term: 1790000000000, ReplayKey: 99, Outcome: Handled},
			Sends: []Send{
				{ID: "cart:7:1:0", To: "audit", Stream: "note", Position: 4, Term: 1800000000123, PrevTerm: NoTerm, ReplayKey: 1<<64 - 1},
				{ID: "cart:7:1:1", To: "cart", Stream: "own", ReplayKey: 7, Behind: 12},
			},
		}},
		Cursor: Cursor{Floor: 12},
	}
	const want = `{"v":1,"sp":"cart","rt":"w1","ep":7,"at":3,"trm":1800000000123,"tx":[` +
		`{"n":1,"by":"handle add","rc":{"ev":"shop:3:1:0","ln":12,"pos":4,"trm":1790000000000,"rk":99,"o":"handled"},` +
		`"snd":[{"id":"cart:7:1:0","to":"audit","st":"note","pos":4,"ptm":1,"rk":18446744073709551615},` +
		`{"id":"cart:7:1:1","to":"cart","st":"own","rk":7,"bh":12}]}],"cur":{"f":12}}`
	if got := string(AppendCommit(nil, c, nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	back, err := DecodeCommit([]byte(want))
	if err != nil || !reflect.DeepEqual(back, c) {
		t.Errorf("read back as\n%+v, %v, want\n%+v", back, err, c)
	}
}

func TestMark_RoundTripsAndRefusesAnotherVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &Mark{
			Version: MarkVersion, Epoch: genNumber().Draw(t, "epoch"), Owner: genName().Draw(t, "owner"),
			Cursor: genCursor().Draw(t, "cursor"),
			Positions: Positions{
				Inbound:  rapid.MapOf(genName(), genNumber()).Draw(t, "inbound"),
				Outbound: rapid.MapOf(genName(), genNumber()).Draw(t, "outbound"),
				InTerms:  rapid.MapOf(genName(), rapid.SliceOfN(genNumber(), 0, 2*maxTerms)).Draw(t, "terms received"),
				InAgain:  rapid.MapOf(genName(), rapid.SliceOfN(genNumber(), 0, 2*maxTerms)).Draw(t, "received again"),
				OutTerms: rapid.MapOf(genName(), genNumber()).Draw(t, "terms sent"),
			},
			Own:            some(t, "own", genSend()),
			WithoutReceipt: rapid.IntRange(0, 9).Draw(t, "barren"), HasReceipt: rapid.Bool().Draw(t, "fruitful"),
			Trying: genTrying().Draw(t, "trying"), Tried: genNumber().Draw(t, "tried"),
		}
		data, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeMark(data)
		if err != nil {
			t.Fatal(err)
		}
		again, err := back.Encode()
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("decoded and encoded again\n%s, %v\nwas %s", again, err, data)
		}
	})
	if _, err := DecodeMark([]byte(`{"v":5}`)); err == nil || !strings.Contains(err.Error(), "version 5") {
		t.Errorf("version 5: %v", err)
	}
}

// What every follower pays for a commit, and what the library would take.
func BenchmarkDecodeCommit(b *testing.B) {
	data := []byte(`{"v":1,"sp":"s0","rt":"w1","ep":1,"at":5,"tx":[{"n":10181536008,"by":"perform noop","snd":[{"id":"s0:1:10181536008:0","to":"s0","st":"noop","p":{"key":"s0/r1/1[3]/0","n":4,"out":1},"bh":1}]},{"n":10181536009,"by":"handle noop","w":[["noop","/gen",4],["noop","/tasks/s0~1r1~11[3]~10"],["run_r1","/head","5:31fd69fb34350919"],["runlog_r1_0","/4","{\"now\":1795778526165,\"done\":{\"work\":\"1[3]/0\",\"attempt\":1,\"result\":1},\"started\":1}"],["noop","/tasks/s0~1r1~11[4]~10",{"in":{"args":[],"attempt":1,"kwargs":{"i":4},"run":"r1","work":"1[4]/0"},"n":5,"state":"pending"}]],"rc":{"ev":"s0:1:10181536008:0","o":"handled"}}],"cur":{"f":1}}`)
	for name, decode := range map[string]func([]byte) (*Commit, error){
		"quick": DecodeCommit,
		"library": func(data []byte) (*Commit, error) {
			c := &Commit{}
			return c, json.Unmarshal(data, c)
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
