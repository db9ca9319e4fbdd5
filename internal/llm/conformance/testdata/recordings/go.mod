// The modules whose test data are recordings of real providers, with their
// hashes in go.sum. Nothing of them is built: recordings_peers_test.go downloads
// and reads them.
module recordings

go 1.26

require (
	charm.land/fantasy v0.30.0
	github.com/tmc/langchaingo v0.1.14
)
