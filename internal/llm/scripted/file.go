package scripted

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/refold/refold/internal/yamlfile"
)

const (
	turnsMax = 10_000      // turns or rules of a script
	waitMax  = time.Minute // before a turn's answer
)

// The form of the file. Fields of type any are a text or a list of texts;
// arguments are a mapping or a text.
type (
	wireScript struct {
		Model   string     `yaml:"model"`
		Summary string     `yaml:"summary"`
		Turns   []wireTurn `yaml:"turns"`
		Rules   []wireTurn `yaml:"rules"`
	}
	wireTurn struct {
		Shown  wireShown  `yaml:"shown"`
		Say    string     `yaml:"say"`
		Calls  []wireCall `yaml:"calls"`
		Usage  wireUsage  `yaml:"usage"`
		Finish string     `yaml:"finish"`
		Wait   string     `yaml:"wait"`
		Fail   *wireFail  `yaml:"fail"`
	}
	wireShown struct {
		Last    string        `yaml:"last"`
		Text    any           `yaml:"text"`
		Lacks   any           `yaml:"lacks"`
		Matches string        `yaml:"matches"`
		Asked   string        `yaml:"asked"`
		System  any           `yaml:"system"`
		Tools   wireTools     `yaml:"tools"`
		Results *[]wireResult `yaml:"results"`
	}
	wireTools struct {
		Include any `yaml:"include"`
		Exclude any `yaml:"exclude"`
	}
	wireResult struct {
		Tool    string `yaml:"tool"`
		Error   *bool  `yaml:"error"`
		Text    any    `yaml:"text"`
		Lacks   any    `yaml:"lacks"`
		Matches string `yaml:"matches"`
	}
	wireCall struct {
		Tool      string `yaml:"tool"`
		Arguments any    `yaml:"arguments"`
		ID        string `yaml:"id"`
	}
	wireUsage struct {
		InputTokens      int64 `yaml:"input_tokens"`
		OutputTokens     int64 `yaml:"output_tokens"`
		CachedTokens     int64 `yaml:"cached_tokens"`
		CacheWriteTokens int64 `yaml:"cache_write_tokens"`
		ReasoningTokens  int64 `yaml:"reasoning_tokens"`
	}
	wireFail struct {
		Code      string `yaml:"code"`
		Detail    string `yaml:"detail"`
		Retryable bool   `yaml:"retryable"`
	}
)

// Load reads a script. The error names file and line.
func Load(file string) (*Script, error) {
	data, err := yamlfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", filepath.Base(file), err)
	}
	return Parse(filepath.Base(file), data)
}

// Parse reads a script from its text; name is the file's name in errors.
func Parse(name string, data []byte) (*Script, error) {
	var wire wireScript
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, yamlfile.Explain(err, &wire))
	}
	src := source{name: name, file: file}
	if len(file.Docs) > 1 {
		return nil, fmt.Errorf("%s: a script is one YAML document, and this has %d", name, len(file.Docs))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil, fmt.Errorf("%s:1: the script is empty: give it turns or rules", name)
	}
	if err := yaml.UnmarshalWithOptions(data, &wire, yaml.Strict(), yaml.UseOrderedMap()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, yamlfile.Explain(err, &wire))
	}
	return src.script(&wire)
}

// source finds the lines of keys, and keeps the first error.
type source struct {
	name string
	file *ast.File
	err  error
}

// fault records an error about a key, with its line.
func (s *source) fault(key, format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("%s:%d: %s: %w", s.name, s.line(key), key, fmt.Errorf(format, args...))
	}
}

// line returns the line on which the value of a key begins, such as
// turns[2].shown.matches, or that of the nearest enclosing key.
func (s *source) line(key string) int {
	for key != "" {
		if path, err := yaml.PathString("$." + key); err == nil {
			if node, err := path.FilterFile(s.file); err == nil && node != nil {
				return node.GetToken().Position.Line
			}
		}
		key = outer(key)
	}
	return 1
}

// outer returns the key without its last part.
func outer(key string) string {
	for i := len(key) - 1; i > 0; i-- {
		if key[i] == '.' || key[i] == '[' {
			return key[:i]
		}
	}
	return ""
}
