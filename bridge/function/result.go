package function

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/codec"
)

// RetryableError is a temporary failure without any effect. A Function that
// returns one is tried again, up to Tries; after the last try the call is settled
// `failed`, with the code of the *Error in Err, else `try_again`, and the model
// may call again. This also applies to a tool that is not retry-safe.
type RetryableError struct{ Err error }

// Error returns the text of Err with a note that nothing took effect.
func (e *RetryableError) Error() string {
	return "nothing took effect, it may be tried again: " + reasonOf(e.Err)
}

// Unwrap returns Err.
func (e *RetryableError) Unwrap() error { return e.Err }

// UnknownOutcomeError says that a call may have taken effect: for instance, the
// connection broke after the request was sent. The call is settled
// `outcome_unknown`, also for a retry-safe tool, and the model is shown the
// error.
type UnknownOutcomeError struct{ Err error }

// Error returns the text of Err with a note that the call may have taken effect.
func (e *UnknownOutcomeError) Error() string { return "it may have taken effect: " + reasonOf(e.Err) }

// Unwrap returns Err.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

func reasonOf(err error) string {
	if err == nil {
		return "no reason is given"
	}
	return err.Error()
}

// decodeArguments decodes arguments that fit the schema. The error has the path
// of a value that does not fit the Go type.
func decodeArguments[In any](arguments []byte) (In, error) {
	in, err := decodeAs[In](arguments)
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return in, err
	}
	// 3.0 and 3e0 are integers to a schema, and not to encoding/json.
	if raw, bad := codec.FromJSON(arguments); bad == nil {
		if plain, bad := codec.ToJSON(raw); bad == nil {
			if again, bad := decodeAs[In](plain); bad == nil {
				return again, nil
			}
		}
	}
	return in, fmt.Errorf("/%s: a %s does not fit a Go %s", strings.ReplaceAll(wrong.Field, ".", "/"), wrong.Value, wrong.Type)
}

func decodeAs[In any](arguments []byte) (in In, err error) {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	return in, d.Decode(&in)
}

// presentable returns an error if encoding/json can't encode an Out, as far as
// its zero value shows.
func presentable[Out any]() (err error) {
	defer func() {
		if recover() != nil {
			err = nil // its MarshalJSON panics on a zero value, perhaps not on others
		}
	}()
	var out Out
	switch any(out).(type) {
	case executor.Result, string, []byte, json.RawMessage, struct{}:
		return nil
	}
	var unsupported *json.UnsupportedTypeError
	if _, err := json.Marshal(out); errors.As(err, &unsupported) {
		return fmt.Errorf("%s can't be encoded as JSON", unsupported.Type)
	}
	return nil
}

func (f *Function) resultOf(out any, err error) (executor.Result, error) {
	var retry *RetryableError
	var unknown *UnknownOutcomeError
	whole, _ := out.(executor.Result)
	if text, ok := out.(string); ok && err != nil {
		whole.Output = text
	}
	switch {
	case errors.As(err, &unknown):
		whole.Unknown, whole.Error = true, &executor.Error{Code: session.CodeOutcomeUnknown, Detail: unknown.Error()}
		return whole, nil
	case errors.As(err, &retry):
		failed := executor.Error{Code: codeTryAgain, Detail: reasonOf(retry.Err)}
		if own := (*executor.Error)(nil); errors.As(retry.Err, &own) && own != nil {
			failed = *own
		}
		failed.Retryable = true
		whole.Error = &failed
		return whole, nil
	case err != nil:
		return whole, err
	}
	switch out := out.(type) {
	case executor.Result:
		return out, nil
	case string:
		return executor.Result{Output: out}, nil
	case []byte:
		return resultOfBytes(out), nil
	case struct{}:
		return executor.Result{}, nil
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(out); err != nil {
		// It ran: only a call of a retry-safe tool may be settled as failed.
		return executor.Result{Unknown: !f.spec.RetrySafe, Error: &executor.Error{
			Code: codeResultUnreadable, Detail: "it ran, and what it returned has no form in JSON: " + err.Error(),
		}}, nil
	}
	return executor.Result{Output: strings.TrimSuffix(text.String(), "\n")}, nil
}

// resultOfBytes returns bytes as text if they are text, else as a file.
func resultOfBytes(data []byte) executor.Result {
	if utf8.Valid(data) && bytes.IndexByte(data, 0) < 0 {
		return executor.Result{Output: string(data)}
	}
	kind, _, _ := strings.Cut(http.DetectContentType(data), ";")
	if strings.HasPrefix(kind, "text/") {
		kind = "application/octet-stream" // it is not UTF-8 text
	}
	return executor.Result{Files: []executor.File{{MediaType: kind, Data: data}}}
}
