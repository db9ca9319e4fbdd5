package docs_test

import (
	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// fullKey returns a public nkey.
func fullKey() string {
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, make([]byte, 32))
	if err != nil {
		panic(err)
	}
	key, err := pair.PublicKey()
	if err != nil {
		panic(err)
	}
	return key
}

// supportManifest is the workspace of the session that reach leads.
func supportManifest() *space.Manifest {
	file := 0
	return &space.Manifest{
		Catalogs: []space.Catalog{{ToolCatalog: "default", Tools: []codec.Raw{space.Entry{Tool: "read_file"}.Raw(), space.Entry{Tool: "open_session"}.Raw()}}},
		Files:    []space.File{{MediaType: "text/markdown", Path: "a.md", Ref: codec.RefOf([]byte("a")), Size: 1}},
		Kind:     space.Workspace, Prompts: []space.Prompt{{Parts: []space.Part{{File: &file}}, PromptPack: "default"}},
		Skills: []space.Skill{{Description: "Pays back.", Needs: []string{"bin:jq"}, Skill: "refunds"}},
		Space:  "support", V: 1, Version: "1.4.2",
	}
}

// stagedManifest is what a sync of reach's session reads.
func stagedManifest() *space.Manifest {
	m := supportManifest()
	m.Description = "Another one."
	return m
}

// fullGrant is a grant that operators may bring with a sync; with a manifest it
// is one of the install record.
func fullGrant() spaces.Grant {
	return spaces.Grant{
		Digests: []string{supportManifest().Hash().String()}, Keys: []string{fullKey()}, Kind: space.Workspace,
		May:   []string{spaces.MayPrompt, spaces.MaySkills, spaces.MayResponseFormat, spaces.MayParams, spaces.MayRewords},
		RunMS: 60_000, Sources: []string{"module", "package", "factory"}, Space: "support", Target: "files", Version: "1",
	}
}

// packGrant is a grant of a pack, with all its fields but a manifest.
func packGrant() spaces.Grant {
	g := fullGrant()
	g.Kind, g.May, g.Attach, g.Targets = space.Pack, []string{spaces.MayPrompt, spaces.MaySkills}, []string{spaces.AttachOperator, spaces.AttachModel}, []string{"crm-v1"}
	return g
}

// embeddedGrant is the grant that brings the workspace of reach's session.
func embeddedGrant() spaces.Grant {
	return spaces.Grant{Manifest: supportManifest().Bytes(), Space: "support"}
}

// fullSpace is full for events about spaces.
func fullSpace(typ string) any {
	hash, by := supportManifest().Hash().String(), &space.Signature{Key: fullKey(), Sig: "AQ"}
	problems := []space.Problem{{Code: space.MissingFile, Detail: "there is no such file", File: "agent.workspace.json", Line: 3, Path: "prompts.default"}}
	switch typ {
	case session.TypeWorkspaceSyncRequested:
		grant := packGrant()
		return session.WorkspaceSyncRequested{
			Apply: spaces.ModeNextRun, Grant: &grant, Kind: grant.Kind, PromptPack: "short", ToolCatalog: "two", Version: "1.4", Workspace: "support",
		}
	case session.TypeWorkspaceApplyRequested:
		return session.WorkspaceApplyRequested{Hash: stagedManifest().Hash().String(), Mode: spaces.ModeNextStep, PromptPack: "default", ToolCatalog: "default", Workspace: "support"}
	case session.TypeWorkspaceDetached:
		return session.WorkspaceDetached{Kind: space.Workspace, Workspace: "support"}
	case session.TypeWorkspaceSnapshotReady:
		return session.WorkspaceSnapshotReady{
			Effect: "y1", Lacks: []string{"bin:jq"}, Manifest: stagedManifest().Bytes(), Output: &session.Content{Text: "loaded"}, Revision: "4f1c2d7", Signature: by, Source: "module",
		}
	case session.TypeWorkspaceSyncUnchanged:
		return session.WorkspaceSyncUnchanged{Effect: "y1", Hash: hash, Lacks: []string{"bin:jq"}, Output: &session.Content{Text: "loaded"}, Signature: by, Source: "module"}
	case session.TypeWorkspaceSyncFailed:
		return session.WorkspaceSyncFailed{Effect: "y1", Error: session.Fault{Code: "workspace_invalid", Detail: "see the problems", Retryable: true}, Problems: problems}
	}
	return nil
}
