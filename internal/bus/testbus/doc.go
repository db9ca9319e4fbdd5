// Package testbus gives tests a connection to servers of package bustest, streams that
// are provisioned, and what several packages' tests do with them. bustest knows
// nothing of package bus, so that tests from the inside may use it.
package testbus
