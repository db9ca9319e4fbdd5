package service

import "time"

const (
	// everyDefault is how often services are asked what they are.
	everyDefault = 10 * time.Second
	// patienceDefault is for how long a service that is missing may come back
	// while a call waits: longer than a restart.
	patienceDefault = 30 * time.Second

	// missesMax is how often in a row an instance may be silent before its tool
	// is said to be gone: answers that come late are not heard.
	missesMax = 2
	// busyTries is how often a call is tried that a service refuses for now.
	busyTries = 3

	againWaitMin = 200 * time.Millisecond
	againWaitMax = 2 * time.Second

	// errorTextMax bounds what a service's error header adds to an event, in
	// bytes.
	errorTextMax = 4 << 10
	// codeBytesMax bounds a code of a service's own.
	codeBytesMax = 64
)
