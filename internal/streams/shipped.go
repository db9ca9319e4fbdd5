package streams

import _ "embed"

// File is streams.conf, as it stands at the module's root: every stream, bucket
// and consumer, in NATS configuration syntax. Callers must not modify it. The
// compiler embeds no file above a package, and the root imports this one, so the
// file stands here a second time; a test at the root compares the two.
//
//go:embed streams.conf
var File []byte
