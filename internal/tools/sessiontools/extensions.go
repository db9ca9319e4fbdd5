package sessiontools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/space"
)

// pack is an applied pack in the results of extensions_list and extensions_status.
type pack struct {
	Key         string `json:"key"` // id:<name>
	Name        string `json:"name"`
	Version     string `json:"version"`
	Identifier  string `json:"identifier"`            // <name>@<version>
	PackageName string `json:"packageName,omitempty"` // for source package
	Module      string `json:"module,omitempty"`      // for source module
	LoadedAt    string `json:"loadedAt"`              // RFC 3339
}

// offer is a pack that a model may enable.
type offer struct {
	Name            string   `json:"name"`
	PackageName     string   `json:"packageName,omitempty"` // for source package
	Category        string   `json:"category"`
	DisplayName     string   `json:"displayName"`
	Description     string   `json:"description"`
	RequiredSecrets []string `json:"requiredSecrets"`
	Available       bool     `json:"available"` // a bridge can read it now
}

// Packs finds packs that a session has not adopted.
type Packs interface {
	// AskReader requests from a bridge that reads the spaces of a target what it
	// would read now of a pack. It is an error if that can't be read, or if the
	// trust that is asked for does not admit it.
	AskReader(ctx context.Context, target string, asked executor.SpaceAsked) (executor.SpaceOffer, error)
	// PublishedPacks returns the newest version that trust admits of each
	// published pack whose name begins with prefix.
	PublishedPacks(ctx context.Context, prefix string, trust space.Trust) ([]executor.SpaceOffer, error)
}

// offersMax is how many packs extensions_list shows.
const offersMax = 64

// packs returns the applied packs of a call, in order.
func packs(call executor.Call) []pack {
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
		case sourcePackage:
			p.PackageName = s.Space
		case "module":
			p.Module = s.Space
		}
		out = append(out, p)
	}
	return out
}

func status(call executor.Call) (executor.Result, error) { return resultOf(packs(call)) }

// extensions lists the applied packs, and those that the model may enable:
// packs that grants name, and published ones that match a grant with a *. With
// all it includes packs that no bridge can read now. No text is shown of a
// manifest that its grant does not trust.
func (t *Tools) extensions(ctx context.Context, call executor.Call, all bool) (executor.Result, error) {
	out := struct {
		LoadedPacks []pack   `json:"loadedPacks"`
		Curated     []*offer `json:"curated"`
		Note        string   `json:"note,omitempty"`
	}{LoadedPacks: packs(call), Curated: []*offer{}, Note: "extensions_enable with dryRun tells the tools of a pack without loading it."}
	var asked []readerQuestion
	byName := map[string]*offer{}
	ask := func(g *executor.CallGrant, name string, known executor.SpaceOffer) {
		loaded := slices.ContainsFunc(out.LoadedPacks, func(p pack) bool { return p.Name == name })
		if loaded || byName[name] != nil || len(out.Curated) == offersMax {
			return
		}
		o := &offer{Name: name, Available: t.Packs == nil}
		if slices.Equal(g.Sources, []string{sourcePackage}) {
			o.PackageName = name
		}
		o.fill(known)
		byName[name], out.Curated = o, append(out.Curated, o)
		asked = append(asked, readerQuestion{cmp.Or(g.Target, name), executor.SpaceAsked{Space: name, Trust: g.Trust}})
	}
	for i := range call.Grants {
		g := &call.Grants[i]
		name, wildcard := strings.CutSuffix(g.Space, "*")
		if !slices.Contains(g.Attach, "model") {
			continue
		}
		if wildcard {
			out.Note += fmt.Sprintf(" Packs whose names begin with %q may be enabled too, with source %s.", name, strings.Join(g.Sources, " or "))
		}
		for _, p := range t.published(ctx, g) {
			if grantOf(call.Grants, p.Space) == g {
				ask(g, p.Space, p)
			}
		}
		if !wildcard {
			ask(g, name, executor.SpaceOffer{})
		}
	}
	for _, found := range t.askAll(ctx, asked) {
		if o := byName[found.Space]; o != nil {
			o.fill(found)
			o.Available = true
		}
	}
	out.Curated = slices.DeleteFunc(out.Curated, func(o *offer) bool { return !o.Available && !all })
	slices.SortFunc(out.Curated, func(a, b *offer) int { return strings.Compare(a.Name, b.Name) })
	return resultOf(out)
}

// fill fills in the known properties of a pack.
func (o *offer) fill(known executor.SpaceOffer) {
	o.Category, o.DisplayName, o.Description = known.Category, known.DisplayName, known.Description
	o.RequiredSecrets = append([]string{}, known.RequiredSecrets...)
	if known.Source == sourcePackage {
		o.PackageName = o.Name
	}
}

const sourcePackage = "package"

// published returns the published packs that match a grant.
func (t *Tools) published(ctx context.Context, g *executor.CallGrant) []executor.SpaceOffer {
	if t.Packs == nil || !slices.Contains(g.Sources, sourcePackage) {
		return nil
	}
	name, wildcard := strings.CutSuffix(g.Space, "*")
	found, err := t.Packs.PublishedPacks(ctx, name, g.Trust)
	if err != nil {
		return nil // their readers may still answer
	}
	return slices.DeleteFunc(found, func(o executor.SpaceOffer) bool { return !wildcard && o.Space != name })
}

// readerQuestion is a pack, and the target of its readers.
type readerQuestion struct {
	target string
	executor.SpaceAsked
}

// askAll requests all packs concurrently. Those of which no reader has a trusted
// manifest are missing from the result.
func (t *Tools) askAll(ctx context.Context, asked []readerQuestion) (found []executor.SpaceOffer) {
	if t.Packs == nil {
		return nil
	}
	var mu sync.Mutex
	var readers sync.WaitGroup
	for _, q := range asked {
		readers.Go(func() {
			offer, err := t.Packs.AskReader(ctx, q.target, q.SpaceAsked)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, offer)
		})
	}
	readers.Wait()
	return found
}

// grantOf returns the first grant that matches a pack.
func grantOf(grants []executor.CallGrant, name string) *executor.CallGrant {
	i := slices.IndexFunc(grants, func(g executor.CallGrant) bool {
		prefix, wildcard := strings.CutSuffix(g.Space, "*")
		return g.Space == name || wildcard && strings.HasPrefix(name, prefix)
	})
	if i < 0 {
		return nil
	}
	return &grants[i]
}

func resultOf(v any) (executor.Result, error) {
	text, err := json.Marshal(v)
	return executor.Result{Output: string(text)}, err
}
