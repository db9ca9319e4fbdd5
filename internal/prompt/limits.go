package prompt

// Every limit of what a model is shown, with its unit. limits_test.go asserts how
// they relate.
const (
	ContentBytesMax = 8 << 20 // one content, blobs and parts included, that a model is shown

	previewHeadBytes   = 64 << 10 // of a text that became a blob
	previewTailBytes   = 16 << 10
	imageBytesMax      = 5 << 20  // one image that a model is shown; providers take no larger ones
	requestBytesMax    = 64 << 20 // all that one generation is shown
	eventsAtOnce       = 64       // events read from the log in one request
	eventsCacheBytes   = 64 << 20 // events of all sessions, kept for their next turn
	toolsCacheBytes    = 16 << 20 // descriptors of tools
	promptsCacheBytes  = 32 << 20 // files of prompts
	renderCacheBytes   = 16 << 20 // toolsets as providers take them
	renderedFixedBytes = 256      // what an entry of the cache of rendered tools takes in addition to its bytes
)
