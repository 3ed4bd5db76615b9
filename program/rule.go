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

// Rule assigns a version to the spaces of a pattern.
type Rule struct {
	// Spaces is the pattern: a space, a prefix followed by a star, or a star.
	Spaces string `json:"spaces"`
	Choice
	// History holds the previous choices, the latest first, at most MaxHistory.
	History []Choice `json:"history,omitzero"`

	rev    uint64
	broken error // why the rule cannot be decoded
}

// Choice is what a rule assigns to its spaces, with author and time.
type Choice struct {
	// Target is what the spaces run. The zero Target means that there is no rule.
	Target
	// Canary is a version of the same program that a share of the spaces runs instead.
	Canary *Canary `json:"canary,omitzero"`
	// Pinned rules are not changed when another version of their program is deployed without naming
	// their spaces.
	Pinned bool `json:"pinned,omitzero"`
	// By and At are the author and time of the choice as reported by the deploying client; Note is
	// the reason.
	By   string    `json:"by,omitzero"`
	At   time.Time `json:"at,omitzero"`
	Note string    `json:"note,omitzero"`
}

// Targets returns the versions that spaces run by the choice.
func (c Choice) Targets() []Target {
	if c.Canary == nil {
		return []Target{c.Target}
	}
	return []Target{c.Target, {c.Program, c.Canary.Version}}
}

// Canary is a version that is tried in a share of the spaces.
type Canary struct {
	Version string `json:"version"`
	// Percent is the percentage of spaces, 1 to 99.
	Percent int `json:"percent"`
}

// MaxHistory is the number of previous choices that a rule keeps.
const MaxHistory = 20

// All is the pattern of all spaces.
const All = "*"

const (
	ruleKey   = "rule"
	allKey    = ruleKey + ".all"
	prefixKey = ruleKey + ".prefix."
	spaceKey  = ruleKey + ".space."
)

// CheckSpaces returns an error unless pattern is valid.
func CheckSpaces(pattern string) error {
	if pattern == All {
		return nil
	}
	if err := model.CheckName("spaces", strings.TrimSuffix(pattern, "*")); err != nil {
		return fmt.Errorf("%w; use a space (airport-1), a prefix followed by a star (airport-*) or *", err)
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

// Matches reports whether a rule applies to a space.
func (r *Rule) Matches(space string) bool {
	prefix, starred := strings.CutSuffix(r.Spaces, "*")
	return r.Spaces == space || starred && strings.HasPrefix(space, prefix)
}

// Exact reports whether the rule applies to one space only.
func (r *Rule) Exact() bool { return !strings.HasSuffix(r.Spaces, "*") }

// Of returns what a space runs by this choice.
func (c *Choice) Of(space string) Target {
	if c.Canary != nil && Share(c.Program, space) < c.Canary.Percent {
		return Target{c.Program, c.Canary.Version}
	}
	return c.Target
}

// Share returns a number from 0 to 99 that is determined by the names of the program and the space:
// a canary of n percent runs in the spaces with a number below n. The mapping is part of the stored
// format.
func Share(program, space string) int {
	sum := sha256.Sum256([]byte("canary/" + program + "/" + space))
	return int(binary.BigEndian.Uint64(sum[:8]) % 100)
}

// check returns an error if a rule is invalid, before storing it or after reading it.
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
	if rec.Data == nil { // deleted with another tool
		return Rule{Spaces: spaces, rev: rec.Rev}
	}
	var r Rule
	if err := json.Unmarshal(rec.Data, &r); err != nil {
		return Rule{Spaces: spaces, rev: rec.Rev, broken: fmt.Errorf("record %s cannot be read: %w", rec.Key, err)}
	}
	if err := r.check(); err != nil || r.Spaces != spaces {
		return Rule{Spaces: spaces, rev: rec.Rev, broken: errors.Join(fmt.Errorf("record %s is not a rule about %s", rec.Key, spaces), err)}
	}
	r.rev = rec.Rev
	return r
}

// Rules returns the stored rules, the most specific first. The error names those that cannot be
// decoded.
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

// FollowRules delivers the stored rules, in no particular order, calls ready, and then delivers
// each rule that changes, until ctx ends. A rule without a Target was removed. Rules that cannot be
// decoded are left out.
func FollowRules(ctx context.Context, records Records, deliver func(Rule), ready func()) error {
	return records.FollowRecords(ctx, ruleKey, func(rec model.Record) {
		if r := decodeRule(rec); r.broken == nil {
			deliver(r)
		}
	}, ready)
}

// Decide changes the rule about a pattern. change receives the present rule, without a Target if
// there is none, and returns its new choice; it is called again if the rule was changed
// concurrently. If it returns the present choice, nothing is stored. The previous choice is added
// to the history.
func Decide(ctx context.Context, records Records, spaces string, change func(Rule) (Choice, error)) (Rule, error) {
	if err := CheckSpaces(spaces); err != nil {
		return Rule{}, err
	}
	key := keyOfSpaces(spaces)
	for {
		rec, err := records.LoadRecord(ctx, key)
		if err != nil {
			return Rule{}, fmt.Errorf("read the rule about %s: %w", spaces, err)
		}
		next := decodeRule(rec)
		if next.broken != nil {
			return next, next.broken
		}
		choice, err := change(next)
		if err != nil || choice.same(&next.Choice) {
			return next, err
		}
		if err := next.set(choice); err != nil {
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

// same reports whether two choices have the same effect.
func (c *Choice) same(o *Choice) bool {
	if (c.Canary == nil) != (o.Canary == nil) || c.Target != o.Target || c.Pinned != o.Pinned {
		return false
	}
	return c.Canary == nil || *c.Canary == *o.Canary
}

// set replaces the choice and adds the previous one to the history.
func (r *Rule) set(c Choice) error {
	if !r.At.IsZero() || r.Target != (Target{}) {
		r.History = slices.Insert(slices.Clone(r.History), 0, r.Choice)
		r.History = r.History[:min(len(r.History), MaxHistory)]
	}
	c.At = c.At.UTC().Truncate(time.Millisecond)
	r.Spaces, r.Choice = cmp.Or(r.Spaces, All), c
	return r.check()
}

// Before returns the choice that a rollback of the rule returns to: the latest that named another
// version of the program, and false if there is none. During a canary, it is what the other spaces
// run.
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
