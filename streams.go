package refold

import _ "embed"

// StreamsConf is streams.conf: every stream, bucket and consumer, in NATS
// configuration syntax. It must not be modified.
//
//go:embed streams.conf
var StreamsConf []byte
