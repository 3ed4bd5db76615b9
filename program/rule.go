package program

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// Rule says what the spaces of a pattern run.
type Rule struct {
	// Spaces is the pattern: a space, a prefix with a star behind it, or a star.
	Spaces string `json:"spaces"`
	Choice
	// History is what the rule said before, the latest first, at most MaxHistory.
	History []Choice `json:"history,omitzero"`

	rev    uint64
	broken error // why nobody knows what it says
}

// Choice is what a rule says, by whom and since when.
type Choice struct {
	// Target is what the spaces run. The zero Target is nothing: the rule is not there.
	Target
	// Canary is a version of the same program that some of the spaces run instead.
	Canary *Canary `json:"canary,omitzero"`
	// Pinned: the rule stays as it is when another version of its program is deployed without
	// naming its spaces.
	Pinned bool `json:"pinned,omitzero"`
	// By and At say who has said so and when, as they have it; Note is why.
	By   string    `json:"by,omitzero"`
	At   time.Time `json:"at,omitzero"`
	Note string    `json:"note,omitzero"`
}

// Canary is a version that is tried in a share of the spaces.
type Canary struct {
	Version string `json:"version"`
	// Percent is how many of a hundred spaces, 1 to 99.
	Percent int `json:"percent"`
}

// MaxHistory is how many of its former choices a rule remembers.
const MaxHistory = 20

// All is the pattern of all spaces.
const All = "*"

const (
	ruleKey   = "rule"
	allKey    = ruleKey + ".all"
	prefixKey = ruleKey + ".prefix."
	spaceKey  = ruleKey + ".space."
)

// CheckSpaces reports whether a pattern is one.
func CheckSpaces(pattern string) error {
	if pattern == All {
		return nil
	}
	if err := model.CheckName("spaces", strings.TrimSuffix(pattern, "*")); err != nil {
		return fmt.Errorf("%w; use a space (airport-1), a prefix with a star behind it (airport-*) or *", err)
	}
	return nil
}

func keyOfSpaces(pattern string) string {
	prefix, starred := strings.CutSuffix(pattern, "*")
	switch {
	case pattern == All:
		return allKey
	case starred:
		return prefixKey + prefix
	}
	return spaceKey + pattern
}

// spacesOfKey is the inverse of keyOfSpaces.
func spacesOfKey(key string) (string, error) {
	pattern := ""
	if prefix, ok := strings.CutPrefix(key, prefixKey); ok {
		pattern = prefix + "*"
	} else if space, ok := strings.CutPrefix(key, spaceKey); ok {
		pattern = space
	} else if key == allKey {
		pattern = All
	}
	if CheckSpaces(pattern) != nil || keyOfSpaces(pattern) != key {
		return "", fmt.Errorf("record %s is not a rule of this version of Settle", key)
	}
	return pattern, nil
}

// Matches reports whether a rule is about a space.
func (r *Rule) Matches(space string) bool {
	prefix, starred := strings.CutSuffix(r.Spaces, "*")
	return r.Spaces == space || starred && strings.HasPrefix(space, prefix)
}

// Exact reports whether the rule is about one space.
func (r *Rule) Exact() bool { return !strings.HasSuffix(r.Spaces, "*") }

// Of is what a space runs by this choice.
func (c *Choice) Of(space string) Target {
	if c.Canary != nil && Share(c.Program, space) < c.Canary.Percent {
		return Target{c.Program, c.Canary.Version}
	}
	return c.Target
}

// Share is a number from 0 to 99 that follows from a space's name, and differs from program
// to program: a canary of so many percent concerns the spaces whose number is smaller. It is
// part of what is stored.
func Share(program, space string) int {
	sum := sha256.Sum256([]byte("canary/" + program + "/" + space))
	return int(binary.BigEndian.Uint64(sum[:8]) % 100)
}

// check reports what is wrong with a rule that somebody wants to store, or has.
func (r *Rule) check() error {
	if err := CheckSpaces(r.Spaces); err != nil {
		return err
	}
	if r.Target == (Target{}) {
		return nil
	}
	if err := r.Target.check(); err != nil {
		return err
	}
	if r.Canary == nil {
		return nil
	}
	if r.Canary.Percent < 1 || r.Canary.Percent > 99 {
		return fmt.Errorf("a canary of %d percent; use 1 to 99, or deploy without one for all", r.Canary.Percent)
	}
	return model.CheckName("version", r.Canary.Version)
}

func decodeRule(rec model.Record) Rule {
	spaces, err := spacesOfKey(rec.Key)
	if err != nil {
		return Rule{broken: err}
	}
	if rec.Data == nil { // deleted with a tool
		return Rule{Spaces: spaces, rev: rec.Rev}
	}
	var r Rule
	if err := json.Unmarshal(rec.Data, &r); err != nil {
		return Rule{Spaces: spaces, rev: rec.Rev, broken: fmt.Errorf("record %s cannot be read: %w", rec.Key, err)}
	}
	if err := r.check(); err != nil || r.Spaces != spaces {
		return Rule{Spaces: spaces, rev: rec.Rev, broken: errors.Join(fmt.Errorf("record %s is no rule about %s", rec.Key, spaces), err)}
	}
	r.rev = rec.Rev
	return r
}

// Rules returns the rules that there are, the most particular first. The error names those
// that cannot be read.
func Rules(ctx context.Context, records Records) (*Table, error) {
	found, err := records.ListRecords(ctx, ruleKey)
	if err != nil {
		return nil, err
	}
	var broken []error
	rules := map[string]Rule{}
	for _, rec := range found {
		r := decodeRule(rec)
		if r.broken != nil {
			broken = append(broken, r.broken)
			continue
		}
		rules[r.Spaces] = r
	}
	return newTable(rules), errors.Join(broken...)
}

// FollowRules delivers the rules that there are, in no order, calls ready, and then delivers each
// that is changed, until ctx ends. One without a Target is there no more. Those that cannot be
// read are left out.
func FollowRules(ctx context.Context, records Records, deliver func(Rule), ready func()) error {
	return records.FollowRecords(ctx, ruleKey, func(rec model.Record) {
		if r := decodeRule(rec); r.broken == nil {
			deliver(r)
		}
	}, ready)
}

// Decide has the rule about a pattern say something else. change is given the rule as it
// stands, without a Target if there is none, and returns what it is to say; it is called again if
// somebody else has changed the rule meanwhile. If it returns the choice that stands, nothing
// is stored. What stood before goes to the history.
func Decide(ctx context.Context, records Records, spaces string, change func(Rule) (Choice, error)) (Rule, error) {
	if err := CheckSpaces(spaces); err != nil {
		return Rule{}, err
	}
	key := keyOfSpaces(spaces)
	for {
		rec, err := records.LoadRecord(ctx, key)
		if err != nil {
			return Rule{}, fmt.Errorf("look at the rule about %s: %w", spaces, err)
		}
		next := decodeRule(rec)
		if next.broken != nil {
			return next, next.broken
		}
		choice, err := change(next)
		if err != nil || choice.says(&next.Choice) {
			return next, err
		}
		if err := next.say(choice); err != nil {
			return next, err
		}
		data, err := json.Marshal(&next)
		if err != nil {
			return next, err
		}
		next.rev, err = records.SaveRecord(ctx, model.Record{Key: key, Data: data, Rev: rec.Rev})
		if !errors.Is(err, model.ErrOutdated) {
			return next, err
		}
		if err := ctx.Err(); err != nil {
			return next, err
		}
	}
}

// says reports whether two choices come to the same.
func (c *Choice) says(o *Choice) bool {
	if (c.Canary == nil) != (o.Canary == nil) || c.Target != o.Target || c.Pinned != o.Pinned {
		return false
	}
	return c.Canary == nil || *c.Canary == *o.Canary
}

// say replaces the choice and remembers the former one.
func (r *Rule) say(c Choice) error {
	if !r.At.IsZero() || r.Target != (Target{}) {
		r.History = slices.Insert(slices.Clone(r.History), 0, r.Choice)
		r.History = r.History[:min(len(r.History), MaxHistory)]
	}
	c.At = c.At.UTC().Truncate(time.Millisecond)
	r.Spaces, r.Choice = cmp.Or(r.Spaces, All), c
	return r.check()
}

// Before is the choice that a rule goes back to when its program's current version turns out
// to be wrong: the latest that named another version of that program, and false if there is
// none. While a canary is tried, it is what the others run.
func (r *Rule) Before() (Target, bool) {
	if r.Canary != nil {
		return r.Target, true
	}
	for _, c := range r.History {
		if c.Program == r.Program && c.Version != r.Version {
			return c.Target, true
		}
	}
	return Target{}, false
}
