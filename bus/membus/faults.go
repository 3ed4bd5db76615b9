package membus

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Op is one try of a client's request, as a Hook sees it.
type Op struct {
	Client string
	// Label is the kind of request: append, send, send-astray, save, head, read-log, read-lane, find-event,
	// find-events, purge-lane, lane-end, lane-event, lane-before, fill-lane, log-state, log-tail, log-spaces,
	// purge-log, purge-state, load-mark, load, load-part, load-item, due, load-position, save-position, move-position,
	// announce, ping, observe, call-roll, bury, read-dead, find-dead, list-dead, get-dead, ask. Through a
	// network there is also owned: whose commit refused an append.
	Label string
	// Space is the space that the request is about, "" if none.
	Space string
	// N numbers the client's requests from 1, Try the tries of this request.
	N   uint64
	Try int
	// Key is what else the request names: a document, a member, a partition, an endpoint and its request. Nth
	// numbers the requests of a client that is connected through a network, from 1, among those with the same
	// label, space and key.
	Key string
	Nth uint64
}

// Hook decides the fate of each try of a request before the server sees it. It is called from one goroutine
// per client, for one try at a time; while it blocks, the client's other requests wait.
type Hook func(Op) Fate

// Fate is what happens to one try of a request.
type Fate int

const (
	// Deliver: the request arrives, and so does its answer.
	Deliver Fate = iota
	// DropRequest: the request is lost. The client times out and retries.
	DropRequest
	// DropAck: the request arrives and its answer is lost. The client retries.
	DropAck
	// Duplicate: the request arrives twice in a row, and the first answer counts.
	Duplicate
	// Delay: the request arrives when Bus.Release is called, and the client waits for that.
	Delay
	// Late: the request arrives when Bus.Release is called, and the client retries at once: the first try
	// lands after the retry was decided, and even after the client has ended.
	Late
)

var fateNames = []string{"deliver", "drop-request", "drop-ack", "duplicate", "delay", "late"}

func (f Fate) String() string { return fateNames[f] }

// Plan is a list of rules. Each applies its fate once, to the first try that it matches; tries without a rule
// are delivered.
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
// separated by commas or line ends: a label of Op or *, optionally a space, and a fate.
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

// Left returns the number of rules that have not applied yet. If any are left, the test has not tested what
// it meant to.
func (p *Plan) Left() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.rules)
}

func (r rule) matches(op Op) bool {
	return (r.label == "" || r.label == op.Label) && (r.space == "" || r.space == op.Space)
}
