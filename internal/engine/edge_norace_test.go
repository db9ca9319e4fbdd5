//go:build !race

package engine_test

// longSession is how many events a very long session has.
const longSession = 100_000
