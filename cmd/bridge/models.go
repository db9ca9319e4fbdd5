package main

import (
	"cmp"
	"errors"
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
	"github.com/refold/refold/internal/llm/recorded"
	"github.com/refold/refold/internal/llm/scripted"
)

// What --model can name.
const (
	kindOpenAI     = "openai"
	kindOpenAIChat = "openai-chat"
	kindAnthropic  = "anthropic"
	kindGemini     = "gemini"
	kindScripted   = "scripted"
	kindRecorded   = "recorded"
)

// provider is a kind of model that is asked over the network.
type provider struct {
	flag     string // how its flags begin
	variable string // of the environment, that holds the key
	baseURL  string // its own address
	open     func(c endpoint.Config, f *flags, log *slog.Logger) (executor.Model, error)
}

func providers() map[string]provider {
	return map[string]provider{
		kindOpenAI: {
			flag: "openai", variable: keyVariable, baseURL: openai.DefaultBaseURL,
			open: func(c endpoint.Config, f *flags, log *slog.Logger) (executor.Model, error) {
				return openai.New(openai.Config{Config: c, Whole: f.OpenAIWhole}, log)
			},
		},
		kindOpenAIChat: {
			flag: "openai", variable: keyVariable, baseURL: openai.DefaultBaseURL,
			open: func(c endpoint.Config, f *flags, log *slog.Logger) (executor.Model, error) {
				return openai.New(openai.Config{Config: c, Whole: f.OpenAIWhole, Chat: true}, log)
			},
		},
		kindAnthropic: {
			flag: "anthropic", variable: "ANTHROPIC_API_KEY", baseURL: anthropic.DefaultBaseURL,
			open: func(c endpoint.Config, _ *flags, log *slog.Logger) (executor.Model, error) {
				return anthropic.New(c, log)
			},
		},
		kindGemini: {
			flag: "gemini", variable: "GEMINI_API_KEY", baseURL: gemini.DefaultBaseURL,
			open: func(c endpoint.Config, _ *flags, log *slog.Logger) (executor.Model, error) { return gemini.New(c, log) },
		},
	}
}

// errNoModel lists the models that there are.
var errNoModel = errors.New("no such model: openai, openai-chat, anthropic, gemini, scripted:FILE or recorded:FILE")

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
	p, ok := providers()[of.kind]
	if !ok {
		return nil, errNoModel
	}
	c, err := p.config(of, f, env)
	if err != nil {
		return nil, err
	}
	return p.open(c, f, log)
}

// config says whom a model of the provider's asks. A server that --model itself
// names is sent no key but its own, which --key-file names.
func (p provider) config(of offer, f *flags, env settings.Environment) (endpoint.Config, error) {
	c := endpoint.Config{BaseURL: of.file, Idle: f.ModelIdle}
	if of.file != "" && !strings.HasPrefix(of.file, "http://") && !strings.HasPrefix(of.file, "https://") {
		return c, fmt.Errorf("%q is no address: say %s, or %s:https://HOST/… for another server than the one of --%s-base-url", of.file, of.kind, of.kind, p.flag)
	}
	var err error
	file, own := f.KeyFiles[of.name]
	switch {
	case own:
		c.Key, err = readKey("--key-file "+of.name+"="+file, file)
	case of.file != "":
	default:
		c.Key, err = p.key(f, env)
	}
	if of.file == "" {
		c.BaseURL = f.baseURL(p.flag)
	}
	return c, err
}

// key returns the provider's key, empty for none: servers on one's own machine
// ask for none.
func (p provider) key(f *flags, env settings.Environment) (string, error) {
	file := f.keyFile(p.flag)
	if file == "" {
		return env[p.variable], nil
	}
	return readKey("--"+p.flag+"-key-file", file)
}

// baseURL is what the flags say of a provider; empty: its own address.
func (f *flags) baseURL(provider string) string {
	return map[string]string{"openai": f.OpenAIBaseURL, "anthropic": f.AnthropicBaseURL, "gemini": f.GeminiBaseURL}[provider]
}

// keyFile is what the flags say of a provider.
func (f *flags) keyFile(provider string) string {
	return map[string]string{"openai": f.OpenAIKeyFile, "anthropic": f.AnthropicKeyFile, "gemini": f.GeminiKeyFile}[provider]
}

// readKey returns the key that a file holds. flag is the flag that named it.
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

// announceModels logs the server of each model, and whether it has a key.
func announceModels(f *flags, env settings.Environment) (attrs []any) {
	for _, text := range f.Models {
		of := parseOffer(text)
		p, ok := providers()[of.kind]
		if !ok {
			continue
		}
		// Values that can't be read were reported before.
		c, _ := p.config(of, f, env)
		name := strings.ReplaceAll(of.name, "-", "_")
		attrs = append(attrs, name+"_base_url", cmp.Or(c.BaseURL, p.baseURL), name+"_key_given", c.Key != "")
	}
	return attrs
}
