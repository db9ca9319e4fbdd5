//go:build !race

package host_test

// longSession is how many events a very long session has.
const longSession = 100_000
