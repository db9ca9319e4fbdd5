package mcp

import "time"

const (
	serverNameMax = 24 // bytes of a server's name, which begins the names of its tools

	startMax     = 2 * time.Minute // for a server to start and to list its tools: npx may download it first
	silenceTold  = 2 * time.Second // after which it is reported that a server does not answer
	listMax      = 30 * time.Second
	listAgeMax   = time.Minute // an older list is requested again before a call: not every server reports changes
	pagesMax     = 1000        // of one list of tools
	toolsMax     = 10_000      // of one server
	listBytesMax = 64 << 20    // all pages of one list of tools, as JSON
	weightMax    = 64 << 20    // approximate bytes of memory of the tools of one server
	patience     = 30 * time.Second
	restartMin   = 500 * time.Millisecond // before a server is restarted; doubled after each failure
	restartMax   = 30 * time.Second
	steadyAfter  = time.Minute // a server that ran for this long begins with restartMin again
	againWaitMin = 200 * time.Millisecond
	againWaitMax = 2 * time.Second
	triesMax     = 3 // of a call that was refused for now, or that is retry-safe and lost its answer

	stopMax  = 2 * time.Second // for a server to end when its input ends, and again after SIGTERM
	closeMax = 5 * time.Second // for a session to close

	messageBytesMax  = 32 << 20  // one message of a server
	headerBytesMax   = 256 << 10 // of an answer over HTTP
	stderrBytesMax   = 2 << 10   // of a server's last standard error, in the log
	garbageLinesMax  = 5         // lines of one process that are not messages, in the log
	errorTextMax     = 240       // bytes of a server's text in the detail of a failure
	linkTextMax      = 1 << 10   // of a link to a resource, in bytes
	lockBytesMax     = 16 << 20
	descriptionBytes = 16 << 10 // of a tool; a longer one is cut
)
