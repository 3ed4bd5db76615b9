package devserver

import (
	"fmt"
	"os"
	"path/filepath"
)

// ClaimPort claims a port of the loopback address, before a server listens on it, among all processes of this user that claim ports.
// It reports whether the port was unclaimed. The claim ends with the call of release, or with the process, however that ends. Where
// claims cannot be stored, each one succeeds.
func ClaimPort(port int) (release func(), ok bool) {
	none := func() {}
	cache, err := os.UserCacheDir()
	if err != nil {
		return none, true
	}
	dir := filepath.Join(cache, "settle", "ports")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return none, true
	}
	name := filepath.Join(dir, fmt.Sprintf("%d.lock", port))
	for {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return none, true
		}
		if err := LockFile(file); err != nil {
			_ = file.Close()
			return none, false
		}
		if !isFile(file, name) { // the process that had the claim has removed the file since
			_ = file.Close()
			continue
		}
		return func() {
			_ = os.Remove(name) // before the lock ends, so that it is no other's file; one that stays is claimed again
			_ = file.Close()
		}, true
	}
}

// isFile reports whether an open file still has its name.
func isFile(file *os.File, name string) bool {
	has, err := file.Stat()
	named, err2 := os.Stat(name)
	return err == nil && err2 == nil && os.SameFile(has, named)
}
