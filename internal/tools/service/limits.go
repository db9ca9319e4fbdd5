package service

import "time"

const (
	// everyDefault is how often services are queried.
	everyDefault = 10 * time.Second
	// patienceDefault is how long a call waits for a missing service to return:
	// longer than a restart.
	patienceDefault = 30 * time.Second

	// missesMax is after how many missed answers in a row, and after how many
	// intervals, a tool or an instance is considered gone: late answers are not
	// received.
	missesMax = 2
	// unansweredAfter is how long after a call was sent services are queried, at
	// most each queryGapMin: an instance that starts later can't have the call.
	unansweredAfter = 100 * time.Millisecond
	queryGapMin     = 250 * time.Millisecond
	// busyTries is how many attempts a call gets that a service refuses for now.
	busyTries = 3

	againWaitMin = 200 * time.Millisecond
	againWaitMax = 2 * time.Second

	// errorTextMax bounds in bytes how much of a service's error header goes
	// into an event.
	errorTextMax = 4 << 10
	// quotedMax bounds in bytes what an error quotes of a service's text.
	quotedMax = 80
	// codeBytesMax bounds a service's own error code.
	codeBytesMax = 64
)
