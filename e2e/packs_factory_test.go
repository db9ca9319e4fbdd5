package e2e_test

// Factory packs under generated roles: one user reads the pack and carries its
// tools out, and another one serves the session tools.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/bridge"
	"github.com/refold/refold/bridge/function"
)

const factoryRoles = `
tenants:
  refold:
    session-actors: [actor]
    admins: [admin]
    operators: [operator]
    publishers: [ci]
    models: {models: [scripted]}
    tools: {models: [refold], crm: [crm-v1]}
    space-readers: {crm: [crm], spaces: [files]}
`

// factoryScript lists packs, enables one and calls its tool.
const factoryScript = `
turns:
  - shown: {tools: {include: [extensions_list, extensions_enable], exclude: [crm_find]}}
    calls: [{tool: extensions_list}, {tool: extensions_list, arguments: {includeUnavailable: true}}]
  - shown:
      results:
        - {tool: extensions_list, error: false, lacks: '"shop"', text: ['"loadedPacks":[]', '{"name":"crm","category":"sales","displayName":"Customers","description":"Finds customers.","requiredSecrets":["CRM_KEY"],"available":true}']}
        - {tool: extensions_list, error: false, text: ['"name":"crm"', '"name":"shop"', '"available":false']}
    calls: [{tool: extensions_enable, arguments: {extension: crm}}]
  - shown: {tools: {include: [crm_find]}, results: [{tool: extensions_enable, error: false, text: crm.find}]}
    calls: [{tool: crm_find, arguments: {customer: ann}}]
  - shown: {results: [{tool: crm_find, error: false, text: found ann with 12}]}
    say: Found.
`

// crmPack is a version of a pack; its tool tells how long its secret is.
func crmPack(version string) bridge.Pack {
	type question struct {
		Customer string `json:"customer"`
	}
	find := func(ctx context.Context, q question) (string, error) {
		call, _ := function.CallOf(ctx)
		secret, ok := call.Secret("CRM_KEY")
		if !ok {
			return "", errors.New("there is no secret")
		}
		return fmt.Sprintf("found %s with %d", q.Customer, len(secret)), nil
	}
	return bridge.Pack{
		Name: "crm", Version: version, Category: "sales", DisplayName: "Customers", Description: "Finds customers.",
		Tools: []*function.Function{function.New("crm.find", find, function.Needs("secret:CRM_KEY"))},
	}
}

func TestOneUserServesAFactoryPack(t *testing.T) {
	t.Parallel()
	g := writeRoles(t, factoryRoles)
	g.startServer()
	pack := crmPack("1.4.2")
	hash, err := pack.Hash()
	if err != nil {
		t.Fatal(err)
	}
	model := list{"model"}
	record := spaceRecord(
		object{"space": "crm", "kind": "pack", "digests": list{hash}, "attach": model},
		object{"space": "shop", "kind": "pack", "target": "files", "digests": list{hash}, "attach": model},
	)
	record["policy"] = object{"approval": list{object{"decision": "allow", "tools": list{"refold.extensions.enable"}}}}
	s := g.start(record)
	startDaemon(t, "bridge", g.daemon("models", "--model", "scripted=scripted:"+writeFile(t, "script.yaml", factoryScript))...)
	serveBridge(t, bridge.Options{
		URL: g.plain, Context: g.file("crm", "context.json"), Name: "crm", Grace: time.Second,
		Secrets: []bridge.Secrets{bridge.Secret("CRM_KEY", func() (string, error) { return "twelve-bytes", nil })},
	}, func(b *bridge.Bridge) error { return b.Pack(pack) })
	s.run(session.DoorIn, "s1", "Find ann.", nil)
	s.wantEnd("s1", 1, session.Completed, "")
	g.wantNone()
}
