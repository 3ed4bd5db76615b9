//go:build unix

package devserver

import (
	"os"
	"syscall"
)

// LockFile takes a lock that ends with the process, however that ends.
func LockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
