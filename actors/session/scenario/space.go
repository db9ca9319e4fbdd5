package scenario

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// readSyncSettlement parses a reader's settlement of a sync.
func readSyncSettlement(effect, said string, view []session.View) (Action, error) {
	status, rest := cutWord(said)
	words, err := fields(rest)
	if err != nil {
		return Action{}, err
	}
	data := map[string]any{"effect": effect}
	typ := session.TypeWorkspaceSnapshotReady
	switch status {
	case "ready":
		if len(words) == 0 || !isJSON(words[0].text) {
			return Action{}, fmt.Errorf("scenario: settle %s ready {…}", effect)
		}
		manifest, err := fullManifest(words[0].text, spaceOf(view, effect))
		if err != nil {
			return Action{}, err
		}
		data["manifest"], words = manifest, words[1:]
	case "unchanged":
		typ = session.TypeWorkspaceSyncUnchanged
		data["hash"] = hashOf(view, spaceOf(view, effect))
	case "failed":
		typ = session.TypeWorkspaceSyncFailed
		if len(words) < 2 {
			return Action{}, fmt.Errorf("scenario: settle %s failed code \"detail\"", effect)
		}
		data["error"] = map[string]any{"code": words[0].text, "detail": words[1].text}
		words = words[2:]
	default:
		return Action{}, fmt.Errorf("scenario: settle %s ready {…} | unchanged | failed code \"detail\"", effect)
	}
	for _, w := range words {
		if w.key == "sign" {
			if data["signature"], err = signatureOf(data["manifest"], w.text); err != nil {
				return Action{}, err
			}
			continue
		}
		data[w.key] = valueOf(w)
	}
	a, err := event(session.DoorSpace, typ, data)
	a.Settles = effect
	return a, err
}

// fullManifest adds the fields that every manifest has, and makes files of paths:
// the content of each is its path.
func fullManifest(text, name string) (json.RawMessage, error) {
	m := map[string]any{"v": 1, "kind": "workspace", "space": name}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("scenario: a manifest: %w", err)
	}
	if files, ok := m["files"].([]any); ok {
		for i, f := range files {
			if p, ok := f.(string); ok {
				files[i] = map[string]any{"path": p, "ref": codec.RefOf([]byte(p)), "size": len(p), "media_type": mediaType(p)}
			}
		}
	}
	return json.Marshal(m)
}

// signatureOf signs a manifest, given as JSON, with the seed of an nkey.
func signatureOf(manifest any, seed string) (map[string]any, error) {
	key, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, fmt.Errorf("scenario: sign: %w", err)
	}
	text, _ := manifest.(json.RawMessage)
	raw, err := codec.FromJSON(text)
	if err != nil {
		return nil, fmt.Errorf("scenario: sign: %w", err)
	}
	sig, err := key.Sign(space.SignedText(raw))
	if err != nil {
		return nil, fmt.Errorf("scenario: sign: %w", err)
	}
	public, err := key.PublicKey()
	return map[string]any{"key": public, "sig": base64.RawURLEncoding.EncodeToString(sig)}, err
}

func mediaType(p string) string {
	if path.Ext(p) == ".png" {
		return "image/png"
	}
	return "text/markdown"
}

func spaceOf(view []session.View, effect string) string {
	if len(view) > 0 {
		for _, s := range view[0].Syncs {
			if s.Effect == effect {
				return s.Space
			}
		}
	}
	return ""
}

// hashOf returns the hash of the first manifest of a space: staged, pending,
// applied.
func hashOf(view []session.View, name string) string {
	if len(view) == 0 {
		return ""
	}
	all := append(append([]session.ViewSpace{}, view[0].Staged...), view[0].Pending...)
	if view[0].Workspace != nil {
		all = append(all, *view[0].Workspace)
	}
	all = append(all, view[0].Packs...)
	for _, s := range all {
		if s.Space == name {
			return s.Hash
		}
	}
	return ""
}

func spacesText(v session.View, _ []uint64) string {
	var b strings.Builder
	line := func(what string, s *session.ViewSpace) {
		b.WriteString(what + " " + s.Space + " " + short(s.Hash))
		for _, part := range []struct{ name, text string }{{"version", s.Version}, {"mode", string(s.Mode)}, {"prompt", s.PromptPack}, {"catalog", s.ToolCatalog}, {"lacks", strings.Join(s.Lacks, ",")}} {
			if part.text != "" {
				b.WriteString(" " + part.name + "=" + part.text)
			}
		}
		b.WriteByte('\n')
	}
	if v.Workspace != nil {
		line("applied", v.Workspace)
	}
	for i := range v.Packs {
		line("pack", &v.Packs[i])
	}
	for i := range v.Pending {
		line("pending", &v.Pending[i])
	}
	for i := range v.Staged {
		line("staged", &v.Staged[i])
	}
	for _, s := range v.Syncs {
		b.WriteString("open " + s.Effect + " " + s.Space + " until " + span(s.Deadline-v.Clock) + "\n")
	}
	return cmp.Or(b.String(), "none\n")
}

func noticeOfSpace(typ string, d *notice) string {
	line := typ + " " + d.Workspace
	for _, part := range []string{short(d.Hash), d.Effect, d.Outcome, d.Mode, d.Code} {
		if part != "" {
			line += " " + part
		}
	}
	if d.By != "" {
		line += " by " + d.By + " " + short(d.ByHash)
	}
	for _, id := range d.ToolsAdded {
		line += " +" + id
	}
	for _, id := range d.ToolsRemoved {
		line += " -" + id
	}
	if d.Detail != "" {
		line += ": " + oneLine(d.Detail)
	}
	for _, p := range append(d.Problems, d.Warnings...) {
		line += "\n    " + p.String()
	}
	return line
}

// heldText draws the parts that change without a notice: pending and staged spaces.
func heldText(v session.View) string {
	v.Syncs, v.Workspace, v.Packs = nil, nil, nil
	return strings.ReplaceAll(strings.TrimSpace(spacesText(v, nil)), "\n", ", ")
}

func promptText(v session.View, _ []uint64) string {
	if v.Turn == nil || v.Turn.Prompt == nil {
		return "none\n"
	}
	var b strings.Builder
	b.WriteString("mark " + short(v.Turn.Prompt.Mark) + "\n")
	for _, p := range v.Turn.Prompt.Parts {
		name := p.Space + ":" + p.Path
		switch {
		case len(p.Skills) > 0:
			name = p.Space + ": " + strings.Join(p.Skills, ", ")
		case p.Path == "":
			name = short(p.Hash)
		}
		b.WriteString(cmp.Or(string(p.Role), "system") + " " + name + "\n")
	}
	return b.String()
}

func skillsText(v session.View, _ []uint64) string {
	var b strings.Builder
	for _, s := range v.Skills {
		line := s.Space + " " + s.Skill
		if s.Active {
			line += " active"
		}
		if s.Why != "" {
			line += ": " + s.Why
		}
		b.WriteString(line + "\n")
	}
	return cmp.Or(b.String(), "none\n")
}
