package main

import (
	"fmt"
	"log/slog"
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
	if p.LacksKey(provider.Server{BaseURL: c.BaseURL, Key: c.Key}) {
		return nil, fmt.Errorf("no key: set %s, or name its file with --key-file %s=FILE; %s refuses requests without one", p.KeyVariable(), of.name, p.BaseURL)
	}
	return constructors[of.kind](c, f, log)
}

// modelConfig returns the address and key of a model. A server that --model itself
// names gets only its own key, which --key-file names.
func modelConfig(p provider.Provider, of offer, f *flags, env settings.Environment) (endpoint.Config, error) {
	c := endpoint.Config{Idle: f.ModelIdle, FirstByte: f.FirstByte}
	if of.file != "" && !strings.HasPrefix(of.file, "http://") && !strings.HasPrefix(of.file, "https://") {
		return c, fmt.Errorf("%q is not an address: write %s, or %s:https://HOST/… for another server", of.file, of.kind, of.kind)
	}
	at := p.Server(func(name string) string { return env[name] }, of.file)
	c.BaseURL, c.Key = at.BaseURL, at.Key
	if file, own := f.KeyFiles[of.name]; own {
		var err error
		if c.Key, err = provider.ReadKey(file); err != nil {
			return c, fmt.Errorf("--key-file %s=%s: %w", of.name, file, err)
		}
	}
	return c, nil
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
