package ordered_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/ordered"
)

// A payload of which a part would be lost fails the event, with the place; OnLenient accepts it (ADR 0076).
func TestOn_PayloadsAreStrict(t *testing.T) {
	t.Parallel()
	pay := func(*ordered.Tx, payment) (int64, error) { return 0, nil }
	strict, lenient := ordered.On(pay), ordered.OnLenient(pay)
	for payload, want := range map[string]string{
		`{"cents":5}`:         "",
		`{"cennts":5}`:        `payload of event e1 to k/pay: /cennts: there is no such field; did you mean "cents"?`,
		`{}`:                  "/cents: the field is missing",
		`null`:                "null is here; an object is wanted",
		`{"cents":null}`:      "/cents: null is here",
		`{"cents":5,"too":1}`: "/too: there is no such field",
	} {
		v, err := model.ParseValue([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		ev := &model.Event{Space: "k", Stream: "pay", ID: "e1", Payload: v}
		if _, err := strict(nil, ev); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", payload, err, want)
		}
		if _, err := lenient(nil, ev); err != nil {
			t.Errorf("%s, leniently: %v", payload, err)
		}
	}
}

// A later version of Settle may add a field to notices.
func TestOn_ReadsNoticesLeniently(t *testing.T) {
	t.Parallel()
	var seen model.Notice
	on := ordered.On(func(_ *ordered.Tx, n model.Notice) (any, error) {
		seen = n
		return nil, nil
	})
	v, err := model.ParseValue([]byte(`{"event":"k:1:1:0","to":"j","stream":"pay","outcome":"refused","reason":"why","added":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := on(nil, &model.Event{Space: "k", Stream: model.Undelivered, ID: model.NoticeID("k:1:1:0"), Payload: v}); err != nil || seen.Outcome != model.Refused || seen.To != "j" {
		t.Errorf("%+v: %v", seen, err)
	}
}
