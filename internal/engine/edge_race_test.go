//go:build race

package engine_test

// longSession is how many events a very long session has: fewer under the race
// detector, which makes each of them ten times as dear.
const longSession = 10_000
