package settle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

// An id that is used for another payload is a mistake of the caller: silently, it would get the result of the first event.
func TestQ11_Call_OfAnIDThatWasUsedWithAnotherPayloadIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c, _ := w.client("c", nil)
		event := func(payload any) settle.Outgoing {
			return settle.Outgoing{Space: "s", Stream: "add", ID: settle.ID("once"), Payload: payload}
		}
		if _, err := c.Send(t.Context(), event(map[string]any{"a": 1, "b": []int{2}})); err != nil {
			t.Fatal(err)
		}
		others := []any{map[string]any{"a": 2, "b": []int{2}}, map[string]any{"a": 1}, 0, nil, settle.Value{}}
		differ := func(when string) {
			for _, payload := range others {
				_, err := c.Call(t.Context(), event(payload))
				var reused *model.ReusedIDError
				if !errors.As(err, &reused) || reused.Space != "s" || reused.Stream != "add" || reused.ID != "once" || !strings.Contains(err.Error(), "sent before, with another payload") {
					t.Errorf("%s, the error of a call with %v is %v", when, payload, err)
				}
				if r, err := c.Send(t.Context(), event(payload)); err != nil || !r.Duplicate {
					t.Errorf("%s, Send of %v says %+v, %v", when, payload, r, err)
				}
			}
		}
		differ("before it is handled")
		w.worker("w1")
		for range 2 {
			rc, err := c.Call(t.Context(), event(struct {
				B []int `json:"b"`
				A int   `json:"a"`
			}{[]int{2}, 1}))
			if err != nil || rc.Result.String() != "1" {
				t.Errorf("a call with the same payload: %+v, %v", rc, err)
			}
		}
		differ("after it is handled")
		if _, err := settle.NewRequest[int, int]("add").Call(t.Context(), c.Space("s"), settle.ID("once"), 7); !errors.As(err, new(*model.ReusedIDError)) {
			t.Errorf("the error of a typed call is %v", err)
		}
		// An event without a payload has null, which is not zero.
		for i, first := range []any{settle.Value{}, nil, 0} {
			for j, second := range []any{settle.Value{}, nil, 0} {
				e := event(first)
				e.ID = settle.ID(fmt.Sprintf("absent-%d-%d", i, j))
				if _, err := c.Call(t.Context(), e); err != nil {
					t.Fatal(err)
				}
				e.Payload = second
				if _, err := c.Call(t.Context(), e); errors.As(err, new(*model.ReusedIDError)) != ((i == 2) != (j == 2)) {
					t.Errorf("%v, then %v: %v", first, second, err)
				}
			}
		}
	})
}
