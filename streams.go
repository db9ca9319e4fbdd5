package refold

import _ "embed"

// StreamsConf is streams.conf: every stream, bucket and consumer, in NATS
// configuration syntax. Callers must not modify it.
//
//go:embed streams.conf
var StreamsConf []byte
