package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.starlark.net/starlark"

	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/space"
	"github.com/settlehq/settle/workflow"
)

// A run can wait for a condition of documents (docs/adr/0059). Each condition that a run waits for is an effect of its space:
// it runs when a document changes that it has read, so nothing else costs anything, and it demands derived documents, so they
// are computed while it waits. When it holds, it raises an event of StreamMet with the value, which is the input of the run's
// next step. The effects follow from documents, so every runtime and every restart has the same ones:
//
//	runs_conditions     {GROUP: {"RUN_HASH": true}}, where GROUP is the first character of HASH
//	runwaits_RUN        {HASH: {"wait": ID, "fn": N, "node": N, "vars": TEXT, "met": true}}

// conditionsNode is the effect that makes those of the groups, which make those of the conditions.
const conditionsNode = "workflow-conditions"

// maxSpaceConditions is the largest number of conditions that the runs of a space wait for.
const maxSpaceConditions = 4000

// groupNode and conditionNode are the names of the effects of a group and of a condition.
func groupNode(group string) string       { return conditionsNode + "-" + group }
func conditionNode(key string) string     { return "wait_" + key }
func conditionsDoc(id string) string      { return "runwaits_" + id }
func conditionKey(id, hash string) string { return id + "_" + hash }

// hashBytes is the size of the hash that names a condition.
const hashBytes = 8

// hashOf returns the hash of a wait of a run. It differs from that of any other wait, also of the same activation after a
// reset, by the position of the run at which the wait began.
func hashOf(wait string, at head) string {
	sum := sha256.Sum256([]byte(wait + " " + at.String()))
	return hex.EncodeToString(sum[:hashBytes])
}

// registerConditions registers the effects of the conditions that runs wait for.
func (s *Set) registerConditions(p *space.Program) error {
	return p.Add(space.NodeSpec{ID: conditionsNode, Kind: space.Effect, Run: func(tx *space.Tx) (model.Value, error) {
		for _, group := range tx.GetShallow(conditionsIndex).Keys() {
			tx.Node(space.NodeSpec{ID: groupNode(group), Kind: space.Effect, Version: "1", Run: func(tx *space.Tx) (model.Value, error) {
				s.watchGroup(tx, group)
				return model.Value{}, nil
			}})
		}
		return model.Value{}, nil
	}})
}

// watchGroup makes the effects of the conditions of a group.
func (s *Set) watchGroup(tx *space.Tx, group string) {
	for _, key := range tx.GetShallow(conditionsIndex, group).Keys() {
		at := strings.LastIndexByte(key, '_')
		if at < 0 {
			continue
		}
		id, hash := key[:at], key[at+1:]
		version, _ := tx.Peek(Doc(id), "version").AsString()
		version += s.defaultsVersion()
		if _, err := s.programOf(tx, id); err != nil {
			version += " missing" // it runs again when a program has it
		}
		tx.Node(space.NodeSpec{
			ID: conditionNode(key), Kind: space.Effect, Version: version,
			Writes: []space.Address{{Doc: conditionsDoc(id), Path: model.Path{hash, "met"}}},
			Gate:   space.GateSpec{NoAutoDebounce: true},
			Run:    func(tx *space.Tx) (model.Value, error) { return model.Value{}, s.watch(tx, id, hash) },
		})
	}
}

// programOf returns the program of a run's graph.
func (s *Set) programOf(tx *space.Tx, id string) (*workflow.Program, error) {
	doc := tx.Peek(Doc(id))
	name, _ := doc.Get("workflow").AsString()
	version, _ := doc.Get("version").AsString()
	return s.program(tx, name, version)
}

// watch evaluates a condition that a run waits for.
func (s *Set) watch(tx *space.Tx, id, hash string) error {
	entry := tx.Peek(conditionsDoc(id), hash)
	if entry.IsAbsent() || !entry.Get("met").IsAbsent() {
		return nil
	}
	p, err := s.programOf(tx, id)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	fn, _ := entry.Get("fn").AsInt()
	node, _ := entry.Get("node").AsInt()
	vars, _ := entry.Get("vars").AsString()
	value, why := p.Holds(int(fn), int(node), jsontext.Value(vars), func(path []string) (starlark.Value, error) {
		if err := model.CheckName("document", path[0]); err != nil {
			return nil, err
		}
		v := s.readWithDefault(tx, path[0], path[1:]...)
		if err := tx.Err(); err != nil {
			return nil, err
		}
		return starlarkOf(v)
	})
	wait, _ := entry.Get("wait").AsString()
	met := []model.Field{model.F("run", id), model.F("wait", wait), model.F("hash", hash)}
	switch {
	case tx.Err() != nil:
		return tx.Err()
	case why != nil:
		met = append(met, model.F("error", model.Object(model.F("type", why.Name), model.F("message", strings.ToValidUTF8(why.Message, "")))))
	case value == nil:
		return nil
	default:
		v, err := model.ParseValue(value)
		if err != nil {
			return err
		}
		met = append(met, model.F("value", v))
	}
	tx.Set(conditionsDoc(id), true, hash, "met")
	tx.Raise(StreamMet, model.Object(met...))
	return nil
}

func starlarkOf(v model.Value) (starlark.Value, error) {
	if v.IsAbsent() {
		return starlark.None, nil
	}
	return workflow.FromJSON(jsontext.Value(v.String()))
}

// conditionMet handles the event that a condition holds, or has failed.
func (s *Set) conditionMet(tx *space.Tx, ev *model.Event) (model.Value, error) {
	from, err := sender(ev)
	if err == nil && from != tx.Space() {
		err = fmt.Errorf("space %s has sent an event of stream %s, which a space sends to itself only", from, ev.Stream)
	}
	if err != nil {
		return model.Value{}, err
	}
	h := s.host(tx)
	id, _ := ev.Payload.Get("run").AsString()
	hash, _ := ev.Payload.Get("hash").AsString()
	if h.state(id) != Running || tx.Peek(conditionsDoc(id), hash).IsAbsent() {
		return model.Object(model.F("ignored", "run "+id+" does not wait for the condition any more")), nil
	}
	met := &workflow.Met{}
	met.Wait, _ = ev.Payload.Get("wait").AsString()
	if v := ev.Payload.Get("value"); !v.IsAbsent() {
		met.Value = jsontext.Value(v.String())
	}
	if e := ev.Payload.Get("error"); !e.IsAbsent() {
		met.Failed = &workflow.Failed{}
		met.Failed.Type, _ = e.Get("type").AsString()
		met.Failed.Message, _ = e.Get("message").AsString()
	}
	return model.Object(model.F("run", id)), h.step(id, &record{Met: met})
}

// writeConditions writes which conditions a run waits for after a step.
func (h *host) writeConditions(id string, e *entry) {
	was, want := h.tx.Peek(conditionsDoc(id)), e.d.run.Conditions()
	if len(want) == 0 && was.IsAbsent() {
		return
	}
	old := map[string]string{} // hashes, by wait
	for hash, entry := range was.All() {
		wait, _ := entry.Get("wait").AsString()
		old[wait] = hash
	}
	for i := range want {
		c := &want[i]
		if old[c.ID] != "" {
			delete(old, c.ID)
			continue
		}
		h.addCondition(id, c, hashOf(c.ID, head{e.d.n, e.d.hash}))
	}
	for _, wait := range slices.Sorted(maps.Keys(old)) {
		h.removeCondition(id, old[wait])
	}
	if len(want) == 0 {
		h.tx.Delete(conditionsDoc(id))
	}
}

// addCondition begins to watch a condition. If a space has no room for another one, the wait fails.
func (h *host) addCondition(id string, c *workflow.Condition, hash string) {
	h.tx.Set(conditionsDoc(id), model.Object(
		model.F("wait", c.ID), model.F("fn", c.Func), model.F("node", c.Node), model.F("vars", string(c.Vars)),
	), hash)
	all := 0
	for _, group := range h.tx.Peek(conditionsIndex).All() {
		all += group.Len()
	}
	if all < maxSpaceConditions {
		h.tx.Set(conditionsIndex, true, hash[:1], conditionKey(id, hash))
		return
	}
	h.tx.Send(h.tx.Space(), StreamMet, model.Object(model.F("run", id), model.F("wait", c.ID), model.F("hash", hash), model.F("error", model.Object(
		model.F("type", workflow.LimitError),
		model.F("message", fmt.Sprintf("the runs of space %s wait for %d conditions; more are not possible: start runs in several spaces", h.tx.Space(), all)),
	))))
}

// removeCondition ends the watch of a condition.
func (h *host) removeCondition(id, hash string) {
	h.tx.Delete(conditionsDoc(id), hash)
	group, key := hash[:1], conditionKey(id, hash)
	switch in := h.tx.Peek(conditionsIndex, group); {
	case in.Get(key).IsAbsent():
	case in.Len() > 1:
		h.tx.Delete(conditionsIndex, group, key)
	case h.tx.Peek(conditionsIndex).Len() > 1:
		h.tx.Delete(conditionsIndex, group)
	default:
		h.tx.Delete(conditionsIndex)
	}
}

// dropConditions ends the watch of all conditions of a run, since it does not go on from where it is.
func (h *host) dropConditions(id string) {
	for _, hash := range h.tx.Peek(conditionsDoc(id)).Keys() {
		h.removeCondition(id, hash)
	}
	if !h.tx.Peek(conditionsDoc(id)).IsAbsent() {
		h.tx.Delete(conditionsDoc(id))
	}
}
