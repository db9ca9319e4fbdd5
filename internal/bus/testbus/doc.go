// Package testbus connects tests to the servers of package bustest. It provisions
// streams, and has helpers that the tests of several packages share. It imports bus, so
// that internal tests of the packages below bus can use only bustest.
package testbus
