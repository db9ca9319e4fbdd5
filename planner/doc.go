// Package planner decides which tools a model is offered and in which order
// the calls that it makes may run. It is pure: no clock, no world, no state of
// its own.
package planner
