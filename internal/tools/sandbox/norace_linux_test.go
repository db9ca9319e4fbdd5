//go:build !race

package sandbox_test

// memoryTimes is how many times the memory a test gives.
const memoryTimes = 1
