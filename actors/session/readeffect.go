package session

import "github.com/refold/refold/codec"

// ReadCanonical reads the effect that data is, as codec.Unmarshal does.
func (g *Generation) ReadCanonical(data []byte) (n int, ok bool) {
	return len(data), codec.Unmarshal(data, g) == nil
}

// ReadCanonical reads the effect that data is, as codec.Unmarshal does.
func (c *ToolCall) ReadCanonical(data []byte) (n int, ok bool) {
	return len(data), codec.Unmarshal(data, c) == nil
}
