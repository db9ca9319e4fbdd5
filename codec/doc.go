// Package codec gives every value one encoding: canonical msgpack. Events,
// effects, states and hashes are bytes of this form, so that equal values are
// equal bytes on every machine and in every language.
//
// # Path
//
// [Canonicalize] accepts bytes of other programs: a JSON object or a msgpack map
// in any spelling. [Decode] reads the result into a struct; [Unmarshal] is for
// Refold's own bytes, and stricter. [Marshal] encodes. [Raw] is a value that a
// program does not interpret, [Pairs] an object with free keys. [FromJSON],
// [ToJSON] and [ToJSONIndent] are for people. [Check] only checks.
//
// # The canonical form
//
// It is a subset of msgpack (github.com/msgpack/msgpack, spec.md). Bytes are in
// canonical form if they are exactly one value, with nothing after it, and:
//
//   - Nil is c0, false c2, true c3.
//   - An integer is in its shortest form. From 0 on that is a positive fixint
//     to 127, else the first of uint 8, 16, 32, 64 that holds it. Below 0 it
//     is a negative fixint to -32, else the first of int 8, 16, 32, 64. So the
//     range is -2^63 to 2^64-1.
//   - A number that is integral and from -2^53 to 2^53 is an integer, never a
//     float; so there is no negative zero. Every other float is a float 64;
//     float 32 is not used. NaN and the infinities do not exist.
//   - A text (msgpack's str) is valid UTF-8: no surrogates, nothing over-long,
//     nothing beyond U+10FFFF. It is not normalized.
//   - Text, binary, array and map have the shortest header that holds their
//     length.
//   - The keys of a map are texts, each once, in ascending order of their
//     bytes (as unsigned numbers; a prefix comes first).
//   - There are no extension types, timestamps included, and no byte c1.
//   - Containers (arrays and maps) are nested at most [DepthMax] deep.
//   - The whole is at most [BytesMax] bytes.
//
// Canonicalize accepts any well-formed msgpack, including float 32 and needlessly
// long forms, and rewrites it by these rules. It refuses values without a canonical
// form: extension types, invalid UTF-8, keys that are not text, duplicate keys, NaN,
// infinities.
//
// # JSON
//
// JSON text is UTF-8 by RFC 8259, without byte order mark. A number that is
// written without fraction and exponent and fits -2^63 to 2^64-1 is that
// integer, exactly. Every other number is the nearest float 64 (ties to even),
// which by the rule above is an integer if it is integral within 2^53; so 1.0
// and 1e3 are integers, and -0 is 0. A number beyond the range of float 64 is
// refused; one too close to zero is 0. Duplicate keys in an object are refused,
// even if one of them is written with escapes. An escaped surrogate without its
// other half (\ud800) is refused, since it has no UTF-8 encoding.
//
// In the other direction, an integer is its digits; a float is the shortest
// digits that parse to the same float, with an exponent if it is below 1e-6 or
// integral; in a text only quotation mark, backslash and control characters
// are escaped, by \b \f \n \r \t or \u00xx. A binary has no JSON form of its
// own: one of 32 bytes becomes lower-case hex, like a hash, any other base64
// with padding. Everything except binaries converts back to the same bytes.
//
// # Go values
//
//   - bool, integers, floats, strings, []byte and [n]byte, slices, arrays,
//     maps with string keys, pointers, any, and structs have an encoding.
//     Pointers to pointers and to interfaces, channels, functions and complex
//     numbers are refused ([ErrGoType]).
//   - A struct is a map by its `msgpack:"name"` tags; "-" leaves a field out,
//     embedded structs are inlined, and a field _msgpack is refused. Keys are
//     sorted whatever the order of declaration.
//   - omitempty leaves out false, 0, "", nil pointers, slices, maps and
//     interfaces, structs of only such fields, and values for which IsZero is
//     true. Unlike encoding/json it keeps an empty slice or map that is not
//     nil: [] clears a list, an absent one leaves it, and Unmarshal restores
//     both.
//   - Without omitempty a nil slice or map is encoded and decoded as an empty
//     one; nil is refused. An empty Raw is nil.
//   - [Hash] is a binary of 32 bytes, [Ref] a text. A type that has both
//     MarshalText and UnmarshalText is a text. A type that implements an encoder
//     interface of the msgpack library is refused ([ErrGoType]).
//   - Integers must fit their Go type, and arrays have its length.
//
// # Laws
//
//   - One spelling: if Unmarshal(data, &v) succeeds, Marshal(v) returns data; if
//     Marshal(v) succeeds, Unmarshal accepts the result. No other bytes decode
//     to an equal value.
//   - Check, Canonicalize and Unmarshal agree on the canonical form, and
//     Canonicalize returns canonical bytes as the same slice.
//   - Errors are [*Error]s with a kind and a byte offset. The same input gives the
//     same text: it has no text of a library, and no Go type of the caller except
//     for ErrGoType. If bytes have two faults, a fault of their form comes before a
//     mismatch with the struct, and of faults of the form the first one.
//   - No input allocates more than its size justifies, whatever lengths its
//     headers claim. Nothing panics.
//   - Results share no memory with the input, unless Canonicalize returns it.
//
// # Limits
//
// DepthMax and BytesMax hold for input and output; [UnmarshalLimit] has a
// smaller size. A slice is decoded at the size of its Go elements: n bytes can
// become n structs in which every optional field is absent, so limit the size of
// foreign bytes to suit the type.
//
// # Testing
//
// testdata/vectors has test vectors of the form as text for any language; each
// file explains its format at the top. Fuzz targets and property tests check the
// laws on random bytes and values, and against the library's own codec.
package codec
