package prompt

// Every limit of a model's request, with its unit. limits_test.go asserts their
// relations.
const (
	ContentBytesMax = 8 << 20 // one content, blobs and parts included, that a model is shown

	BlobBytesMax = 32 << 20 // one blob that is read: as much as a client stores with one run

	previewHeadBytes   = 64 << 10 // of a text that became a blob
	previewTailBytes   = 16 << 10
	fileBytesMax       = 8 << 20  // one image or document that a model is shown; each provider has its own limit
	mediaBytesMax      = 40 << 20 // all images and documents of one request; more than any provider takes
	requestBytesMax    = 64 << 20 // one request's transcript; the texts of earlier events are cut
	shortBytesMax      = 32 << 20 // what is cut, besides
	earlyHeadBytes     = 1 << 10  // of a text before requestBytesMax
	earlyTailBytes     = 1 << 10
	eventsAtOnce       = 64       // events read from the log in one request
	eventsCacheBytes   = 64 << 20 // events of all sessions, kept for their next turn
	toolsCacheBytes    = 16 << 20 // descriptors of tools
	promptsCacheBytes  = 32 << 20 // files of prompts
	renderCacheBytes   = 16 << 20 // toolsets in the form of their provider
	renderedFixedBytes = 256      // overhead of an entry in the cache of rendered tools
)
