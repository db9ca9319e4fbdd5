package cli

import (
	"fmt"
	"io"

	"github.com/refold/refold/client"
)

// withFiles is for commands with an input.
type withFiles struct {
	Files []string `name:"file" sep:"none" placeholder:"PATH" help:"An image (PNG, JPEG, GIF, WebP, HEIC), a PDF or a text file for the model, of at most 8 MiB; may be repeated."`
}

// input returns the input's text and files. Files need no text.
func (f withFiles) input(in io.Reader, text, command, missing string) (string, []client.File, error) {
	var err error
	if text != "" || len(f.Files) == 0 || !isTerminal(in) {
		if text, err = inputText(in, text, missing); err != nil {
			return "", nil, err
		}
	}
	files := make([]client.File, len(f.Files))
	for i, path := range f.Files {
		if files[i], err = client.ReadFile(path); err != nil {
			return "", nil, &statusError{statusUsage, command + ": --" + err.Error()}
		}
	}
	return text, files, nil
}

// inputText returns text, or what standard input has if it is empty or "-". On a
// terminal without a text it fails with the message missing.
func inputText(in io.Reader, text, missing string) (string, error) {
	if text != "" && text != "-" {
		return text, nil
	}
	if text == "" && isTerminal(in) {
		return "", &statusError{statusUsage, missing}
	}
	data, err := io.ReadAll(io.LimitReader(in, client.FileBytesMax+1))
	if err == nil && len(data) > client.FileBytesMax {
		err = &statusError{statusUsage, fmt.Sprintf("standard input has more than %d MiB, the most of a text that a model is shown: shorten it, or let a tool read it", client.FileBytesMax>>20)}
	}
	return string(data), err
}
