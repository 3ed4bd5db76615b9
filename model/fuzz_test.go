package model

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// stored reads the real messages in testdata/stored whose names begin with a prefix.
func stored(t testing.TB, name string) (list [][]byte) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "stored", name+"*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no messages %s: %v", name, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, bytes.TrimSpace(data))
	}
	return list
}

// flipped returns n copies of a message, each with up to four bits flipped, the same ones in each run.
func flipped(data []byte, n int) (list [][]byte) {
	random := rand.New(rand.NewPCG(41, uint64(len(data))))
	for range n {
		c := bytes.Clone(data)
		for range 1 + random.IntN(4) {
			c[random.IntN(len(c))] ^= 1 << random.IntN(8)
		}
		list = append(list, c)
	}
	return list
}

// fuzz runs a decoder on real messages, on copies with flipped bits, and on inputs of the fuzzer. An accepted
// input must be the same after it was encoded and decoded again.
func fuzz[T any](f *testing.F, name string, decode func([]byte) (T, error), encode func(T) ([]byte, error)) {
	for _, data := range stored(f, name) {
		f.Add(data)
		for _, c := range flipped(data, 40) {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decode(data)
		if err != nil {
			return
		}
		once, err := encode(v)
		if err != nil {
			t.Fatalf("%q was decoded, but cannot be encoded: %v", data, err)
		}
		back, err := decode(once)
		if err != nil {
			t.Fatalf("%q is decoded, and what is encoded again is not: %q, %v", data, once, err)
		}
		if twice, err := encode(back); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q is encoded as %q, and then as %q, %v", data, once, twice, err)
		}
	})
}

func FuzzDecodeCommit(f *testing.F) {
	fuzz(f, "commit", DecodeCommit, func(c *Commit) ([]byte, error) { return AppendCommit(nil, c, nil), nil })
}

func FuzzDecodeMark(f *testing.F) {
	fuzz(f, "mark", DecodeMark, (*Mark).Encode)
}

func FuzzDecodePositions(f *testing.F) {
	fuzz(f, "positions", DecodePositions, (*Positions).Encode)
}

func FuzzDecodeWaiting(f *testing.F) {
	fuzz(f, "waiting", DecodeWaiting, (*Waiting).Encode)
}

func FuzzDecodeDead(f *testing.F) {
	fuzz(f, "dead", DecodeDead, (*DeadLetter).Encode)
}

func FuzzDecodeAhead(f *testing.F) {
	fuzz(f, "ahead", DecodeAhead, func(a Ahead) ([]byte, error) { return a.Encode() })
}

func FuzzDecodeQuarantined(f *testing.F) {
	fuzz(f, "quarantine", DecodeQuarantined, (*Quarantined).Encode)
}

// Keys and ids come from subjects, which clients choose.
func FuzzStateKey(f *testing.F) {
	for _, key := range []string{"stats", "=node.total", "=origins.255", "=later.7", "=due", "=quarantine.7", "=later.18446744073709551616", "=origins.-1", "=later.+1", ""} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if slot, ok := SlotOfStateKey(key); ok && StateKeyOfSlot(slot) != key {
			t.Errorf("%q is slot %d", key, slot)
		}
		if n, ok := PieceOfStateKey(key); ok && (n < 0 || n >= Pieces || StateKeyOfPiece(n) != key) {
			t.Errorf("%q is piece %d", key, n)
		}
		if seq, ok := QuarantineOfStateKey(key); ok && StateKeyOfQuarantine(seq) != key {
			t.Errorf("%q is commit %d", key, seq)
		}
		if CheckStateKey(key) == nil && new(SpaceState).ListOf(key) == nil {
			t.Errorf("%q is of no list", key)
		}
		if tx, ok := OriginOf(key); ok && tx.Space == "" {
			t.Errorf("%q comes from no space", key)
		}
	})
}

// If one bit of a real message is flipped, the decoder returns an error or another message. It uses no more
// memory than the message justifies.
func TestBounds_DecodersSurviveFlippedBits(t *testing.T) {
	for name, decode := range map[string]func([]byte) error{ // any order: each is independent
		"commit": commitError, "mark": markError, "positions": positionsError, "waiting": waitingError, "dead": deadError, "ahead": aheadError,
		"quarantine": func(data []byte) error { _, err := DecodeQuarantined(data); return err },
	} {
		for _, data := range stored(t, name) {
			if err := decode(data); err != nil {
				t.Errorf("%s %s: %v", name, data, err)
			}
			refused := 0
			for bit := range 8 * len(data) {
				c := bytes.Clone(data)
				c[bit/8] ^= 1 << (bit % 8)
				if decode(c) != nil {
					refused++
				}
			}
			if refused < len(data) {
				t.Errorf("%s: of %d messages with one bit flipped, %d are refused", name, 8*len(data), refused)
			}
		}
	}
}
