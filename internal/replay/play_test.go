package replay

import (
	"testing"

	"github.com/settlehq/settle/model"
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
