// Package yamlfile bounds the memory that reading a YAML file takes. The
// library copies the targets of aliases and keeps the path of every value, so a
// file of a hundred kilobytes could take gigabytes.
package yamlfile

import (
	"fmt"
	"io"
	"math"
	"os"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The limits of a file.
const (
	bytesMax     = 1 << 20
	depthMax     = 64        // nested lists and mappings
	pathBytesMax = 256 << 20 // of the paths of all values: their number times the depth times the longest key
	nodesMax     = 1 << 20   // with the targets of aliases; more than a file without aliases can have
)

// Read returns the text of a file if Check accepts it.
func Read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, bytesMax+1))
	if err != nil {
		return nil, err
	}
	return text, Check(text)
}

// Check returns an error if a text would be expensive to decode. It accepts
// invalid YAML.
func Check(text []byte) error {
	if len(text) > bytesMax {
		return fmt.Errorf("the file has more than %d bytes", bytesMax)
	}
	tokens := lexer.Tokenize(string(text))
	deepest, key, aliases := measure(tokens)
	switch {
	case deepest > depthMax:
		return fmt.Errorf("lists and mappings stand in one another more than %d deep", depthMax)
	case len(tokens)*(deepest+1)*(key+1) > pathBytesMax:
		return fmt.Errorf("a key has %d bytes, in a file of %d words that nest %d deep: shorten the key, or split the file", key, len(tokens), deepest)
	case !aliases:
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil //nolint:nilerr // the decoder reports it better
	}
	c := counter{named: make(map[string]int)}
	nodes := 0
	for _, doc := range file.Docs {
		nodes += c.nodes(doc.Body)
	}
	if nodes > nodesMax {
		return fmt.Errorf("its aliases stand for more than %d values in all: write out what they name, or less of it", nodesMax)
	}
	return nil
}

// measure returns a lower bound of how deep lists and mappings nest, the
// longest key, and whether there are aliases.
func measure(tokens token.Tokens) (deepest, key int, aliases bool) {
	flow := 0       // open brackets
	var block []int // columns of the lists and mappings around a token
	for _, t := range tokens {
		column := t.Position.Column
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow = max(flow-1, 0)
		case token.AliasType:
			aliases = true
		case token.MappingValueType:
			if t.Prev != nil {
				key, column = max(key, len(t.Prev.Value)), t.Prev.Position.Column
			}
		}
		nests := t.Type == token.SequenceEntryType || t.Type == token.MappingValueType || t.Type == token.MappingKeyType
		if nests && flow == 0 {
			for len(block) > 0 && block[len(block)-1] >= column {
				block = block[:len(block)-1]
			}
			block = append(block, column)
		}
		deepest = max(deepest, flow+len(block))
	}
	return deepest, key, aliases
}

// counter counts nodes, including the targets of aliases.
type counter struct{ named map[string]int }

// nodes returns how many values a node has, at most math.MaxInt32, so that sums
// can't overflow.
func (c *counter) nodes(n ast.Node) int {
	count := 1
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, value := range n.Values {
			count += c.nodes(value)
		}
	case *ast.MappingValueNode:
		count += c.nodes(n.Key) + c.nodes(n.Value)
	case *ast.MappingKeyNode:
		count += c.nodes(n.Value)
	case *ast.SequenceNode:
		for _, value := range n.Values {
			count += c.nodes(value)
		}
	case *ast.TagNode:
		count += c.nodes(n.Value)
	case *ast.AnchorNode:
		count += c.nodes(n.Value)
		c.named[n.Name.GetToken().Value] = count
	case *ast.AliasNode:
		count += c.named[n.Value.GetToken().Value]
	}
	return min(count, math.MaxInt32)
}
