package session

import (
	"slices"
	"strings"

	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// ReadPack is the pack that a call of extensions_enable would add, as it was read
// for the person who decides. Only this manifest can be enabled by the call.
type ReadPack struct {
	Pin    spaces.Pin `msgpack:"pin"`
	Signer string     `msgpack:"signer,omitempty"` // the key whose signature makes it trusted; empty: it needs none
}

// isBeingRead reports whether a call waits for the pack that a person will decide
// over.
func (s *State) isBeingRead(c *Call) bool {
	return c.Status == CallAwaiting && c.Sync > 0 && c.Pack == nil
}

// forgetPack drops the pack that a person decided over.
func (s *State) forgetPack(c *Call) {
	if c.Pack != nil {
		c.Pack = nil
		s.dropContent()
	}
}

// packFault returns why a person can't approve a call that enables a pack.
func (s *State) packFault(c *Call, b *ApprovalDecided) *refusal {
	switch {
	case s.isBeingRead(c):
		return refuse(RejectApprovalStale, "the pack is still being read: decide when ApprovalRequested shows it")
	case c.Pack != nil && b.Manifest != c.Pack.Pin.Hash.String():
		return refuse(RejectApprovalStale, "manifest: the call would enable "+c.Pack.Pin.Hash.String())
	case c.Pack != nil && b.Arguments != "" && b.Arguments != c.Arguments:
		return refuse(RejectInvalidData, "arguments: another pack would have to be read first: deny the call with a reason")
	}
	return nil
}

// isHash reports whether text is a hash in hex.
func isHash(text string) bool {
	_, err := codec.ParseHash(text)
	return err == nil
}

// ApprovalPack is the pack that a call of extensions_enable would add, as it was read
// for the person who decides.
type ApprovalPack struct {
	// The pack.
	Space string `json:"space" lim:"@space"`
	// Its version.
	Version string `json:"version" lim:"..space.VersionBytesMax"`
	// Hash of the manifest. The decision names it.
	Hash string `json:"hash" lim:"@hash"`
	// Sequence of the event that has the manifest.
	Seq uint64 `json:"seq"`
	// Public nkey whose signature makes the manifest trusted; absent if the grant names
	// its hash.
	Signer string `json:"signer,omitempty" lim:"any"`
	// Its tools.
	Tools []string `json:"tools,omitempty" lim:"item=@tool_id"`
	// Secrets that it, its tools and its skills need.
	Secrets []string `json:"secrets,omitempty" lim:"item=any"`
	// Texts that models are shown: those of its prompt, then those of its skills.
	Prompt []ApprovalFile `json:"prompt,omitempty"`
	// The lists are too large for this message: the manifest has them.
	Cut bool `json:"cut,omitempty" lim:"=true"`
}

// ApprovalFile is a text of a pack.
type ApprovalFile struct {
	// Its path in the pack.
	Path string `json:"path" lim:"..space.PathBytesMax"`
	// The blob with the text.
	Ref string `json:"ref" lim:"@blob"`
	// Bytes.
	Size int64 `json:"size" lim:"0.."`
}

// approvalPack returns the pack that a waiting call enables; nil: none was read.
func (s *State) approvalPack(c *Call) *ApprovalPack {
	if c.Pack == nil || c.Status != CallAwaiting {
		return nil
	}
	pin := &c.Pack.Pin
	p := &ApprovalPack{Space: pin.Space, Version: pin.Version, Hash: pin.Hash.String(), Seq: pin.Seq, Signer: c.Pack.Signer}
	m := s.Manifest(pin.Hash)
	for i := range m.Tools {
		p.Tools = append(p.Tools, m.Tools[i].ToolID)
	}
	for _, need := range m.AllNeeds() {
		if name, ok := strings.CutPrefix(need, "secret:"); ok {
			p.Secrets = append(p.Secrets, strings.TrimSuffix(name, "?"))
		}
	}
	for _, i := range m.Texts() {
		f := &m.Files[i]
		p.Prompt = append(p.Prompt, ApprovalFile{Path: f.Path, Ref: codec.Ref{Hash: f.Ref.Hash}.String(), Size: f.Size})
	}
	return p
}

// cut removes the lists.
func (p *ApprovalPack) cut() { p.Tools, p.Secrets, p.Prompt, p.Cut = nil, nil, nil, true }

// bytes is at least the size of the lists as JSON.
func (p *ApprovalPack) bytes() (n int) {
	for _, text := range slices.Concat(p.Tools, p.Secrets) {
		n += len(text) + 8
	}
	for i := range p.Prompt {
		n += jsonTextBytesMax(p.Prompt[i].Path) + 160
	}
	return n
}

// ReadPack returns the manifest of the pack that a waiting call enables; nil if the
// call does not wait, or enables none.
func (s *State) ReadPack(call string) *space.Manifest {
	p, ok := parseName(call)
	t := s.Turn
	if !ok || p.kind != kindTool || t == nil || t.Batch == nil || p.run != t.Run || p.turn != t.Number || int(p.n) >= len(t.Batch.Calls) {
		return nil
	}
	if c := &t.Batch.Calls[p.n]; c.Status == CallAwaiting && c.Pack != nil {
		return s.Manifest(c.Pack.Pin.Hash)
	}
	return nil
}
