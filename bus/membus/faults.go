package membus

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Op is one try of one request of a client, as a Hook sees it.
type Op struct {
	Client string
	// Label is what is asked: append, send, send-astray, save, head, read-log, read-lane,
	// find-event, find-events, purge-lane, lane-end, lane-event, lane-before, fill-lane, log-state, log-tail,
	// log-spaces, purge-log, purge-state, load-mark, load, load-item, due, load-position, save-position, move-position,
	// announce, ping, observe, call-roll, bury, read-dead, find-dead, list-dead, get-dead, ask. Through a network there
	// is also owned: whose commit refused an append.
	Label string
	// Space is the space that it is about, "" if none.
	Space string
	// N numbers the client's requests from 1, Try the times that this one was
	// sent, from 1.
	N   uint64
	Try int
	// Key is what else it names: a document, a member, a partition, an endpoint and its question. Nth numbers the
	// requests of a client that is connected through a network, from 1, among those of
	// the same label, space and key.
	Key string
	Nth uint64
}

// Hook decides what becomes of each request on its way. It is called from one
// goroutine per client, for one try at a time, before the server sees the
// request. It may take its time, and the client's other requests then wait.
type Hook func(Op) Fate

// Fate is what becomes of one request.
type Fate int

const (
	// Deliver: it arrives, and so does its answer.
	Deliver Fate = iota
	// DropRequest: it never arrives. The client times out and asks again.
	DropRequest
	// DropAck: it arrives, the answer is lost. The client asks again.
	DropAck
	// Duplicate: it arrives twice in a row, and the first answer counts.
	Duplicate
	// Delay: it arrives when Bus.Release is called, and the client has the
	// patience to wait for that.
	Delay
	// Late: as Delay, but the client has no patience and asks again at once: the
	// first request lands after the matter was decided, and even after the
	// client is gone.
	Late
)

var fateNames = []string{"deliver", "drop-request", "drop-ack", "duplicate", "delay", "late"}

func (f Fate) String() string { return fateNames[f] }

// Plan is a list of rules, each of which gives its fate to the first try that it
// matches, once. What no rule matches is delivered.
type Plan struct {
	mu    sync.Mutex
	rules []rule
}

type rule struct {
	label, space string // "" matches all
	fate         Fate
}

// ParsePlan reads rules of the form
//
//	append drop-ack, append@cart drop-request, send late, * duplicate
//
// separated by commas or line ends: a label of Op or *, a space if only its
// requests are meant, and a fate.
func ParsePlan(text string) (*Plan, error) {
	var plan Plan
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		r, err := parseRule(line)
		if err != nil {
			return nil, err
		}
		plan.rules = append(plan.rules, r)
	}
	return &plan, nil
}

func parseRule(line string) (rule, error) {
	words := strings.Fields(line)
	if len(words) != 2 {
		return rule{}, fmt.Errorf("fault rule %q: want LABEL[@SPACE] FATE", line)
	}
	fate := slices.Index(fateNames, words[1])
	if fate < 0 {
		return rule{}, fmt.Errorf("fault rule %q: unknown fate; one of %s", line, strings.Join(fateNames, ", "))
	}
	label, space, _ := strings.Cut(words[0], "@")
	if label == "*" {
		label = ""
	}
	return rule{label, space, Fate(fate)}, nil
}

// Fate returns the Hook that follows the plan.
func (p *Plan) Fate(op Op) Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.rules, func(r rule) bool { return r.matches(op) })
	if i < 0 {
		return Deliver
	}
	fate := p.rules[i].fate
	p.rules = slices.Delete(p.rules, i, i+1)
	return fate
}

// Left returns the number of rules that have not applied yet. A test whose plan did
// not happen has tested nothing.
func (p *Plan) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.rules)
}

func (r rule) matches(op Op) bool {
	return (r.label == "" || r.label == op.Label) && (r.space == "" || r.space == op.Space)
}
