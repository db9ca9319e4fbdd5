package recorded

// The limits of a recording; Load refuses what is beyond them.
const (
	fileBytesMax       = 256 << 20 // a file
	conversationsMax   = 100_000   // conversations of a file
	providerIDBytesMax = 256       // a call's recorded id; the session takes no longer one
	toolsFileBytesMax  = 4 << 20   // a file of tool definitions
)

// sessionBytesMax is the length of a conversation's session name. A name takes
// 64 bytes: that leaves room for "--" and a ULID.
const sessionBytesMax = 36
