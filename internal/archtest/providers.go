package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"github.com/refold/refold/internal/llm/provider"
)

// checkProviders: no value in shipped code is a provider's name, a target of it or
// one of its variables. Package provider has a row for each provider, from which
// they derive. Texts for people may have them, as examples.
func (l laws) checkProviders(t *tree) (complaints []string) {
	for _, p := range t.pkgs {
		for _, f := range p.shipped() {
			if spares(l.naming, f.path) {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				lit, ok := n.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(lit.Value); err == nil && namesProvider(text) {
					complaints = append(complaints, t.at(lit, "spells %q: derive it from package internal/llm/provider", text))
				}
				return true
			})
		}
	}
	return complaints
}

func namesProvider(text string) bool {
	return slices.ContainsFunc(provider.All, func(p provider.Provider) bool {
		return strings.TrimPrefix(text, "llm/") == p.Kind || text == p.KeyVariable() || text == p.BaseURLVariable()
	})
}
