// Package conformance tests all providers against one table: what they render,
// how they read answers, what they retry, and that no key appears in any text.
// It is tests alone; testdata/README.md says where the answers come from.
package conformance
