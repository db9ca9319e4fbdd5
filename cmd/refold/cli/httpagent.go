package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold"
	"github.com/refold/refold/internal/inside"
	"github.com/refold/refold/internal/yamlfile"
)

// agentFile is an agent of refold serve: the file helper.yaml is the agent helper. Other
// processes serve its model and its tools.
type agentFile struct {
	Model   string         `yaml:"model"`   // provider/model
	System  string         `yaml:"system"`  // system text; the workspace's prompt, if absent
	Tools   *[]string      `yaml:"tools"`   // of the install record's registry, in this order; absent: by the profile
	Profile string         `yaml:"profile"` // of the install record; absent: its default
	Config  map[string]any `yaml:"config"`  // other fields of a RunConfig
}

// defineAgents defines the agents of a directory. The error has the file, the line and
// the column.
func defineAgents(ctx context.Context, rt *refold.Runtime, dir string) error {
	if dir == "" {
		return nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	switch {
	case err != nil:
		return fmt.Errorf("--agents %s: %w", dir, err)
	case len(files) == 0:
		return fmt.Errorf("--agents %s: there is no file *.yaml: put one there for each agent", dir)
	}
	inner := inside.Of(rt)
	registry, err := inner.Client().InstallRegistry(ctx)
	if err != nil {
		return fmt.Errorf("--agents %s: %w", dir, err)
	}
	for _, file := range files {
		text, err := yamlfile.Read(file)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		a, config, err := parseAgent(file, text)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if err := inner.Define(name, config, registry); err != nil {
			return yamlfile.Place(file, text, a.keyOf(err), err)
		}
	}
	return nil
}

// parseAgent returns an agent's file, and its config as JSON.
func parseAgent(file string, text []byte) (a agentFile, config json.RawMessage, err error) {
	d := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict(), yaml.DisallowUnknownField())
	if err := d.Decode(&a); err != nil {
		return a, nil, fmt.Errorf("%s: %w", file, yamlfile.Explain(err, &a))
	}
	provider, model, ok := strings.Cut(a.Model, "/")
	if !ok || provider == "" || model == "" {
		return a, nil, yamlfile.Place(file, text, "model", fmt.Errorf("model: %q is no provider and model, such as openai/gpt-4.1", a.Model))
	}
	all := maps.Clone(a.Config)
	if all == nil {
		all = map[string]any{}
	}
	for _, own := range []struct {
		key   string
		value any
		given bool
	}{
		{"provider", provider, true}, {"model", model, true}, {"context", map[string]any{}, a.Config["context"] == nil}, {"system", a.System, a.System != ""},
		{"active_tools", a.Tools, a.Tools != nil}, {"profile", a.Profile, a.Profile != ""},
	} {
		if _, twice := all[own.key]; twice && own.given {
			return a, nil, yamlfile.Place(file, text, "config."+own.key, fmt.Errorf("config.%s: the file says it outside of the config, too", own.key))
		}
		if own.given {
			all[own.key] = own.value
		}
	}
	if tokens := contextOf(model).Tokens; tokens > 0 && a.Config["context"] == nil {
		all["context"] = map[string]any{"tokens": tokens}
	}
	config, err = json.Marshal(all)
	if err != nil {
		return a, nil, yamlfile.Place(file, text, "config", fmt.Errorf("config: %w", err))
	}
	return a, config, nil
}

// keyOf returns the key of the file that an error about a config is about: the error names
// a field of the config.
func (a *agentFile) keyOf(err error) string {
	names := func(field string) bool {
		return strings.Contains(err.Error(), "config."+field) || strings.Contains(err.Error(), ": "+field)
	}
	for key := range a.Config {
		if names(key) {
			return "config." + key
		}
	}
	for field, key := range map[string]string{"active_tools": "tools", "profile": "profile", "system": "system"} {
		if names(field) {
			return key
		}
	}
	return "model"
}
