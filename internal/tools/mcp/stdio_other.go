//go:build unix && !linux

package mcp

import "syscall"

// groupAttr makes a child the leader of a group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitEnd does not wait: there is no way to that leaves the child its number.
func awaitEnd(int) {}
