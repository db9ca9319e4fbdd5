//go:build race

package sandbox_test

// memoryTimes is how many times the memory a test gives: the race detector takes
// some of it in the supervisor.
const memoryTimes = 4
