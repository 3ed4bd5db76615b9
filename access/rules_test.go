package access_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/settlehq/settle/access"
	"github.com/settlehq/settle/bus/membus"
	"github.com/settlehq/settle/model"
	"github.com/settlehq/settle/port"
)

// A deployment without rules is open. With the first one it is closed, and a rule opens what it says.
func TestRules_TheFirstOneClosesTheDeployment(t *testing.T) {
	var none *access.Rules
	for _, open := range []*access.Rules{none, access.NewRules(nil)} {
		if open.Closed() || open.MaySend("alice", "s", "add") != nil || open.MayRead("", "s", "d") != nil {
			t.Error("without rules something is refused")
		}
	}
	rules := access.NewRules([]access.Rule{
		{Principal: "alice", Send: []string{"cart-*/add", "x/*"}, Read: []string{"cart-1/total"}},
		{Principal: "shop-*", Send: []string{"*/pay"}},
		{Principal: "", Read: []string{"board/*"}},
		{Principal: "bob"},
	})
	for _, c := range []struct {
		principal, space, name string
		send, read             bool
	}{
		{"alice", "cart-7", "add", true, false},
		{"alice", "cart-", "add", true, false},
		{"alice", "cart", "add", false, false},
		{"alice", "cart-1", "total", false, true},
		{"alice", "x", "anything", true, false},
		{"alice", "any", "pay", false, false},
		{"shop-1", "any", "pay", true, false},
		{"shop", "any", "pay", false, false},
		{"", "board", "all", false, true},
		{"", "cart-7", "add", false, false},
		{"alice", "board", "all", false, false},
		{"bob", "x", "add", false, false},
		{"eve", "x", "add", false, false},
		{"operator", "any", "add", true, true},
		{"operator2", "any", "add", false, false},
	} {
		if got := rules.MaySend(c.principal, c.space, c.name) == nil; got != c.send {
			t.Errorf("%q may send %s/%s: %v", c.principal, c.space, c.name, got)
		}
		if got := rules.MayRead(c.principal, c.space, c.name) == nil; got != c.read {
			t.Errorf("%q may read %s/%s: %v", c.principal, c.space, c.name, got)
		}
	}
	if got := rules.Senders("any", "pay"); !slices.Equal(got, []string{"shop-*"}) {
		t.Errorf("senders are %q", got)
	}
	reports := access.NewRules([]access.Rule{{Principal: "alice", Send: []string{"cart-*/*", "*/pa*", "cart-1/pay"}}, {Principal: "pay-*", Send: []string{"*/pay"}}})
	for _, c := range []struct {
		principal, space, stream string
		may                      bool
	}{
		{"alice", "cart-1", "pay", true},
		{"alice", "cart-2", "pay", false},
		{"alice", "cart-1", "y", false},
		{"", "cart-1", "pay", false},
		{"pay-desk", "cart-2", "pay", true},
		{"pay-desk", "cart-2", "repay", false},
		{"operator", "cart-2", "pay", true},
	} {
		if got := reports.MayReport(c.principal, c.space, c.stream) == nil; got != c.may {
			t.Errorf("%q may report %s/%s: %v", c.principal, c.space, c.stream, got)
		}
	}
	if none.MayReport("", "s", "pay") != nil {
		t.Error("without rules a report is refused")
	}
	for _, ok := range []string{"operator/*", "*/operator", "a/b"} {
		if err := access.CheckPattern(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	if err := access.CheckPrincipal(model.Operator); err == nil {
		t.Error("there may be a rule about operators")
	}
	if got := rules.Readers("board", "all"); !slices.Equal(got, []string{""}) {
		t.Errorf("readers are %q", got)
	}
}

// like is a dumb oracle of patterns.
func like(pattern, name string) bool {
	if pattern == "" {
		return name == ""
	}
	if pattern[0] == '*' {
		return like(pattern[1:], name) || name != "" && name[0] != '/' && like(pattern, name[1:])
	}
	return name != "" && name[0] == pattern[0] && like(pattern[1:], name[1:])
}

func TestRules_DecideAsAnOracleDoes(t *testing.T) {
	name := rapid.StringMatching(`[ab]{1,3}`)
	pattern := rapid.StringMatching(`[ab*]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		var rules []access.Rule
		for range rapid.IntRange(1, 4).Draw(t, "rules") {
			r := access.Rule{Principal: rapid.OneOf(pattern, rapid.Just("")).Draw(t, "principal")}
			for range rapid.IntRange(0, 2).Draw(t, "patterns") {
				r.Send = append(r.Send, pattern.Draw(t, "space")+"/"+pattern.Draw(t, "stream"))
			}
			rules = append(rules, r)
		}
		who, space, stream := rapid.OneOf(name, rapid.Just("")).Draw(t, "who"), name.Draw(t, "in"), name.Draw(t, "of")
		want := slices.ContainsFunc(rules, func(r access.Rule) bool {
			about := r.Principal == "" && who == "" || r.Principal != "" && who != "" && like(r.Principal, who)
			return about && slices.ContainsFunc(r.Send, func(p string) bool { return like(p, space+"/"+stream) })
		})
		set := access.NewRules(rules)
		if got := set.MaySend(who, space, stream) == nil; got != want {
			t.Fatalf("%q to %s/%s by %+v: %v", who, space, stream, rules, got)
		}
		if err := set.MayRead(who, space, stream); err == nil {
			t.Fatal("a rule about sending lets read")
		}
	})
}

func TestRules_PatternsThatAreNone(t *testing.T) {
	for _, p := range []string{"", "a", "a/", "/a", "a/b/c", "a?/b", "[a]/b", `a\/b`, "a b/c", "a.b/c", "ä/b", strings.Repeat("a", 200) + "/b"} {
		if access.CheckPattern(p) == nil {
			t.Errorf("%q is accepted", p)
		}
	}
	for _, p := range []string{"a.b", "a=b", "a/b", ">", "a?"} {
		if access.CheckPrincipal(p) == nil {
			t.Errorf("principal %q is accepted", p)
		}
	}
}

func TestBook_FollowsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := membus.NewServer(membus.Config{Partitions: 2})
		c := server.Connect("c")
		t.Cleanup(c.Close)
		var records port.Records = c
		book, err := access.Open(t.Context(), c, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(book.Close)
		if book.Rules().Closed() {
			t.Fatal("a deployment without rules is closed")
		}
		allow := func(principal string, send ...string) {
			t.Helper()
			if _, err := access.Change(t.Context(), records, principal, func(r *access.Rule) { r.Send = append(r.Send, send...) }); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		allow("alice", "s/add", "s/add", "a/b")
		if book.MaySend("alice", "s", "add") != nil || book.MaySend("bob", "s", "add") == nil {
			t.Errorf("the rules are %+v", book.Rules().All())
		}
		allow("b*", "s/*")
		if book.MaySend("bob", "s", "add") != nil || book.MaySend("", "s", "add") == nil {
			t.Errorf("the rules are %+v", book.Rules().All())
		}
		list, err := access.List(t.Context(), records)
		if err != nil || len(list.All()) != 2 || !slices.Equal(list.All()[0].Send, []string{"a/b", "s/add"}) {
			t.Errorf("the rules are %+v, %v", list.All(), err)
		}
		if _, err := access.Change(t.Context(), records, "alice", func(r *access.Rule) { r.Send = nil }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if book.MaySend("alice", "s", "add") == nil {
			t.Error("a rule that was changed allows what it did before")
		}
		if _, err := access.Change(t.Context(), records, "x", func(r *access.Rule) { r.Send = []string{"nothing"} }); err == nil {
			t.Error("a pattern that is none is stored")
		}
		// A record that cannot be decoded allows nothing, and closes.
		rec, err := records.LoadRecord(t.Context(), "access.of.-b.-")
		if err != nil {
			t.Fatal(err)
		}
		rec.Data = []byte(`{"principal": "*", "send": ["*/*"]}`)
		if _, err := records.SaveRecord(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if book.MaySend("bob", "s", "add") == nil || !book.Rules().Closed() {
			t.Error("a record that is no rule about its principal is followed")
		}
		if _, err := access.List(t.Context(), records); err == nil {
			t.Error("it is not reported")
		}
	})
}

// A bus that stores no records has no rules, and a book that cannot be read in time is an error.
func TestBook_Opens(t *testing.T) {
	book, err := access.Open(t.Context(), struct{}{}, nil)
	if book != nil || err != nil || book.MaySend("a", "b", "c") != nil {
		t.Errorf("a bus without records: %v, %v", book, err)
	}
	book.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := access.Open(ctx, silent{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// silent never answers.
type silent struct{ port.Records }

func (silent) FollowRecords(ctx context.Context, _ string, _ func(model.Record), _ func()) error {
	<-ctx.Done()
	return ctx.Err()
}

// A deployment whose only rule cannot be read is closed: the rule may have been one that forbids.
func TestBook_ARuleThatCannotBeReadClosesTheDeployment(t *testing.T) {
	for key, data := range map[string]string{"access.none": "no JSON", "access.of.-alice": `{"principal":"bob","send":["*/*"]}`} { // any order: each on its own
		synctest.Test(t, func(t *testing.T) {
			c := membus.NewServer(membus.Config{Partitions: 1}).Connect("c")
			t.Cleanup(c.Close)
			if _, err := c.SaveRecord(t.Context(), model.Record{Key: key, Data: []byte(data)}); err != nil {
				t.Fatal(err)
			}
			book, err := access.Open(t.Context(), c, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(book.Close)
			for _, principal := range []string{"", "alice", "bob"} {
				if book.MaySend(principal, "s", "add") == nil {
					t.Errorf("%s: %q may send", key, principal)
				}
			}
		})
	}
}

// The refusal of the whole deployment names the command that would allow it.
func TestRules_TheRefusalOfTheWholeDeploymentNamesTheCommand(t *testing.T) {
	s := access.NewRules([]access.Rule{{Principal: "boss", Read: []string{"*/*"}}})
	for principal, command := range map[string]string{"": "settle allow --no-principal --read '*/*'", "ann": "settle allow ann --read '*/*'"} { // any order: each on its own
		if err := s.MayReadEverything(principal); err == nil || !strings.Contains(err.Error(), command) {
			t.Errorf("%q: %v", principal, err)
		}
	}
}
