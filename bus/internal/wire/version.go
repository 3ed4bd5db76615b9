package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// oldestServer is the first version of nats-server that compares expected
// sequences correctly in all cases (nats-server issue 8376).
var oldestServer = [3]int{2, 14, 4}

// CheckVersion returns an error for a server that is too old for the guarantees.
func CheckVersion(found string) error {
	v, ok := ParseVersion(found)
	if !ok {
		return fmt.Errorf("nats-server version %q cannot be read; %s or later is needed", found, VersionString(oldestServer))
	}
	for i := range v {
		if v[i] != oldestServer[i] {
			if v[i] > oldestServer[i] {
				return nil
			}
			return fmt.Errorf("nats-server %s is too old: %s or later is needed, because earlier ones can accept a write whose precondition does not hold; upgrade the server", found, VersionString(oldestServer))
		}
	}
	return nil
}

// ParseVersion reads "2.15.2" and "2.15.2-beta.1".
func ParseVersion(s string) (v [3]int, ok bool) {
	s, _, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) != len(v) {
		return v, false
	}
	for i, part := range parts {
		n, err := strconv.Atoi(part)
		if err != nil {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

func VersionString(v [3]int) string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }
