package bus

import "testing"

// A partition whose spaces send to each other has the data of its commits delivered; one where nearly none does, not.
func TestBodies_AreLeftOutWhereNearlyAllEntriesAreInert(t *testing.T) {
	t.Parallel()
	b := &bodies{}
	consumers := 0
	begin := func() bool { consumers++; return b.left() }
	entries := func(n int, inert bool) {
		for range n {
			if b.note(inert); b.change() {
				begin()
			}
		}
	}
	if begin() {
		t.Error("the first consumer leaves them out")
	}
	for range 10 {
		entries(mostlyInert-1, true)
		entries(1, false)
	}
	if b.without || consumers != 1 {
		t.Errorf("with one of %d that is not inert, consumer %d leaves them out: %v", mostlyInert, consumers, b.without)
	}
	entries(mostlyInert, true)
	if !b.without || consumers != 2 {
		t.Errorf("after %d inert ones, consumer %d leaves them out: %v", mostlyInert, consumers, b.without)
	}
	for range 10 {
		entries(25, true)
		entries(1, false)
	}
	if !b.without || consumers != 2 {
		t.Errorf("with few that are not, consumer %d leaves them out: %v", consumers, b.without)
	}
	entries(manyOthers, false)
	if b.without || consumers != 3 {
		t.Errorf("with many that are not, consumer %d leaves them out: %v", consumers, b.without)
	}
}
