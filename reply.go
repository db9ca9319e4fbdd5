package refold

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/function"
	"github.com/refold/refold/client"
)

// ReplyAs asks for an answer that is JSON of T's schema, which is derived as that of a
// tool's arguments: see [function.New]. The session checks the answer, and has the model
// repair a faulty one. Read it with Decode.
//
// The request has the agent's whole config then, which is a part of what a Submission
// repeats: under a changed definition, the same submission is refused.
func ReplyAs[T any]() AskOption {
	schema, err := function.SchemaOf[T]()
	if err != nil {
		err = fmt.Errorf("the type of the reply: %w", err)
	}
	return func(o *asking) { o.format, o.wrong = schema, errors.Join(o.wrong, err) }
}

// options returns the request under an agent's config.
func (o *asking) options(config json.RawMessage) (client.RunOptions, error) {
	if o.wrong != nil || o.format == nil {
		return o.RunOptions, o.wrong
	}
	whole := map[string]json.RawMessage{}
	if err := json.Unmarshal(config, &whole); err != nil {
		return o.RunOptions, err
	}
	var err error
	if whole["response_format"], err = json.Marshal(map[string]any{"type": session.FormatSchema, "schema": o.format}); err != nil {
		return o.RunOptions, err
	}
	o.Operator = true
	o.Config, err = json.Marshal(whole)
	return o.RunOptions, err
}

// DecodeError says that an answer is not the JSON that was asked for. The session
// checks answers of ReplyAs, so this is one of another request, or of another type.
type DecodeError struct {
	Text  string // of the answer
	Cause error
}

func (e *DecodeError) Error() string { return "the answer is not of the type: " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Cause }

// Decode decodes the answer of a request with ReplyAs. It is strict: a field that T does
// not have, or text after the value, is a *DecodeError, which keeps the text.
func Decode[T any](a *Answer) (T, error) {
	var value T
	d := json.NewDecoder(strings.NewReader(a.Text))
	d.DisallowUnknownFields()
	err := d.Decode(&value)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the value")
		}
	}
	if err != nil {
		var none T
		return none, &DecodeError{Text: a.Text, Cause: err}
	}
	return value, nil
}
