package bus

import (
	"encoding/json"
	"testing"

	"github.com/settlehq/settle/bus/internal/wire"
	"github.com/settlehq/settle/model"
)

// Any process with the right to announce itself can write an announcement.
func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"id":"w1","beat":7,"weight":2,"life":"l","holds":[0,1],"wants":[2],"program":"cart","since":"2026-11-25T12:00:00Z"}`))
	f.Add([]byte(`{"id":"c1","role":"coordinator","beat":7,"left":true,"done":[1,2],"full":[{"partition":1,"space":"s","since":"2026-11-25T12:00:00Z","waiting":3}]}`))
	f.Add([]byte(`{"id":"w1","weight":1e308,"holds":[-1]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m model.Member
		if json.Unmarshal(data, &m) != nil || m.Check() != nil {
			return
		}
		if m.Weight < 0 || len(m.Holds) > 1<<12 || model.CheckName("member", m.ID) != nil {
			t.Errorf("%q is %+v", data, m)
		}
		_ = m.Key()
	})
}

// Any client can publish a lease.
func FuzzLease(f *testing.F) {
	f.Add([]byte(`{"space":"cart","doc":"stats","watcher":"w","ttl":6000000000}`))
	f.Add([]byte(`{"space":"cart","doc":"","watcher":"w","ttl":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var l model.Lease
		if json.Unmarshal(data, &l) == nil && l.Check() == nil && model.CheckName("space", l.Space) != nil {
			t.Errorf("%q is %+v", data, l)
		}
	})
}

// The input is the items of a saved state: key, sequence and contents.
func FuzzStateItem(f *testing.F) {
	for _, key := range []string{"stats", "=checkpoint", "=node.total", "=later.7", "=origins.3", "=due", "=quarantine.7", "=foreign", "a.b"} {
		f.Add(key, "12", []byte(`7`))
		f.Add(key, "", []byte(`7`))
	}
	f.Fuzz(func(t *testing.T, key, seq string, data []byte) {
		m := wire.StoredMsg{Subject: "$KV.B.cart." + key, Seq: 3, Data: data, Header: map[string][]string{wire.HeaderSeq: {seq}}}
		st, err := arrange([]wire.StoredMsg{m}, "$KV.B.cart.", "cart")
		if err != nil {
			return
		}
		for _, list := range [][]model.StateDoc{st.Docs, st.Later, st.Pieces, st.Quarantine, {st.Mark}} {
			for i := range list {
				if _, known := wire.Decimal(m.Header, wire.HeaderSeq); list[i].Data != nil && !known {
					t.Errorf("item %q without a sequence is believed: %+v", key, list[i])
				}
			}
		}
	})
}
