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

// The values of --model.
const (
	kindOpenAI     = "openai"
	kindOpenAIChat = "openai-chat"
	kindAnthropic  = "anthropic"
	kindGemini     = "gemini"
	kindScripted   = "scripted"
	kindRecorded   = "recorded"
)

// provider is a kind of model that is called over the network.
type provider struct {
	flag     string // the prefix of its flags
	variable string // the environment variable of its key
	baseURL  string // its default address
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

// errNoModel lists the values of --model.
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
	if c.Key == "" && (c.BaseURL == "" || c.BaseURL == p.baseURL) {
		return nil, fmt.Errorf("no key: set %s, or name its file with --%s-key-file; %s refuses requests without one", p.variable, p.flag, p.baseURL)
	}
	return p.open(c, f, log)
}

// config returns the address and key of a model. A server that --model itself
// names gets only its own key, which --key-file names.
func (p provider) config(of offer, f *flags, env settings.Environment) (endpoint.Config, error) {
	c := endpoint.Config{BaseURL: of.file, Idle: f.ModelIdle, FirstByte: f.FirstByte}
	if of.file != "" && !strings.HasPrefix(of.file, "http://") && !strings.HasPrefix(of.file, "https://") {
		return c, fmt.Errorf("%q is not an address: write %s, or %s:https://HOST/… for another server than the one of --%s-base-url", of.file, of.kind, of.kind, p.flag)
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

// key returns the provider's key, or "": only servers other than the provider's own
// need none.
func (p provider) key(f *flags, env settings.Environment) (string, error) {
	file := f.keyFile(p.flag)
	if file == "" {
		return env[p.variable], nil
	}
	return readKey("--"+p.flag+"-key-file", file)
}

// baseURL returns the address that a provider's flag sets; "": the default one.
func (f *flags) baseURL(provider string) string {
	return map[string]string{"openai": f.OpenAIBaseURL, "anthropic": f.AnthropicBaseURL, "gemini": f.GeminiBaseURL}[provider]
}

// keyFile returns the key file that a provider's flag names.
func (f *flags) keyFile(provider string) string {
	return map[string]string{"openai": f.OpenAIKeyFile, "anthropic": f.AnthropicKeyFile, "gemini": f.GeminiKeyFile}[provider]
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
		p, ok := providers()[of.kind]
		if !ok {
			continue
		}
		// Unreadable values were reported before.
		c, _ := p.config(of, f, env)
		name := strings.ReplaceAll(of.name, "-", "_")
		attrs = append(attrs, name+"_base_url", cmp.Or(c.BaseURL, p.baseURL), name+"_key_given", c.Key != "")
	}
	return attrs
}
