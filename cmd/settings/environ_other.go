//go:build !linux

package settings

// HideEnvironment does nothing: only Linux shows a process's environment as a file.
func HideEnvironment() error { return nil }
