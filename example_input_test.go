package settle_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/settletest"
)

type Weather struct {
	Wind int `json:"wind"`
}

var (
	weather = settle.NewInput[Weather]("weather")
	runway  = settle.NewDerived[string]("runway")
	renew   = settle.NewStream[string]("renew")
	forget  = settle.NewStream[string]("forget")
)

// tower chooses a runway by the weather.
func tower(fetch func(ctx context.Context, key string) (Weather, error)) *settle.Program {
	p := settle.NewProgram("tower")
	weather.Fetch(p, fetch, settle.Attempts(2), settle.Timeout(5*time.Second))
	runway.Compute(p, func(v *settle.View) (string, error) {
		w := weather.Get(v, "LAS")
		switch {
		case w.Err != nil:
			return "closed: " + w.Err.Error(), nil
		case !w.Arrived:
			return "wait", nil
		case w.Value.Wind > 20:
			return "26R", nil
		}
		return "01L", nil
	}, settle.Using(weather))
	renew.Handle(p, func(tx *settle.Tx, place string) error {
		weather.Refresh(tx, place)
		return nil
	})
	forget.Handle(p, func(tx *settle.Tx, place string) error {
		weather.Forget(tx, place)
		return nil
	})
	return p
}

// The weather is fetched because an observed document is derived from it.
func ExampleInput() {
	p := tower(func(_ context.Context, place string) (Weather, error) {
		return Weather{Wind: 25}, nil
	}).MadeByReads() // its spaces get no events
	withDeployment(p, func(ctx context.Context, client *settle.Client) error {
		for r, err := range runway.Watch(ctx, client.Space("tower-1")) {
			if err != nil {
				return err
			}
			if r.Value != "wait" {
				fmt.Println(r.Value)
				break
			}
		}
		return nil
	})
	// Output: 26R
}

// In a test, nothing is fetched by itself.
func ExampleInput_Refresh() {
	s := settletest.New(settletest.Must, tower(func(context.Context, string) (Weather, error) {
		return Weather{Wind: 10}, nil
	})).Space("tower-1")
	seen := settletest.Watch(s, runway)
	s.Perform()
	settletest.Call(s, renew, "LAS")
	settletest.GiveUp(s, weather, "LAS", errors.New("no answer"))
	settletest.Call(s, renew, "LAS")
	settletest.Complete(s, weather, "LAS", Weather{Wind: 30})
	settletest.Call(s, forget, "LAS")
	fmt.Println(settletest.PendingTasks(s, weather), seen.Values())

	// The same as events, for senders outside the program.
	came, err := weather.Completed(settle.To("tower-1"), "LAS", Weather{Wind: 5})
	fmt.Println(came.Payload, err)
	fmt.Println(weather.Failed(settle.To("tower-1"), "LAS", errors.New("no answer")).Payload)
	// Output:
	// [LAS] [wait 01L closed: no answer 01L 26R wait]
	// {"key":"LAS","out":{"wind":5}} <nil>
	// {"error":"no answer","key":"LAS"}
}
