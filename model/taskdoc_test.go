package model

import "testing"

// The names are part of the stored format.
func TestTaskDoc_NamesAreValidAndDoNotChange(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range []struct{ action, key, want string }{
		{"charge", "order-17", "-task-eNIDGjiaAmluApErT5hRfw"},
		{"charge", "", "-task-6pRYnccDrMZaJaIw2USQ0g"},
		{"char", "ge\x00order-17", "-task-v2w3_fklGKtjKdyjKiyGIA"},
	} {
		name := TaskDoc(c.action, c.key)
		if err := CheckName("document", name); err != nil || !IsTaskDoc(name) || seen[name] || name != c.want {
			t.Errorf("the task %q of %s is in %s (%v), want %s", c.key, c.action, name, err, c.want)
		}
		seen[name] = true
	}
	if IsTaskDoc("charge") || IsTaskDoc(NameOf("a key that is hashed")) {
		t.Error("other documents are taken for tasks")
	}
}
