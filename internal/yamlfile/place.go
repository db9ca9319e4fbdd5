package yamlfile

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml"
)

// Place adds the file, the line and the column of a key to an error about its value. key
// is a path in text, such as config.turns_max or webhooks[1].url; if it has no such key,
// the place is the file's beginning.
func Place(file string, text []byte, key string, err error) error {
	path, bad := yaml.PathString("$." + key)
	if bad == nil {
		if node, none := path.ReadNode(bytes.NewReader(text)); none == nil && node.GetToken() != nil {
			at := node.GetToken().Position
			return fmt.Errorf("%s:%d:%d: %w", file, at.Line, at.Column, err)
		}
	}
	return fmt.Errorf("%s:1:1: %w", file, err)
}
