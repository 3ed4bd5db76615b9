package access

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/settlehq/settle/model"
)

// A Rule says what some principals may do.
type Rule struct {
	// Principal is a name, or a pattern in which * stands for any characters. "" is for what has no principal.
	Principal string `json:"principal"`
	// Send are patterns SPACE/STREAM and Read patterns SPACE/DOCUMENT, in which * stands for any characters of a name. A rule without
	// any allows nothing; it says that the deployment is closed.
	Send []string `json:"send,omitempty"`
	Read []string `json:"read,omitempty"`
	// By is the author of the last change, At when it was made, and Note why.
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at,omitzero"`
	Note string    `json:"note,omitempty"`
}

// CheckPattern returns an error unless a pattern is valid.
func CheckPattern(pattern string) error {
	space, name, ok := strings.Cut(pattern, "/")
	if !ok || checkStarred("space", space) != nil || checkStarred("name", name) != nil {
		return fmt.Errorf("%q is no pattern: use SPACE/STREAM for what may be sent and SPACE/DOCUMENT for what may be read, with * for any characters", pattern)
	}
	return nil
}

// CheckPrincipal returns an error unless a name, or a pattern of names, is valid.
func CheckPrincipal(pattern string) error {
	if pattern == "" {
		return nil
	}
	if err := model.CheckPrincipal(strings.ReplaceAll(pattern, "*", "x")); err != nil {
		return fmt.Errorf("%q is no principal: use a name, with * for any characters (%w)", pattern, err)
	}
	return nil
}

// checkStarred returns an error unless a pattern of names is valid: with each star in the place of one character, it is a name.
func checkStarred(what, pattern string) error {
	return model.CheckName(what, strings.ReplaceAll(pattern, "*", "x"))
}

// check returns an error unless the rule is valid.
func (r *Rule) check() error {
	errs := []error{CheckPrincipal(r.Principal)}
	for _, p := range slices.Concat(r.Send, r.Read) {
		errs = append(errs, CheckPattern(p))
	}
	if n := len(r.Send) + len(r.Read); n > MostPatterns {
		errs = append(errs, fmt.Errorf("a rule with %d patterns; %d are allowed", n, MostPatterns))
	}
	return errors.Join(errs...)
}

// MostPatterns is how many patterns a rule may have.
const MostPatterns = 1000

// concerns reports whether the rule is about a principal.
func (r *Rule) concerns(principal string) bool {
	if principal == "" || r.Principal == "" {
		return principal == r.Principal
	}
	return matches(r.Principal, principal)
}

// matches reports whether a pattern covers a name. Both are valid: a name has no slash and no star, and a pattern only stars.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// covers reports whether one of the patterns covers a name in a space.
func covers(patterns []string, space, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, space+"/"+name) })
}

// coversAll reports whether one of the patterns covers every name in a space.
func coversAll(patterns []string, space string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		of, name, _ := strings.Cut(p, "/")
		return matches(of, space) && strings.Trim(name, "*") == "" && name != ""
	})
}

// Records of rules have a key each, which is made from the pattern of principals. Keys have no star: what is around the stars are tokens
// of the key, each behind a '-', since a token is never empty.
const (
	// RuleKey begins their keys.
	RuleKey = "access"
	noneKey = RuleKey + ".none"
	nameKey = RuleKey + ".of."
)

// keyOf returns the key of the rule about a pattern of principals.
func keyOf(principal string) string {
	if principal == "" {
		return noneKey
	}
	return nameKey + "-" + strings.ReplaceAll(principal, "*", ".-")
}

// decode reads a rule. A record that was deleted is no rule; there is false.
func decode(rec model.Record) (r Rule, there bool, err error) {
	if rec.Data == nil {
		return r, false, nil
	}
	d := json.NewDecoder(bytes.NewReader(rec.Data))
	d.DisallowUnknownFields() // one that this version does not know may restrict the rule
	err = d.Decode(&r)
	if err == nil && d.More() {
		err = errors.New("there is more behind the object")
	}
	if err != nil {
		return Rule{}, true, fmt.Errorf("record %s cannot be read: %w", rec.Key, err)
	}
	if err := r.check(); err != nil || keyOf(r.Principal) != rec.Key {
		return Rule{}, true, errors.Join(fmt.Errorf("record %s is no rule about its principal", rec.Key), err)
	}
	return r, true, nil
}
