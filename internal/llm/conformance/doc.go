// Package conformance tests all providers against one table: the requests that
// they render, how they read answers, what they retry, and that no key appears
// in any text. It contains only tests; testdata/README.md says where the
// answers come from.
package conformance
