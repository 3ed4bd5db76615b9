package replay

import (
	"testing"
	"time"

	"github.com/settlehq/settle/internal/simkit"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
)

// The end time of a task is not compared, because the recording has the time of the log.
func TestReplay_TheTimeAtWhichATaskHasEndedIsNotCompared(t *testing.T) {
	parse := func(text string) model.Value {
		v, err := model.ParseValue([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`{"tasks":{"b3":{"at":1795465207610,"state":"done"}}}`, `{"tasks":{"b3":{"at":1795465207609,"state":"done"}}}`, true},
		{`{"tasks":{"b3":{"at":1,"state":"done"}}}`, `{"tasks":{"b3":{"at":1,"state":"failed"}}}`, false},
		{`{"tasks":{"b3":{"at":1,"title":"mow"}}}`, `{"tasks":{"b3":{"at":2,"title":"mow"}}}`, false}, // no task of an action
		{`{"at":1}`, `{"at":2}`, false},
		{`3`, `3`, true},
	} {
		if got := model.Equal(timeless("work", parse(c.a)), timeless("work", parse(c.b))); got != c.same {
			t.Errorf("%s and %s: the same is %v", c.a, c.b, got)
		}
	}
}

// A receipt differs from the recorded one by its outcome, its result, and the code and the data of a rejection.
func TestReplay_ReceiptsAreCompared(t *testing.T) {
	t.Parallel()
	full := func(code string, data int) *model.Receipt {
		return &model.Receipt{Outcome: model.Rejected, Code: code, Result: model.Int(int64(data)), Error: "no place is left"}
	}
	was := &RecordedStep{Outcome: model.Rejected, Code: "full", Result: model.Int(3), Error: "full"}
	for _, c := range []struct {
		rc   *model.Receipt
		want string
	}{
		{full("full", 3), ""},
		{full("closed", 3), `rejected with the code "closed" here, and with "full" before`},
		{full("full", 4), "the result is 4 here, and was 3"},
		{&model.Receipt{Outcome: model.Handled, Result: model.Int(3)}, "handled here, and was rejected (full)"},
	} {
		if got := was.difference(c.rc); got != c.want {
			t.Errorf("%+v: %q, want %q", c.rc, got, c.want)
		}
	}
}

// The log has what differs: a part of a link, or the version of a document. No program writes those, and yet the documents are what they were.
func TestReplay_WritesAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	link := func(to string) model.Value { return model.Link{Doc: to}.Value() }
	before := model.Object(model.F(model.VersionKey, 1), model.F("to", link("a")), model.F("gone", 1))
	after := model.Object(model.F(model.VersionKey, 2), model.F("to", link("b")))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := &Recording{
		Space: "s", Start: start, End: start,
		Before: []RecordedDocument{{"doc", before}, {"a", model.Int(1)}},
		Steps: []RecordedStep{{At: start, Writes: append(model.Diff("doc", before, after),
			model.Write{Doc: "new", Value: model.Object(model.F("x", 1))}, model.Write{Doc: "new", Path: model.Path{"y"}, Value: model.Int(2)}, model.Write{Doc: "a", Delete: true})}},
		After: []RecordedDocument{{"doc", after}, {"new", model.Object(model.F("x", 1), model.F("y", 2))}, {"a", model.Value{}}},
	}
	w := simkit.New(func(string) (*space.Program, error) { return space.NewProgram("none"), nil }, simkit.Options{Start: start})
	if differences, err := r.Play(w); err != nil || len(differences) > 0 {
		t.Errorf("%v %q", err, differences)
	}
}
