//go:build unix && !linux

package main

import "syscall"

const (
	sigStop = syscall.SIGSTOP
	sigCont = syscall.SIGCONT
)

// attributes keep a process from getting this one's Ctrl-C. It outlives a SIGKILL.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
