package codec_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
)

// TestAttackDeepAndLongBytes: a few hundred kilobytes of opening brackets, of nested
// msgpack containers, of digits, and headers that claim four gigabytes. Every reader
// refuses each of them before it allocates memory.
func TestAttackDeepAndLongBytes(t *testing.T) { //nolint:paralleltest // measures the whole process
	const n = 500_000
	const inputMax = 16 * n // what reading one input may allocate
	deepJSON := func(open string) []byte { return []byte(`{"a":` + strings.Repeat(open, n) + "1") }
	deepMsgpack := func(open string) []byte { return append([]byte("\x81\xa1a"), strings.Repeat(open, n)...) }
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"JSON arrays":              {deepJSON("["), codec.ErrDepth},
		"JSON objects":             {deepJSON(`{"a":`), codec.ErrDepth},
		"JSON number of digits":    {append([]byte(`{"a":`), bytes.Repeat([]byte("9"), n)...), codec.ErrNumber},
		"JSON number of exponents": {[]byte(`{"a":1e` + strings.Repeat("9", n) + "}"), codec.ErrNumber},
		"msgpack arrays":           {deepMsgpack("\x91"), codec.ErrDepth},
		"msgpack maps":             {deepMsgpack("\x81\xa1a"), codec.ErrDepth},
		"msgpack long arrays":      {deepMsgpack("\xdd\x00\x00\x00\x01"), codec.ErrDepth},
		"msgpack array of 4 G":     {[]byte("\x81\xa1a\xdd\xff\xff\xff\xff\x01"), codec.ErrTruncated},
		"msgpack map of 4 G":       {[]byte("\xdf\xff\xff\xff\xff\xa1a\x01"), codec.ErrTruncated},
		"msgpack text of 4 GiB":    {[]byte("\x81\xa1a\xdb\xff\xff\xff\xffa"), codec.ErrTruncated},
		"msgpack bytes of 4 GiB":   {[]byte("\x81\xa1a\xc6\xff\xff\xff\xff\x01"), codec.ErrTruncated},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got, err := codec.Canonicalize(c.data); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: Canonicalize gives %d bytes, %v; want %v", name, len(got), err, c.want)
		}
		if strings.HasPrefix(name, "msgpack") {
			var free any
			for reader, err := range map[string]error{
				"Check": codec.Check(c.data), "Unmarshal": codec.Unmarshal(c.data, &free), "ToJSON": second(codec.ToJSON(c.data)),
			} {
				if err == nil {
					t.Errorf("%s: %s takes it", name, reader)
				}
			}
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > inputMax {
			t.Errorf("%s: refusing %d bytes allocates %d, want at most %d", name, len(c.data), got, inputMax)
		}
	}
}
