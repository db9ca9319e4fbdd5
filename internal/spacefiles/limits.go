package spacefiles

const (
	indexBytesMax   = 1 << 20 // an index, a prompt pack file, a catalog file
	nestingMax      = 64      // nested objects and lists of a file
	nodesMax        = 200_000 // values of a file
	membersMax      = 4_096   // members of an object
	walkMax         = 65_536  // files and folders below a root that has globs
	patternBytesMax = 256     // a glob
	patternBraces   = 4       // { of a glob: alternatives multiply
	patternsMax     = 1_024   // paths and globs of a space
	readsMax        = 3       // readings of a folder that changes
	paragraphRunes  = 200     // of a description taken from a skill's text
)
