package model

import (
	"reflect"
	"testing"
	"time"
)

func TestDeadLetter_RoundTrips(t *testing.T) {
	for _, payload := range []string{"", `{"n":1}`, "null", "not { JSON", "\x00\xff"} {
		d := &DeadLetter{
			Version: DeadVersion, Space: "s", Stream: "add", Event: "s:1:2:0", Outcome: Refused, Error: "why",
			Lane: 3, Commit: 4, Ended: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Trace: Trace{Parent: "p"},
		}
		d.SetBytes([]byte(payload))
		data, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeDead(data)
		if err != nil || string(got.Bytes()) != payload || !Equal(got.Payload, d.Payload) {
			t.Errorf("payload %q comes back as %q, %v", payload, got.Bytes(), err)
		}
		got.Payload, d.Payload = Value{}, Value{}
		if !reflect.DeepEqual(got, d) {
			t.Errorf("got %+v\nwant %+v", got, d)
		}
	}
	if _, err := DecodeDead([]byte(`{"v":99}`)); err == nil {
		t.Error("a letter of a newer version was read")
	}
}
