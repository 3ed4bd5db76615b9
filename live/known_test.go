package live_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/settlehq/settle/live"
	"github.com/settlehq/settle/model"
)

func TestKnown_IsReadInBothForms(t *testing.T) {
	for text, want := range map[string]live.Known{ // any order: the cases are independent
		`17`: live.At(17), `"17"`: live.At(17), `"17-0123456789ab"`: {Revision: 17, Print: "0123456789ab"},
	} {
		var q live.Watch
		if err := json.Unmarshal([]byte(`{"space":"s","document":"d","from":`+text+`}`), &q); err != nil || q.From != want {
			t.Errorf("%s decodes as %+v, %v", text, q.From, err)
		}
		var again live.Known
		data, err := json.Marshal(want)
		if err == nil {
			err = json.Unmarshal(data, &again)
		}
		if err != nil || again != want {
			t.Errorf("%+v is encoded as %s and decodes as %+v, %v", want, data, again, err)
		}
	}
	if data, err := json.Marshal(live.At(17)); err != nil || string(data) != "17" {
		t.Errorf("a revision alone is encoded as %s, %v; earlier versions need a number", data, err)
	}
	if data, err := json.Marshal(live.Watch{Space: "s", Document: "d"}); err != nil || strings.Contains(string(data), "from") {
		t.Errorf("the zero Known is encoded as %s, %v", data, err)
	}
	for _, text := range []string{``, `-1`, `x`, `17-`, `17-0123`, `17-0123456789AB`, `17-0123456789ab0`, `17-0123456789ab-1`} {
		var k live.Known
		if err := k.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q decodes as %+v", text, k)
		}
	}
}

// Different values have different prints, and one value has one print.
func TestKnown_DifferentValuesHaveDifferentPrints(t *testing.T) {
	prints := map[string]int{}
	for n := range 1000 {
		data := []byte(strconv.Itoa(n))
		mark := (&live.Answer{Revision: 7, Value: data}).Known().Print
		if other, is := prints[mark]; is {
			t.Fatalf("%d and %d both have print %s", other, n, mark)
		}
		if prints[mark] = n; (&live.Answer{Revision: 8, Value: data}).Known().Print != mark {
			t.Fatalf("%d has two prints", n)
		}
	}
}

// watchFrom collects the values and rewinds that a watch delivers.
func (w *world) watchFrom(from live.Known) *seen {
	return w.watching(func(ctx context.Context, s *seen) error {
		return w.client.Watch(ctx, live.Watch{Space: "s", Document: "n", From: from}, func(e live.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		})
	})
}

// The store goes back while a client watches and no worker runs, and then gives the document the revision
// that the client has, with other content. A worker that starts after that sends the client Rewound, whether
// its watch continues or it resumes from a stored Known.
func TestWatch_DistinguishesTwoValuesOfOneRevision(t *testing.T) {
	for _, c := range []struct {
		stream string // the stream of the event whose commit gets the revision
		n      int
		back   bool
	}{{"jump", 11, true}, {"add", 2, false}} {
		t.Run(c.stream, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				a := w.worker("a", live.Config{})
				w.send("add", 1)
				w.settled(1)
				before := w.Server.Snapshot()
				head := w.Server.Head("s")
				w.send("touch", 1) // its commit gets the sequence of the later takeover
				w.Eventually("the event is refused", func() bool { return w.Server.Head("s") == head+1 })
				w.send("add", 1)
				w.settled(2)
				stays := w.watchFrom(live.Known{})
				w.Eventually("the client has the value", func() bool { return stays.last() == "2" })
				values := stays.of(live.Value)
				had := values[len(values)-1].Known()
				a.Crash()
				w.Server.GoBack(before)
				w.worker("b", live.Config{})
				w.send(c.stream, 1)
				w.settled(c.n)
				if _, revision := w.logged("n"); revision != had.Revision {
					t.Fatalf("the document has revision %d and had %d; the test needs equal revisions", revision, had.Revision)
				}
				comes, knowsLess := w.watchFrom(had), w.watchFrom(live.At(had.Revision))
				w.Pass(time.Minute)
				for who, s := range map[string]*seen{"the running watch": stays, "the resumed watcher": comes} { // any order: the cases are independent
					news := s.of(live.Rewound, live.Value)
					i := slices.IndexFunc(news, func(e live.Event) bool { return e.Kind == live.Rewound })
					switch {
					case !c.back && (i >= 0 || len(s.of(live.Value)) != len(values) && s == stays):
						t.Errorf("%s received %+v", who, news)
					case c.back && (i < 0 || len(news) != i+2 || string(news[i+1].Data) != "11"):
						t.Errorf("%s received %+v", who, news)
					}
				}
				if news := knowsLess.of(live.Rewound, live.Value); len(news) > 0 {
					t.Errorf("a watch with a revision alone received %+v", news)
				}
			})
		})
	}
}

// A worker of an earlier version refuses a request that names more than a revision, and the client repeats it
// without the print.
func TestWatch_FallsBackToRevisionsForWorkersOfEarlierVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.worker("a", live.Config{})
		w.send("add", 1)
		w.settled(1)
		_, revision := w.logged("n")
		earlier := &refusesPrints{asks: asks{Client: w.Client, reading: make(chan struct{}, 1)}}
		w.client.Bus = earlier
		s := w.watchFrom(live.Known{Revision: revision, Print: "0123456789ab"})
		w.send("add", 1)
		w.Eventually("the newer value is delivered", func() bool { return s.last() == "2" })
		if len(s.of(live.Rewound)) > 0 {
			t.Error("Rewound was delivered")
		}
	})
}

type refusesPrints struct{ asks }

func (b *refusesPrints) Listen(ctx context.Context, endpoint string, q []byte, deliver func(model.Part)) error {
	if strings.Contains(string(q), `"from":"`) {
		return &model.ServiceError{Code: model.CodeBadRequest, Text: "the request does not have the expected JSON"}
	}
	return b.Client.Listen(ctx, endpoint, q, deliver)
}
