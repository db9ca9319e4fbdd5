package mcp

import "time"

const (
	serverNameMax = 24 // bytes of a server's name: it stands before the names of its tools

	startMax     = 2 * time.Minute // for a server to start and to list its tools: npx may fetch it first
	listMax      = 30 * time.Second
	listAgeMax   = time.Minute // a list that is older is asked for again before a call: not every server tells of changes
	pagesMax     = 1000        // of one list of tools
	toolsMax     = 10_000      // of one server
	listBytesMax = 64 << 20    // all pages of one list of tools, as JSON
	weightMax    = 64 << 20    // bytes of memory that the tools of one server take, about
	patience     = 30 * time.Second
	restartMin   = 500 * time.Millisecond // until a server that ended is started again; then twice as long, and so on
	restartMax   = 30 * time.Second
	steadyAfter  = time.Minute // a server that ran for so long begins with restartMin again
	againWaitMin = 200 * time.Millisecond
	againWaitMax = 2 * time.Second
	triesMax     = 3 // of a call that was refused for now, or whose answer was lost and that may run twice

	stopMax  = 2 * time.Second // for a server to end when its input ends, and again after SIGTERM
	closeMax = 5 * time.Second // for the end of a session

	messageBytesMax  = 32 << 20 // one message of a server
	stderrBytesMax   = 2 << 10  // of a server's last words, in the log
	garbageLinesMax  = 5        // that one process wrote and that were no messages, in the log
	errorTextMax     = 240      // of a server's own words in the detail of a failure, in bytes
	linkTextMax      = 1 << 10  // of a link to a resource, in bytes
	lockBytesMax     = 16 << 20
	descriptionBytes = 16 << 10 // of a tool; the rest is cut
)
