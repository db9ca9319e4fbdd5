//go:build unix && !linux

package mcp

import "syscall"

// groupAttr makes a child the leader of a group of its own.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitEnd does nothing: there is no way to wait without reaping the child.
func awaitEnd(int) {}
