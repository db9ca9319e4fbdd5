package docs_test

import (
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/refold/refold/actors/session"
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

// fullManifest is a manifest with all its fields. It is valid in no space.
func fullManifest(t *testing.T) space.Manifest {
	t.Helper()
	m, file := *supportManifest(), 0
	m.Catalogs[0].ToolChoice = "auto"
	m.Category, m.Description, m.DisplayName, m.Scanned = "help", "Help.", "Support", true
	m.Context = []space.Group{{Files: []int{0}, Group: "docs"}}
	m.Defaults = &space.Defaults{PromptPack: "default", ToolCatalog: "default"}
	m.LeftOut = []space.LeftOut{{Code: space.BadFrontmatter, File: "skills/bad/SKILL.md"}}
	m.Needs = []string{"secret:KEY"}
	m.Prompts[0].Parts = []space.Part{{Context: "docs", File: &file, Role: "user", Skills: true, Vars: codec.Pairs{{Key: "run", Value: raw(t, "1")}}}}
	m.Prompts[0].Params, m.Prompts[0].ResponseFormat = raw(t, `{"seed":1}`), fullFormat(t)
	m.Skills = []space.Skill{{
		AllowedTools: []string{"shell"}, Description: "Pays back.", Files: []int{0}, Hidden: true, Body: 1, Info: codec.Pairs{{Key: "license", Value: raw(t, `"MIT"`)}},
		Needs: []string{"bin:jq?"}, Skill: "refunds",
	}}
	tool := fullTool(t)
	tool.Needs = []string{"secret:KEY"}
	m.Tools = append(m.Tools, tool)
	m.Words = []space.Word{{ArgsSchema: raw(t, `{"type":"object"}`), Description: "Looks up.", Tool: "crm.lookup"}}
	return m
}

// fullGrant is a grant that operators may bring with a sync; with a manifest it
// is one of the install record.
func fullGrant() session.Grant {
	return session.Grant{
		Digests: []string{supportManifest().Hash().String()}, Keys: []string{fullKey()}, Kind: space.Workspace,
		May:   []string{session.MayPrompt, session.MaySkills, session.MayResponseFormat, session.MayParams, session.MayRewords},
		RunMS: 60_000, Sources: []string{"module", "package", "factory"}, Space: "support", Target: "files", Version: "1",
	}
}

// packGrant is a grant of a pack, with all its fields but a manifest.
func packGrant() session.Grant {
	g := fullGrant()
	g.Kind, g.May, g.Attach, g.Targets = space.Pack, []string{session.MayPrompt, session.MaySkills}, []string{session.AttachOperator, session.AttachModel}, []string{"crm-v1"}
	return g
}

// embeddedGrant is the grant that brings the workspace of reach's session.
func embeddedGrant() session.Grant {
	return session.Grant{Manifest: supportManifest().Bytes(), Space: "support"}
}

// fullSpace is full for events about spaces.
func fullSpace(typ string) any {
	hash, by := supportManifest().Hash().String(), &session.Signature{Key: fullKey(), Sig: "AQ"}
	problems := []space.Problem{{Code: space.MissingFile, Detail: "there is no such file", File: "agent.workspace.json", Line: 3, Path: "prompts.default"}}
	switch typ {
	case session.TypeWorkspaceSyncRequested:
		grant := packGrant()
		return session.WorkspaceSyncRequested{
			Apply: session.ModeNextRun, Grant: &grant, Kind: grant.Kind, PromptPack: "short", ToolCatalog: "two", Version: "1.4", Workspace: "support",
		}
	case session.TypeWorkspaceApplyRequested:
		return session.WorkspaceApplyRequested{Hash: stagedManifest().Hash().String(), Mode: session.ModeNextStep, PromptPack: "default", ToolCatalog: "default", Workspace: "support"}
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

// spaceEnums are the lists of values of the schemas that spaces brought.
func spaceEnums(t *testing.T) map[string][]string {
	t.Helper()
	modes := []string{session.ModeNextRun, session.ModeNextStep, session.ModeImmediate}
	said := []string{space.RoleUser, space.RoleAssistant}
	shown := append([]string{session.PromptDocument, session.PromptImage, session.PromptSkills, session.PromptSkill}, said...)
	codes := constants(t, "space/problem.go", func(_, typ string) bool { return typ == "ProblemCode" })
	parts := []string{session.OnlyPrompts, session.OnlyTools, session.OnlyContext, session.OnlySkills}
	// What the code has as literals.
	sources := []string{"factory", "package", "module"}
	kinds, attach := []string{string(space.Workspace), string(space.Pack)}, []string{session.AttachOperator, session.AttachModel}
	return map[string][]string{
		"View#/$defs/turn/properties/prompt/properties/parts/items/properties/role": shown,
		"Generation#/properties/prompt/items/properties/role":                       shown,
		"Manifest#/properties/prompts/items/properties/parts/items/properties/role": said,
		"Manifest#/properties/kind":                                                 kinds,
		"Space#/properties/kind":                                                    kinds,
		"ToolCall#/properties/spaces/items/properties/kind":                         kinds,
		"WorkspaceApplied#/properties/kind":                                         kinds,
		"WorkspaceDetached#/properties/kind":                                        kinds,
		"WorkspaceSyncRequested#/properties/kind":                                   kinds,
		"WorkspaceFailed#/properties/kind":                                          kinds,
		"WorkspaceGone#/properties/kind":                                            kinds,
		"WorkspaceDisplaced#/properties/kind":                                       kinds,
		"WorkspaceStaged#/properties/kind":                                          kinds,
		"parts/Grant#/properties/kind":                                              kinds,
		"parts/Grant#/then/properties/may/items":                                    {session.MayPrompt, session.MaySkills},
		"parts/Grant#/properties/attach/items":                                      attach,
		"ToolCall#/properties/grants/items/properties/attach/items":                 attach,
		"ToolCall#/properties/grants/items/properties/sources/items":                sources,
		"Space#/properties/only/items":                                              parts,
		"WorkspaceSyncRequested#/properties/only/items":                             parts,
		"View#/$defs/space/properties/mode":                                         modes,
		"WorkspaceApplied#/properties/mode":                                         modes,
		"WorkspaceApplyRequested#/properties/mode":                                  modes,
		"WorkspaceSyncRequested#/properties/apply":                                  modes,
		"WorkspaceStaged#/properties/outcome":                                       {session.OutcomeStaged, session.OutcomeUnchanged, session.OutcomeDry},
		"WorkspaceSnapshotReady#/properties/source":                                 sources,
		"WorkspaceSyncUnchanged#/properties/source":                                 sources,
		"ToolCall#/properties/spaces/items/properties/source":                       sources,
		"parts/Grant#/properties/sources/items":                                     sources,
		"parts/Grant#/properties/may/items":                                         {session.MayPrompt, session.MaySkills, session.MayResponseFormat, session.MayParams, session.MayRewords},
		"parts/Problem#/properties/code":                                            codes,
	}
}

// fullTrust is a trust with all fields.
func fullTrust() *space.Trust {
	return &space.Trust{Digests: []string{supportManifest().Hash().String()}, Keys: []string{fullKey()}, Version: "1"}
}

// fullPack is a pack that a person is shown, with all fields.
func fullPack() *session.ApprovalPack {
	hash := supportManifest().Hash()
	return &session.ApprovalPack{
		Space: "crm", Version: "1.4.2", Hash: hash.String(), Seq: 4, Signer: fullKey(), Tools: []string{"crm.find"}, Secrets: []string{"CRM_KEY"},
		Prompt: []session.ApprovalFile{{Path: "persona.md", Ref: codec.Ref{Hash: hash}.String(), Size: 37}}, Cut: true,
	}
}
