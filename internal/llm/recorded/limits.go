package recorded

// The limits of a recording, checked by Load.
const (
	fileBytesMax       = 256 << 20 // a file
	conversationsMax   = 100_000   // conversations of a file
	providerIDBytesMax = 256       // a call's recorded id; sessions accept no longer one
	toolsFileBytesMax  = 4 << 20   // a file of tool definitions
)

// sessionBytesMax is the length of a conversation's session name. A name may
// have 64 bytes: this leaves room for "--" and a ULID.
const sessionBytesMax = 36
