package space

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/settlehq/settle/ledger"
	"github.com/settlehq/settle/model"
)

type command struct {
	name string
	do   func(*stage, *datadriven.TestData) error
}

// commands is the scenario language, in the order of its documentation in testdata/README.md.
var commands = []command{
	{"register", (*stage).cmdRegister},
	{"runtimes", (*stage).cmdRuntimes},
	{"put", (*stage).cmdPut},
	{"send", (*stage).cmdSend},
	{"run", (*stage).cmdRun},
	{"decide", (*stage).cmdDecide},
	{"deliver", (*stage).cmdDeliver},
	{"stabilize", (*stage).cmdStabilize},
	{"write", (*stage).cmdWrite},
	{"add", (*stage).cmdAdd},
	{"remove", (*stage).cmdRemove},
	{"observe", (*stage).cmdObserve},
	{"unobserve", (*stage).cmdUnobserve},
	{"gate", (*stage).cmdGate},
	{"took", (*stage).cmdTook},
	{"advance", (*stage).cmdAdvance},
	{"idle", (*stage).cmdIdle},
	{"begin", (*stage).cmdBegin},
	{"end", (*stage).cmdEnd},
	{"close", (*stage).cmdClose},
	{"takeover", (*stage).cmdTakeover},
	{"attach", (*stage).cmdAttach},
	{"crash", (*stage).cmdCrash},
	{"checkpoint", (*stage).cmdCheckpoint},
	{"observations", (*stage).cmdObservations},
	{"resumed", (*stage).cmdResumed},
	{"release", (*stage).cmdRelease},
	{"lane", (*stage).cmdLane},
	{"graph", (*stage).cmdGraph},
	{"values", (*stage).cmdValues},
	{"log", (*stage).cmdLog},
	{"receipts", (*stage).cmdReceipts},
	{"runs", (*stage).cmdRuns},
	{"stats", (*stage).cmdStats},
	{"work", (*stage).cmdWork},
	{"errors", (*stage).cmdErrors},
	{"durable", (*stage).cmdDurable},
	{"links", (*stage).cmdLinks},
	{"why", (*stage).cmdWhy},
	{"nodestats", (*stage).cmdNodestats},
	{"trace", (*stage).cmdTrace},
	{"diagnose", (*stage).cmdDiagnose},
	{"busy", (*stage).cmdBusy},
	{"markers", (*stage).cmdMarkers},
	{"tasks", (*stage).cmdTasks},
	{"perform", (*stage).cmdPerform},
	{"operator", (*stage).cmdOperator},
	{"damage", (*stage).cmdDamage},
	{"repair", (*stage).cmdRepair},
}

// arg returns the i-th argument without a value.
func arg(d *datadriven.TestData, i int) string {
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 {
			if i--; i < 0 {
				return a.Key
			}
		}
	}
	return ""
}

// option returns the value of name=value, "" if it is absent.
func option(d *datadriven.TestData, name string) string {
	if a, ok := d.Arg(name); ok {
		return strings.Join(a.Vals, ",")
	}
	return ""
}

// namedActors returns the actors that a command names, or all of them if it names none; words are arguments
// that are not names of actors.
func (s *stage) namedActors(d *datadriven.TestData, words ...string) ([]*actor, error) {
	var out []*actor
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 || a.Key == "quiet" || slices.Contains(words, a.Key) {
			continue
		}
		one, err := s.loaded(a.Key)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	if out == nil {
		out = slices.DeleteFunc(slices.Clone(s.actors), func(a *actor) bool { return a.core == nil })
	}
	return out, nil
}

// one returns the actor that a command names first.
func (s *stage) one(d *datadriven.TestData) (*actor, error) {
	return s.loaded(arg(d, 0))
}

// loaded returns the actor of a name, whose space is loaded.
func (s *stage) loaded(name string) (*actor, error) {
	a := s.find(name)
	switch {
	case a == nil:
		return nil, fmt.Errorf("there is no runtime %q", name)
	case a.core == nil:
		return nil, fmt.Errorf("%s is not loaded; crash starts it again", name)
	}
	return a, nil
}

func (s *stage) cmdRegister(d *datadriven.TestData) error {
	space := arg(d, 0)
	p, err := parseScript(space, d.Input)
	if err == nil {
		s.scripts[space] = p
	}
	return err
}

func (s *stage) cmdRuntimes(d *datadriven.TestData) error {
	cfg := Config{Limits: ledger.Limits{LostAttempts: -1}} // scenarios about other things should contain no attempt records
	for name, field := range map[string]*int{
		"max-iterations": &cfg.MaxIterations, "run-budget": &cfg.RunBudget,
		"lane-limit": &cfg.LaneLimit, "max-group": &cfg.MaxGroup,
		"run-retries": &cfg.RunRetries, "event-retries": &cfg.EventRetries,
		"lost-attempts": &cfg.LostAttempts, "max-chain": &cfg.MaxChain,
	} {
		if v := option(d, name); v != "" {
			n, err := strconv.Atoi(v)
			if err != nil {
				return err
			}
			*field = n
		}
	}
	if v := option(d, "conflict-window"); v != "" {
		var err error
		if cfg.ConflictWindow, err = time.ParseDuration(v); err != nil {
			return err
		}
	}
	cfg.CheckIdempotency = d.HasArg("check-idempotency")
	cfg.WithoutEvents = d.HasArg("without-events")
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 || slices.Contains([]string{"spare", "attached", "without-events", "check-idempotency"}, a.Key) {
			continue
		}
		one, err := s.addActor(a.Key, cfg)
		if err != nil {
			return err
		}
		switch {
		case d.HasArg("attached"):
			one.enter((*Space).Attach)
		case !d.HasArg("spare"):
			one.enter((*Space).TakeOver)
		}
	}
	s.take() // do not print the takeovers
	return nil
}

func (a *actor) enter(ask func(*Space)) {
	ask(a.core)
	a.settle()
	a.decide([]*actor{a})
	a.hear()
}

func (s *stage) cmdPut(d *datadriven.TestData) error {
	space := arg(d, 0)
	var writes []model.Write
	for _, line := range joinIndented(d.Input) {
		if name, ok := strings.CutPrefix(line, "delete "); ok {
			a, err := parseAddress(name)
			if err != nil {
				return err
			}
			writes = append(writes, model.Write{Doc: a.doc, Path: a.path, Delete: true})
			continue
		}
		name, e, err := definition(line)
		if err != nil {
			return err
		}
		a, err := parseAddress(name)
		if err != nil {
			return err
		}
		v, err := e.eval(&env{})
		if err != nil {
			return err
		}
		writes = append(writes, model.Write{Doc: a.doc, Path: a.path, Value: v})
	}
	s.putAs(space, option(d, "group"), writes...)
	s.tellBus("log.%s takes a foreign commit at %d", space, s.head(space))
	return nil
}

func (s *stage) cmdSend(d *datadriven.TestData) error {
	space, stream, ok := strings.Cut(arg(d, 0), "/")
	id := option(d, "id")
	if !ok || id == "" {
		return fmt.Errorf("send wants space/stream and id=")
	}
	var payload model.Value
	if d.Input != "" && !d.HasArg("raw") {
		e, err := parseExpr(strings.TrimSpace(d.Input))
		if err != nil {
			return err
		}
		if payload, err = e.eval(&env{}); err != nil {
			return err
		}
	}
	for _, ev := range s.lanes[space] {
		if ev.ID == id && ev.Stream == stream {
			s.tellBus("lane.%s has %s already", space, id)
			return nil
		}
	}
	ev := model.Event{Space: space, Stream: stream, ID: id, Payload: payload, Invalid: strings.ReplaceAll(option(d, "invalid"), "_", " ")}
	if d.HasArg("raw") {
		ev.ReadPayload([]byte(strings.TrimSpace(d.Input)))
	}
	if at := option(d, "at"); at != "" {
		on, err := time.ParseDuration(at)
		if err != nil {
			return err
		}
		ev.NotBefore = zeroHour + on.Milliseconds()
	}
	s.post(ev)
	s.tellBus("lane.%s takes %s on %s at %d", space, id, stream, s.laneSeq)
	return nil
}

func (s *stage) cmdRun(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	for _, a := range who {
		a.runAll()
	}
	return err
}

func (s *stage) cmdDecide(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	s.decide(who)
	return err
}

func (s *stage) cmdDeliver(d *datadriven.TestData) error {
	who, err := s.namedActors(d, "only", "unmirrored")
	for _, a := range who {
		a.receive(!d.HasArg("unmirrored"))
		if !d.HasArg("only") {
			a.runAll()
		}
	}
	return err
}

func (s *stage) cmdStabilize(d *datadriven.TestData) error {
	who, err := s.namedActors(d)
	if err == nil {
		s.stabilize(who)
	}
	return err
}

func (s *stage) cmdObserve(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	return a.core.Observe(arg(d, 1))
}

func (s *stage) cmdUnobserve(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err == nil {
		a.core.Unobserve(arg(d, 1))
	}
	return err
}

func (s *stage) cmdAdvance(d *datadriven.TestData) error {
	by, err := time.ParseDuration(arg(d, 0))
	if err != nil {
		return err
	}
	if by < 0 {
		return errors.New("time does not go back")
	}
	s.now += by
	s.clock.wall += by
	s.tellBus("it is %s", s.now)
	s.runDue()
	return nil
}

func (s *stage) cmdTakeover(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err == nil {
		a.core.TakeOver()
		a.runAll()
	}
	return err
}

func (s *stage) cmdAttach(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err == nil {
		a.core.Attach()
		a.runAll()
	}
	return err
}

func (s *stage) cmdCrash(d *datadriven.TestData) error {
	return s.find(arg(d, 0)).load()
}

func (s *stage) cmdCheckpoint(d *datadriven.TestData) error {
	a, err := s.one(d)
	if err != nil {
		return err
	}
	c, err := a.core.Checkpoint()
	if err == nil {
		s.save(a.cfg.Space, c)
		a.saveObservations()
		s.tellBus("state.%s reaches %d", a.cfg.Space, a.core.Seq())
	}
	return err
}

func (s *stage) cmdRelease(d *datadriven.TestData) error {
	s.coordinate(d.HasArg("again"), d.HasArg("reverse"))
	return nil
}

// cmdLane prints a lane; with redeliver=id it delivers one of its events again.
func (s *stage) cmdLane(d *datadriven.TestData) error {
	id, found := option(d, "redeliver"), false
	for _, ev := range s.lanes[arg(d, 0)] {
		switch id {
		case "":
			s.tellBus("%d %s on %s", ev.Lane, ev.ID, ev.Stream)
		case ev.ID:
			s.deliverTo(ev)
			found = true
		}
	}
	if id != "" && !found {
		return fmt.Errorf("the lane has no event %q", id)
	}
	return nil
}
