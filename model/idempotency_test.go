package model

import (
	"fmt"
	"strings"
	"testing"
)

// An attempt under another key would be another charge: the keys do not change.
func TestIdempotencyKey_DoesNotChange(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", MaxNameLen)
	for _, c := range []struct{ deployment, space, action, key, want string }{
		{"settle", "hall", "charge", "order-17", "settle.hall.charge.order-17"},
		{"settle", "hall", "charge", "hall/run-1/s:2", "settle.hall.charge.-key-5k76o8k0ouh48pqnq1td8lmv90"},
		{long, long, long, "order-17", "-key-2vsjsanqu1oo5mv1j4gjjfe18c"},
		{"settle", "hall", "charge", long[:45], "settle.hall.charge." + long[:45]}, // 64 characters
		{"settle", "hall", "charge", long[:46], "-key-k7a89m020jmmqda6aa12sn5j0g"},
		{"settle", long[:20], "charge", "hall/run-1/s:2", "-key-kesv7ns4013bgmog0fqk75hk18"}, // neither short nor a name
	} {
		if got := IdempotencyKey(c.deployment, c.space, c.action, c.key); got != c.want {
			t.Errorf("the key of %q is %s, want %s", c.key, got, c.want)
		}
	}
}

// Tasks that differ in deployment, space, action or key have different idempotency keys, whatever their names are made of, and each can be sent in a header.
func TestIdempotencyKey_DiffersForEachTask(t *testing.T) {
	t.Parallel()
	names := []string{"a", "a-b", "b", "-key-a", "settle", strings.Repeat("a", 20), strings.Repeat("a", 21), strings.Repeat("a", MaxNameLen)}
	keys := append([]string{"a.b", "a/b", "", "b.a", "\n", NameOf("a b"), "a b", strings.Repeat("a.", 100)}, names...)
	whose := map[string]string{}
	for _, d := range names {
		for _, s := range names {
			for _, a := range names {
				for _, k := range keys {
					got, of := IdempotencyKey(d, s, a, k), fmt.Sprintf("%q", []string{d, s, a, k})
					if other, is := whose[got]; is {
						t.Fatalf("%s is the key of %s and of %s", got, other, of)
					}
					if len(got) == 0 || len(got) > 64 || strings.ContainsFunc(got, func(r rune) bool { return r != '.' && !isName(string(r)) }) {
						t.Fatalf("the key of %s is %q", of, got)
					}
					whose[got] = of
				}
			}
		}
	}
}
