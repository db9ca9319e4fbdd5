package codec_test

// The tokens of a value, written as JSON, are the result of ToJSON.

import (
	"strconv"
	"testing"

	"github.com/refold/refold/codec"
)

// spell writes a value's JSON from its tokens.
func spell(t *testing.T, out, b []byte) (spelled, rest []byte) {
	t.Helper()
	token, rest, err := codec.Next(b)
	if err != nil {
		t.Fatal(err)
	}
	switch token.Kind {
	case codec.Null:
		out = append(out, "null"...)
	case codec.Bool:
		out = strconv.AppendBool(out, token.True)
	case codec.Number:
		out = token.AppendNumber(out)
	case codec.Text:
		out = strconv.AppendQuote(out, string(token.Bytes))
	case codec.Array:
		out = append(out, '[')
		for i := range token.Len {
			if i > 0 {
				out = append(out, ',')
			}
			out, rest = spell(t, out, rest)
		}
		out = append(out, ']')
	case codec.Map:
		out = append(out, '{')
		for i := range token.Len {
			if i > 0 {
				out = append(out, ',')
			}
			out, rest = spell(t, out, rest)
			out = append(out, ':')
			out, rest = spell(t, out, rest)
		}
		out = append(out, '}')
	default:
		t.Fatalf("kind %d", token.Kind)
	}
	return out, rest
}

func TestTokens(t *testing.T) {
	t.Parallel()
	const text = `{"a":[1,-1,0.5,1e+300,true,false,null,"x",[],{}],"b":{"c":18446744073709551615},"d":-9223372036854775808,"e":300}`
	raw, err := codec.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, rest := spell(t, nil, raw)
	if string(got) != text || len(rest) > 0 {
		t.Errorf("got %s and %d bytes more, want %s", got, len(rest), text)
	}
	packed, err := codec.Marshal(codec.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	if token, rest, err := codec.Next(packed); err != nil || token.Kind != codec.Binary || len(token.Bytes) != 32 || len(rest) > 0 {
		t.Errorf("a hash: %+v %v", token, err)
	}
	for _, bad := range [][]byte{nil, {0xc1}, {0xa5, 'a'}, {0x92}, {0xd9, 1, 0x61}} {
		if token, _, err := codec.Next(bad); err == nil {
			t.Errorf("% x: got %+v, want an error", bad, token)
		}
	}
}
