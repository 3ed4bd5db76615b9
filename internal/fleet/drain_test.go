package fleet

import (
	"strings"
	"testing"

	"github.com/settlehq/settle/model"
)

func TestMayDrain_RefusesWithTheReason(t *testing.T) {
	t.Parallel()
	of := func(id string, s State) Member { return Member{ID: id, State: s, announced: model.Member{ID: id}} }
	ordered := of("o1", Here)
	ordered.announced.Role = model.RoleOrdered
	for _, c := range []struct {
		id      string
		force   bool
		workers []Member
		refusal string // "" for none
	}{
		{"w1", false, []Member{of("w1", Here), of("w2", Here)}, ""},
		{"w3", false, []Member{of("w1", Here), of("w2", Here)}, `there is no worker "w3"; there are: w1, w2`},
		{"c1", false, []Member{of("w1", Here)}, "c1 is a coordinator"},
		{"w1", false, []Member{of("w1", Here)}, "worker w1 is the only one"},
		{"w1", true, []Member{of("w1", Here)}, ""},
		{"w1", false, []Member{of("w1", Here), of("w2", Silent), of("w3", Leaving), of("w4", Gone), ordered}, "worker w1 is the only one"},
		{"w1", false, []Member{of("w1", Leaving)}, ""},
		{"w1", true, []Member{of("w1", Silent), of("w2", Here)}, "worker w1 is silent: it does not answer"},
		{"w1", true, []Member{of("w1", Gone), of("w2", Here)}, "worker w1 is gone: it does not answer"},
		{"o1", true, []Member{of("w1", Here), ordered}, "o1 is a process of package ordered"},
	} {
		f := &Fleet{Workers: c.workers, Coordinators: []Member{of("c1", Here)}}
		m, err := f.MayDrain(c.id, c.force)
		switch {
		case c.refusal == "" && (err != nil || m.ID != c.id):
			t.Errorf("%s: %v, %v", c.id, m, err)
		case c.refusal != "" && (err == nil || !strings.HasPrefix(err.Error(), c.refusal)):
			t.Errorf("%s: the error is %v, not %s", c.id, err, c.refusal)
		}
	}
}
