package sessiontools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/refold/refold/bridge"
)

// pack is an applied pack as extensions_list and extensions_status tell it.
type pack struct {
	Key         string `json:"key"` // id:<name>
	Name        string `json:"name"`
	Version     string `json:"version"`
	Identifier  string `json:"identifier"`            // <name>@<version>
	PackageName string `json:"packageName,omitempty"` // of source package
	Module      string `json:"module,omitempty"`      // of source module
	LoadedAt    string `json:"loadedAt"`              // RFC 3339
}

// offer is a pack that a model may enable.
type offer struct {
	Name        string `json:"name"`
	PackageName string `json:"packageName,omitempty"`
	Available   bool   `json:"available"` // a bridge reads it at this moment
}

// packs returns the applied packs of a call, in order.
func packs(call bridge.Call) []pack {
	out := []pack{}
	for _, s := range call.Spaces {
		if s.Kind != "pack" {
			continue
		}
		p := pack{
			Key: "id:" + s.Space, Name: s.Space, Version: s.Version, Identifier: s.Space + "@" + s.Version,
			LoadedAt: time.UnixMilli(s.At).UTC().Format(time.RFC3339),
		}
		switch s.Source {
		case "package":
			p.PackageName = s.Space
		case "module":
			p.Module = s.Space
		}
		out = append(out, p)
	}
	return out
}

// status tells which packs are applied.
func status(call bridge.Call) (bridge.Result, error) { return resultOf(packs(call)) }

// extensions tells which packs are applied, and which the model may enable: those
// that grants name. What a grant with a * matches is not known until it is read.
func (t *Tools) extensions(call bridge.Call, all bool) (bridge.Result, error) {
	out := struct {
		LoadedPacks []pack  `json:"loadedPacks"`
		Curated     []offer `json:"curated"`
		Note        string  `json:"note,omitempty"`
	}{LoadedPacks: packs(call), Curated: []offer{}, Note: "extensions_enable with dryRun tells the tools of a pack without loading it."}
	for _, g := range call.Grants {
		name, wildcard := strings.CutSuffix(g.Space, "*")
		loaded := slices.ContainsFunc(out.LoadedPacks, func(p pack) bool { return p.Name == name })
		switch {
		case !slices.Contains(g.Attach, "model") || loaded && !wildcard:
		case wildcard:
			out.Note += fmt.Sprintf(" Packs whose names begin with %q may be enabled too, with source %s.", name, strings.Join(g.Sources, " or "))
		default:
			o := offer{Name: name, Available: t.Reads == nil || t.Reads(cmp.Or(g.Target, name))}
			if slices.Equal(g.Sources, []string{"package"}) {
				o.PackageName = name
			}
			if o.Available || all {
				out.Curated = append(out.Curated, o)
			}
		}
	}
	slices.SortFunc(out.Curated, func(a, b offer) int { return strings.Compare(a.Name, b.Name) })
	return resultOf(out)
}

// resultOf returns a value as JSON.
func resultOf(v any) (bridge.Result, error) {
	text, err := json.Marshal(v)
	return bridge.Result{Output: string(text)}, err
}
