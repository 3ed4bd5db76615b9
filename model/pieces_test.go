package model

import "testing"

func TestStateKeys_OfPiecesAreTheirOwn(t *testing.T) {
	for n := range Pieces {
		key := StateKeyOfPiece(n)
		if got, ok := PieceOfStateKey(key); !ok || got != n || CheckStateKey(key) != nil {
			t.Errorf("%s: %d, %v, %v", key, got, ok, CheckStateKey(key))
		}
	}
	for _, key := range []string{"=origins.", "=origins.256", "=origins.-1", "=origins.01", "=origins.x", "origins.1", "x"} {
		if n, ok := PieceOfStateKey(key); ok {
			t.Errorf("%s is piece %d", key, n)
		}
	}
	if CheckStateKey("=origins.256") == nil {
		t.Error("a key of an impossible piece is accepted")
	}
	for _, name := range []string{"a", "some-space", "s1"} {
		if n := PieceOf(name); n < 0 || n >= Pieces {
			t.Errorf("%s is in piece %d", name, n)
		}
	}
}
