//go:build race

package session_test

// raceFactor is by how much fewer interleavings are tried under the race
// detector: it makes each ten times as slow, and what it looks for, memory that
// sessions share, it finds in few.
const raceFactor = 10
