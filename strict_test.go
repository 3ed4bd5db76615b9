package settle_test

import (
	"strings"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/settletest"
)

type parcel struct {
	Grams int    `json:"grams"`
	To    string `json:"to,omitzero"`
	Gift  *bool  `json:"gift"`
	Extra settle.Value
}

// strictProgram has handlers that store what they get.
func strictProgram() *settle.Program {
	p := settle.NewProgram("post")
	store := func(tx *settle.Tx, in parcel) error {
		tx.Set("grams", in.Grams)
		tx.Set("extra", map[string]bool{"absent": in.Extra.IsAbsent(), "null": in.Extra.IsNull()})
		return nil
	}
	settle.NewStream[parcel]("pack").Handle(p, store)
	settle.NewStream[parcel]("any").Lenient().Handle(p, store)
	count := func(_ *settle.Tx, n int) (int, error) { return n, nil }
	settle.NewRequest[int, int]("count").Handle(p, count)
	settle.NewRequest[int, int]("anything").Lenient().Handle(p, count)
	settle.NewTrigger("webhook").Lenient().Handle(p, func(*settle.Tx) error { return nil })
	return p
}

// A typing error in a payload is an error with its place, and no zero; absent, null and zero are three things.
func TestPayload_IsStrictUnlessTheStreamIsLenient(t *testing.T) {
	s := settletest.New(t, strictProgram()).Space("s")
	for _, c := range []struct{ stream, payload, want string }{
		{"pack", `{"grams":0,"Extra":null}`, ""},
		{"pack", `{"grams":1,"to":"bob","gift":null}`, ""},
		{"pack", `{"gramms":1}`, `payload of pack: /gramms: there is no such field; did you mean "grams"?`},
		{"pack", `{"grams":1,"two":"bob"}`, `/two: there is no such field; did you mean "to"? there is Extra, gift, grams, to`},
		{"pack", `{}`, "payload of pack: /grams: the field is missing"},
		{"pack", `{"grams":null}`, "/grams: null is here; an integer is wanted"},
		{"pack", `{"grams":1,"to":null}`, "/to: null is here; a string is wanted"},
		{"pack", "null", "payload of pack: null is here; an object is wanted"},
		{"pack", "", "payload of pack: nothing is here; an object is wanted"},
		{"count", "0", ""},
		{"count", "null", "payload of count: null is here; an integer is wanted"},
		{"count", "", "payload of count: nothing is here; an integer is wanted"},
		{"any", `{"gramms":1}`, ""},
		{"any", `{"grams":null}`, ""},
		{"any", "", ""},
		{"any", `{"grams":"x"}`, "payload of any: /grams: a string is here; an integer is wanted"},
		{"anything", "", ""},
		{"webhook", `{"id":"evt_1"}`, ""},
	} {
		var v settle.Value
		if c.payload != "" {
			var err error
			if v, err = model.ParseValue([]byte(c.payload)); err != nil {
				t.Fatal(err)
			}
		}
		rc := s.Send(c.stream, v)
		if (rc.Outcome == model.Handled) != (c.want == "") || !strings.Contains(rc.Error, c.want) {
			t.Errorf("%s with %q is %s: %s; want %q", c.stream, c.payload, rc.Outcome, rc.Error, c.want)
		}
	}
}

// A Value in a payload is absent, null or something.
func TestPayload_AValueDistinguishesAbsentFromNull(t *testing.T) {
	s := settletest.New(t, strictProgram()).Space("s")
	for payload, want := range map[string]string{ // any order: each on its own
		`{"grams":1}`: `{"absent":true,"null":false}`, `{"grams":1,"Extra":null}`: `{"absent":false,"null":true}`, `{"grams":1,"Extra":0}`: `{"absent":false,"null":false}`,
	} {
		v, err := model.ParseValue([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		if rc := s.Send("pack", v); rc.Outcome != model.Handled || s.Get("extra").String() != want {
			t.Errorf("%s: %s %s, %s", payload, rc.Outcome, rc.Error, s.Get("extra"))
		}
	}
}

// Settle makes notices itself, and may add to them: their handlers name what they need.
func TestPayload_NoticesAreReadLeniently(t *testing.T) {
	type notice struct {
		Stream string `json:"stream"`
	}
	p, lose := strictProgram(), settle.NewTrigger("lose")
	lose.Handle(p, func(tx *settle.Tx) error {
		tx.Send("other", "refuse", nil)
		return nil
	})
	settle.NewTrigger("refuse").Handle(p, func(*settle.Tx) error { return settle.Reject("no", "never", nil) })
	settle.NewStream[notice](model.Undelivered).Handle(p, func(tx *settle.Tx, n notice) error {
		tx.Set("lost", n.Stream)
		return nil
	})
	s := settletest.New(t, p).Space("s")
	settletest.Send(s, lose)
	s.Expect("lost", "refuse")
}

// Documents are read leniently: those of another version of the program stay readable.
func TestDocuments_OfOtherVersionsStayReadable(t *testing.T) {
	s := settletest.New(t, strictProgram()).Space("s")
	cell := settle.NewCell[parcel]("parcel")
	s.Set("parcel", map[string]any{"grams": 5, "colour": "red", "to": nil})
	if got := cell.Get(s); got.Grams != 5 || got.To != "" {
		t.Errorf("a document of a newer version is read as %+v", got)
	}
	s.Set("parcel", map[string]any{"to": "bob"})
	if got := cell.Get(s); got.Grams != 0 || got.To != "bob" {
		t.Errorf("a document of an older version is read as %+v", got)
	}
}

// The result of a task is a payload, too: one that loses something ends the task as failed, and can be redriven.
func TestAction_ResultsAreStrict(t *testing.T) {
	pay := settle.NewAction[string, parcel]("pay")
	for result, want := range map[string]string{
		`{"key":"k","out":{"grams":5,"Extra":null}}`: "",
		`{"key":"k","out":{"gramms":5}}`:             `the result of task "k" of action pay: /gramms: there is no such field; did you mean "grams"?`,
		`{"key":"k","out":{}}`:                       "/grams: the field is missing",
		`{"key":"k"}`:                                "nothing is here; an object is wanted",
		`{"key":"k","result":{"grams":5}}`:           `it has the key "result"`,
	} {
		p := settle.NewProgram("post")
		pay.External(p)
		settle.NewTrigger("start").Handle(p, func(tx *settle.Tx) error { pay.Start(tx, "k", "in"); return nil })
		pay.Done(p, func(tx *settle.Tx, got settle.Task[string, parcel]) error { tx.Set("paid", got.Out.Grams); return nil })
		s := settletest.New(t, p).Space("s")
		s.Call("start", nil)
		v, err := model.ParseValue([]byte(result))
		if err != nil {
			t.Fatal(err)
		}
		rc := s.Send("pay", v)
		paid, outcome := "absent", model.Failed
		if want == "" {
			paid, outcome = "5", model.Handled
		}
		if rc.Outcome != outcome || !strings.Contains(rc.Error, want) || s.Get("paid").String() != paid {
			t.Errorf("%s: %s %q, and %s is paid; want %q", result, rc.Outcome, rc.Error, s.Get("paid"), want)
		}
	}
}
