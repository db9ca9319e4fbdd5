package codec_test

import (
	"errors"
	"fmt"

	"github.com/refold/refold/codec"
)

// A message that arrives as JSON or as msgpack has the same canonical bytes.
func Example() {
	type Message struct {
		Data codec.Raw `msgpack:"data,omitempty"`
		Type string    `msgpack:"type"`
	}

	data, err := codec.Canonicalize([]byte(`{"type": "Greeted", "data": {"name": "Ada", "times": 2.0}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var message Message
	if err := codec.Decode(data, &message); err != nil {
		fmt.Println(err)
		return
	}
	text, err := codec.ToJSON(message.Data)
	fmt.Println(message.Type, string(text), err)
	fmt.Println(codec.Sum(data))
	// Output:
	// Greeted {"name":"Ada","times":2} <nil>
	// f97a55266a39ff03a7f782e9ad6cc5363abd8b9822b4ff5240f03c7a3a529aa2
}

// An error says what is wrong, and where.
func ExampleUnmarshal_error() {
	type Call struct {
		Name string `msgpack:"name"`
	}
	type Turn struct {
		Calls []Call `msgpack:"calls"`
	}

	data, err := codec.FromJSON([]byte(`{"calls": [{"name": "read"}, {"name": 7}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = codec.Unmarshal(data, new(Turn))
	fmt.Println(err)
	fmt.Println(errors.Is(err, codec.ErrMismatch))
	// Output:
	// codec: this is an integer where text should be, at byte 25, in calls[1].name
	// true
}
