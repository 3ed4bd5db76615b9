package history_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle/history"
	"github.com/settlehq/settle/model"
)

// ask sends a JSON request like any client.
func (w *world) ask(endpoint, question string, into any) {
	w.Helper()
	reply, err := w.Client.Ask(w.Context(), endpoint, []byte(question))
	if err == nil {
		err = json.Unmarshal(reply, into)
	}
	if err != nil {
		w.Errorf("ask %s %s: %v", endpoint, question, err)
	}
}

func TestService_EveryCoordinatorAnswersFromTheLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.work("w1")
		if _, err := history.RequestTree(t.Context(), w.Client, history.TreeQuery{Event: "e1"}); !errors.Is(err, model.ErrNoResponder) {
			t.Errorf("without a coordinator: %v", err)
		}
		first, _ := w.Coordinator(), w.Coordinator()
		w.send("a", "e1", script(to("b", ends("fail")), to("c", nil)))
		w.rest()
		for range 2 { // also with one coordinator less
			tree, err := history.RequestTree(t.Context(), w.Client, history.TreeQuery{Event: "e1"})
			if err != nil || shape(tree.Root) != "a:handled(b:failed c:handled)" || !tree.Settled {
				t.Errorf("the tree is %+v, %v", tree, err)
			}
			var receipt struct {
				Event, State, Error string
				Commit              uint64
			}
			w.ask("receipt", `{"space":"b","stream":"do","event":"`+tree.Root.Caused[0].Event+`"}`, &receipt)
			if receipt.State != "failed" || receipt.Error != "it must fail" || receipt.Commit == 0 {
				t.Errorf("the receipt is %+v", receipt)
			}
			var dead history.DeadPage
			w.ask("dead", "", &dead)
			if len(dead.Letters) != 1 || dead.Next != 0 || dead.Letters[0].Space != "b" || dead.Letters[0].Redriven != nil {
				t.Errorf("the dead letters are %+v", dead)
			}
			first.Stop()
			w.rest() // a request in progress ends with the coordinator
		}
	})
}

func TestService_AnInvalidRequestIsAnErrorWithACode(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		w.send("a", "e1", nil)
		w.send("b", "e1", nil)
		w.rest()
		for question, want := range map[string]string{
			`tree not JSON`:        "400 the request does not have the expected JSON",
			`tree {"event":"e2"}`:  "404 check",
			`tree {"event":"e1"}`:  "400 a/do, b/do",
			`tree {"event":"*"}`:   "400 not allowed",
			`tree `:                "400 is empty",
			`dead {"space":"a.b"}`: "400 not allowed",
			`receipt {"space":"a","stream":"do","event":"e2"}`: "404 settle tree e2",
			`receipt {"space":"a","event":"e2"}`:               "400 is empty",
		} {
			endpoint, request, _ := strings.Cut(question, " ")
			_, err := w.Client.Ask(t.Context(), endpoint, []byte(request))
			var said *model.ServiceError
			code, text, _ := strings.Cut(want, " ")
			if !errors.As(err, &said) || fmt.Sprint(said.Code) != code || !strings.Contains(said.Text, text) {
				t.Errorf("%s: %v, want %s", question, err, want)
			}
		}
	})
}

func TestService_DeadLettersComeInPagesThatFitAMessage(t *testing.T) {
	deployed(t, func(t *testing.T, w *world) {
		large := strings.Repeat("x", 60_000)
		for i := range 12 {
			w.Send("a", "unknown", fmt.Sprint("e", i), `"`+large+`"`)
		}
		w.Send("a", "unknown", "huge", `"`+large+large+large+large+`"`)
		w.rest()
		var events []string
		pages := 0
		for after := uint64(0); pages == 0 || after != 0; pages++ {
			var page history.DeadPage
			w.ask("dead", fmt.Sprintf(`{"space":"a","after":%d,"limit":5}`, after), &page)
			for _, d := range page.Letters {
				events = append(events, d.Event)
				if lost := d.Lost != ""; lost != (d.Event == "huge") {
					t.Errorf("the payload of %s: %q", d.Event, d.Lost)
				}
			}
			if after = page.Next; pages > 20 {
				t.Fatal("the pages do not end")
			}
		}
		if got := strings.Join(events, " "); got != "e0 e1 e2 e3 e4 e5 e6 e7 e8 e9 e10 e11 huge" || pages < 4 {
			t.Errorf("in %d pages: %s", pages, events)
		}
	})
}
