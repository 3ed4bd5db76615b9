package settletest

import (
	"errors"
	"testing"

	"github.com/settlehq/settle"
	"github.com/settlehq/settle/model"
)

func TestFleet_AUsedIDWithAnotherPayloadIsAnError(t *testing.T) {
	RunFleet(t, settle.NewProgram("p"), FleetOptions{Workers: 1, Faults: -1}, func(f *Fleet) {
		for _, payload := range []string{"1", " 1", "2"} {
			err := f.store(model.Message{Space: "s", Stream: "add", ID: "e1", Payload: []byte(payload)})
			if is := errors.As(err, new(*model.ReusedIDError)); is != (payload == "2") {
				t.Errorf("the error for %q is %v", payload, err)
			}
		}
	})
}
