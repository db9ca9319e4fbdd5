//go:build !race

package session_test

// raceFactor is 10 under the race detector.
const raceFactor = 1
