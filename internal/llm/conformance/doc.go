// Package conformance holds all providers to one table: what they render, how
// they read answers, what they try again, and that no key is told. It is tests
// alone; testdata/README.md says where the answers come from.
package conformance
