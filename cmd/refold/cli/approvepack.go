package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/refold/refold/client"
	"github.com/refold/refold/internal/transcript"
)

// approvalPackJSON is the pack that a waiting call would enable, as JSON.
type approvalPackJSON struct {
	Space       string              `json:"space"`
	Version     string              `json:"version"`
	Hash        string              `json:"hash"`             // of the manifest
	Signer      string              `json:"signer,omitempty"` // absent: the grant names the hash
	Description string              `json:"description,omitempty"`
	Tools       []approvalToolJSON  `json:"tools"`
	Secrets     []string            `json:"secrets"`
	Skills      []approvalSkillJSON `json:"skills"`
	Texts       []approvalTextJSON  `json:"texts"` // of its prompt, then those of its skills
}

type approvalToolJSON struct {
	ToolID      string `json:"tool_id"`
	ToolName    string `json:"tool_name"`
	Description string `json:"description"`
	Target      string `json:"target"` // whose bridges carry it out
}

type approvalSkillJSON struct {
	Skill       string `json:"skill"`
	Description string `json:"description"`
}

type approvalTextJSON struct {
	Path   string `json:"path"`
	Ref    string `json:"ref"`
	Text   string `json:"text"`
	Unread string `json:"unread,omitempty"` // why there is no text
}

func packJSONOf(p *client.ApprovalPack) *approvalPackJSON {
	if p == nil {
		return nil
	}
	m := p.Manifest
	out := &approvalPackJSON{
		Space: m.Space, Version: m.Version, Hash: p.Hash, Signer: p.Signer, Description: m.Description,
		Tools: []approvalToolJSON{}, Secrets: []string{}, Skills: []approvalSkillJSON{}, Texts: []approvalTextJSON{},
	}
	for i := range m.Tools {
		t := &m.Tools[i]
		out.Tools = append(out.Tools, approvalToolJSON{t.ToolID, t.ToolName, t.Description, t.Executor.Target})
	}
	for _, need := range m.AllNeeds() {
		if name, ok := strings.CutPrefix(need, "secret:"); ok {
			out.Secrets = append(out.Secrets, name)
		}
	}
	for i := range m.Skills {
		out.Skills = append(out.Skills, approvalSkillJSON{m.Skills[i].Skill, m.Skills[i].Description})
	}
	for _, t := range p.Texts {
		text := approvalTextJSON{Path: t.Path, Ref: t.Ref.String(), Text: t.Text}
		if t.Unread != nil {
			text.Unread = t.Unread.Error()
		}
		out.Texts = append(out.Texts, text)
	}
	return out
}

// showPack prints a pack for the person who decides over it: in full, with nothing
// hidden.
func showPack(out io.Writer, p *client.ApprovalPack) {
	all := packJSONOf(p)
	fmt.Fprintf(out, "  pack %s %s\n  manifest %s, %s\n", all.Space, all.Version, all.Hash,
		cmp.Or(transcript.Prefixed("signed by ", all.Signer), "which the grant names"))
	if all.Description != "" {
		fmt.Fprintf(out, "  description\n%s", quotedLines(all.Description))
	}
	for _, t := range all.Tools {
		fmt.Fprintf(out, "  tool %s, as %s, for %s\n%s", t.ToolID, visible(t.ToolName), t.Target, quotedLines(t.Description))
	}
	for _, name := range all.Secrets {
		fmt.Fprintf(out, "  secret %s\n", visible(name))
	}
	for _, s := range all.Skills {
		fmt.Fprintf(out, "  skill %s\n%s", s.Skill, quotedLines(s.Description))
	}
	for _, t := range all.Texts {
		fmt.Fprintf(out, "  text %s, %s\n%s", visible(t.Path), t.Ref, quotedLines(t.Text))
		if t.Unread != "" {
			fmt.Fprintf(out, "    can't be read: %s\n", t.Unread)
		}
	}
}

// quotedLines returns text with a bar before each line, so that it can't be taken
// for what surrounds it, and with invisible characters escaped.
func quotedLines(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("    | " + visible(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return out.String()
}

// unread returns an error if a text of a pack could not be shown.
func unread(p *client.ApprovalPack) error {
	if p == nil {
		return nil
	}
	for _, t := range p.Texts {
		if t.Unread != nil {
			return fmt.Errorf("not approved: %s of the pack %s can't be shown: %w", t.Path, p.Manifest.Space, t.Unread)
		}
	}
	return nil
}
