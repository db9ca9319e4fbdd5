package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/refold/refold/bridge/executor"
	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/llm/anthropic"
	"github.com/refold/refold/internal/llm/endpoint"
	"github.com/refold/refold/internal/llm/gemini"
	"github.com/refold/refold/internal/llm/openai"
	"github.com/refold/refold/internal/llm/provider"
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/internal/llm/scripted"
)

// The values of --model that need no network. Package provider has the others.
const (
	kindScripted = "scripted"
	kindRecorded = "recorded"
)

// constructors open the models of package provider, by kind.
var constructors = map[string]func(c endpoint.Config, f *flags, log *slog.Logger) (executor.Model, error){
	"openai": func(c endpoint.Config, f *flags, log *slog.Logger) (executor.Model, error) {
		return openai.New(openai.Config{Config: c, Whole: f.OpenAIWhole}, log)
	},
	"openai-chat": func(c endpoint.Config, f *flags, log *slog.Logger) (executor.Model, error) {
		return openai.New(openai.Config{Config: c, Whole: f.OpenAIWhole, Chat: true}, log)
	},
	"anthropic": func(c endpoint.Config, _ *flags, log *slog.Logger) (executor.Model, error) {
		return anthropic.New(c, log)
	},
	"gemini": func(c endpoint.Config, _ *flags, log *slog.Logger) (executor.Model, error) { return gemini.New(c, log) },
}

func openModel(of offer, f *flags, env settings.Environment, log *slog.Logger) (executor.Model, error) {
	if of.file == "" && (of.kind == kindScripted || of.kind == kindRecorded) {
		return nil, fmt.Errorf("name the file: %s:FILE", of.kind)
	}
	switch of.kind {
	case kindScripted:
		script, err := scripted.Open(of.file)
		if err != nil {
			return nil, err
		}
		return scripted.NewModel(script), nil
	case kindRecorded:
		recording, err := recorded.Load(of.file)
		if err != nil {
			return nil, err
		}
		return recorded.NewModel(recording), nil
	}
	p, ok := provider.Of(of.kind)
	if !ok {
		return nil, fmt.Errorf("no such model: %s, scripted:FILE or recorded:FILE", provider.Kinds(""))
	}
	c, err := modelConfig(p, of, f, env)
	if err != nil {
		return nil, err
	}
	if c.Key == "" && c.BaseURL == p.BaseURL {
		return nil, fmt.Errorf("no key: set %s, or name its file with --key-file %s=FILE; %s refuses requests without one", p.KeyVariable(), of.name, p.BaseURL)
	}
	return constructors[of.kind](c, f, log)
}

// modelConfig returns the address and key of a model. A server that --model itself
// names gets only its own key, which --key-file names.
func modelConfig(p provider.Provider, of offer, f *flags, env settings.Environment) (endpoint.Config, error) {
	c := endpoint.Config{BaseURL: of.file, Idle: f.ModelIdle, FirstByte: f.FirstByte}
	if of.file == "" {
		c.BaseURL, c.Key = cmp.Or(env[p.BaseURLVariable()], p.BaseURL), env[p.KeyVariable()]
	} else if !strings.HasPrefix(of.file, "http://") && !strings.HasPrefix(of.file, "https://") {
		return c, fmt.Errorf("%q is not an address: write %s, or %s:https://HOST/… for another server", of.file, of.kind, of.kind)
	}
	var err error
	if file, own := f.KeyFiles[of.name]; own {
		c.Key, err = readKey("--key-file "+of.name+"="+file, file)
	}
	return c, err
}

// readKey returns the key in a file. flag is the flag that named it.
func readKey(flag, file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	key := strings.TrimSpace(string(data))
	if key == "" {
		return "", fmt.Errorf("%s: %s is empty", flag, file)
	}
	return key, nil
}

// announceModels returns the address of each model, and whether it has a key.
func announceModels(f *flags, env settings.Environment) (attrs []any) {
	for _, text := range f.Models {
		of := parseOffer(text)
		p, ok := provider.Of(of.kind)
		if !ok {
			continue
		}
		// Unreadable values were reported before.
		c, _ := modelConfig(p, of, f, env)
		name := strings.ReplaceAll(of.name, "-", "_")
		attrs = append(attrs, name+"_base_url", c.BaseURL, name+"_key_given", c.Key != "")
	}
	return attrs
}
