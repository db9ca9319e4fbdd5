package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/refold/refold/internal/yamlfile"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
)

// TargetDefault is the target of servers whose Config has none.
const TargetDefault = "mcp"

// Config lists the MCP servers, by name. A name is 1 to 24 of a-z0-9_-, and the
// second part of each tool_id of the server.
type Config struct {
	Servers map[string]Server `yaml:"servers"`
}

// Server is one MCP server: a program, or the address of a running one.
type Server struct {
	// Command is started with Args in Dir, by default the bridge's own, and
	// used over its standard input and output.
	Command string   `yaml:"command"`
	Args    []string `yaml:"args"`
	Dir     string   `yaml:"workdir"`
	// Env is the program's environment in addition to PATH, HOME, LANG, TMPDIR,
	// TZ and USER: NAME, with the bridge's value, or NAME=value. A value may
	// refer to a secret by its name, as in TOKEN=${secret:CRM_KEY}.
	Env []string `yaml:"env"`

	// URL is the address of a server with streamable HTTP. Headers are sent
	// with each request; their values refer to the bridge's secrets, as in
	// Bearer ${secret:CRM_KEY}, or to the environment, as in Bearer ${TOKEN}.
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`

	Target  string   `yaml:"target"`  // target of its tools; empty: mcp
	Include []string `yaml:"include"` // names of its tools, with * and ?; none: all
	Exclude []string `yaml:"exclude"` // takes precedence over Include
	// Idle is how long a call may be without an answer and without progress; 0:
	// as long as the call may take.
	Idle time.Duration `yaml:"idle"`
	// Tools overrides what the server declares of a tool, by the tool's name;
	// "*" is for all without a value of their own.
	Tools map[string]Override `yaml:"tools"`
}

// Override is what holds for a tool. Nil and empty fields keep what the server
// declares.
type Override struct {
	RetrySafe    *bool         `yaml:"retry_safe"`
	ParallelSafe *bool         `yaml:"parallel_safe"`
	Approval     *string       `yaml:"approval"`
	Requires     []string      `yaml:"requires"`
	Deadline     time.Duration `yaml:"deadline"`
}

// Load reads the file of a Config. Values of the file refer to env. The error
// reports every problem, each with its key.
func Load(file string, env map[string]string) (*Config, error) {
	text, err := yamlfile.Read(file)
	var c *Config
	if err == nil {
		c, err = Parse(text)
	}
	if err == nil {
		err = c.Validate(env)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// Parse reads a Config. An unknown key is an error that quotes it.
func Parse(text []byte) (*Config, error) {
	var c Config
	if err := yaml.UnmarshalWithOptions(text, &c, yaml.Strict(), yaml.DisallowUnknownField()); err != nil && !errors.Is(err, io.EOF) {
		return nil, yamlfile.Explain(err, &c)
	}
	return &c, nil
}

var (
	serverName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
	headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	reference  = regexp.MustCompile(`\$\{(secret:)?([A-Za-z_][A-Za-z0-9_]*)\}`)
	variables  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Validate reports every problem, with its key. The config's values refer to env.
func (c *Config) Validate(env map[string]string) error {
	if len(c.Servers) == 0 {
		return errors.New("servers: there is none: name one, with a command or a url")
	}
	var all []error
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		s := c.Servers[name]
		for _, problem := range s.problems(name, env) {
			all = append(all, fmt.Errorf("servers.%s%s", name, problem))
		}
	}
	return errors.Join(all...)
}

// problems returns the problems of a server, to be appended to its name.
func (s *Server) problems(name string, env map[string]string) (all []string) {
	say := func(wrong bool, format string, args ...any) {
		if wrong {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	say(len(name) > serverNameMax || !serverName.MatchString(name), ": a server's name is 1 to %d of a-z0-9_-", serverNameMax)
	say((s.Command == "") == (s.URL == ""), ": give either a command, which is started, or a url")
	say(s.Command == "" && len(s.Args)+len(s.Env)+len(s.Dir) > 0, ": args, env and workdir are of a command")
	say(s.URL == "" && len(s.Headers) > 0, ".headers: are of a url")
	if s.URL != "" {
		u, err := url.Parse(s.URL)
		say(err != nil || u != nil && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil), ".url: is http://… or https://…, without a password: a header takes one from the environment")
	}
	for i, entry := range s.Env {
		variable, _, given := strings.Cut(entry, "=")
		say(!variables.MatchString(variable), ".env[%d]: is NAME, taken from the bridge's environment, or NAME=value", i)
		_, there := env[variable]
		say(!given && !there && variables.MatchString(variable), ".env[%d]: %s is not set: set it for this program, or say %s=value", i, variable, variable)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Headers)) {
		say(!headerName.MatchString(key), ".headers: %q is no name of a header", key)
		named := reference.FindAllStringSubmatch(s.Headers[key], -1)
		say(len(named) == 0, ".headers.%s: take the value from a secret, as in Bearer ${secret:CRM_KEY}, or from the environment, as in Bearer ${TOKEN}: this file holds no keys", key)
		for _, m := range named {
			if m[1] != "" {
				continue // it is looked up at each call
			}
			say(env[m[2]] == "", ".headers.%s: %s is not set", key, m[2])
			say(strings.ContainsAny(env[m[2]], "\r\n"), ".headers.%s: the value of %s has more than one line", key, m[2])
		}
	}
	if err := subjects.ValidTarget(cmp.Or(s.Target, TargetDefault)); err != nil {
		say(true, ".target: is 1 to %d of A-Za-z0-9_-", planner.NameBytesMax)
	}
	say(s.Idle < 0, ".idle: is not negative")
	for key, patterns := range map[string][]string{"include": s.Include, "exclude": s.Exclude} {
		for i, pattern := range patterns {
			_, err := path.Match(pattern, "")
			say(err != nil || pattern == "", ".%s[%d]: %q is no name of a tool, nor a pattern with * and ?", key, i, pattern)
		}
	}
	for _, tool := range slices.Sorted(maps.Keys(s.Tools)) {
		o := s.Tools[tool]
		say(o.Deadline < 0 || o.Deadline%time.Millisecond != 0 || o.Deadline.Milliseconds() > planner.DeadlineMSMax,
			".tools.%s.deadline: is whole milliseconds, up to %v", tool, planner.DeadlineMSMax*time.Millisecond)
	}
	return all
}

// takes reports whether a tool of the server is included.
func (s *Server) takes(tool string) bool {
	matches := func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return err == nil && ok
	}
	return (len(s.Include) == 0 || slices.ContainsFunc(s.Include, matches)) && !slices.ContainsFunc(s.Exclude, matches)
}

// override returns the file's settings for a tool.
func (s *Server) override(tool string) Override {
	o, all := s.Tools[tool], s.Tools["*"]
	o.RetrySafe = cmp.Or(o.RetrySafe, all.RetrySafe)
	o.ParallelSafe = cmp.Or(o.ParallelSafe, all.ParallelSafe)
	o.Approval = cmp.Or(o.Approval, all.Approval)
	if o.Requires == nil {
		o.Requires = all.Requires
	}
	o.Deadline = cmp.Or(o.Deadline, all.Deadline)
	return o
}

// unlisted returns the names in the file of tools that are not listed.
func (s *Server) unlisted(listed []string) (names []string) {
	for _, name := range slices.Concat(s.Include, s.Exclude, slices.Sorted(maps.Keys(s.Tools))) {
		if !strings.ContainsAny(name, `*?[\`) && !slices.Contains(listed, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// passed are the variables that every program gets, if they are set.
var passed = []string{"PATH", "HOME", "LANG", "TMPDIR", "TZ", "USER"}

// environ returns the environment of the server's program, with its secrets.
func (s *Server) environ(env, secrets map[string]string) (list []string) {
	for _, entry := range slices.Concat(passed, s.Env) {
		name, _, given := strings.Cut(entry, "=")
		if value, there := env[name]; !given && there {
			entry = name + "=" + value
		} else if !given {
			continue
		} else {
			entry = reference.ReplaceAllStringFunc(entry, func(ref string) string {
				if m := reference.FindStringSubmatch(ref); m[1] != "" {
					return secrets[m[2]]
				}
				return ref
			})
		}
		list = append(list, entry)
	}
	return list
}

// header returns the headers of the server's requests, with their secrets.
func (s *Server) header(env, secrets map[string]string) map[string]string {
	header := make(map[string]string, len(s.Headers))
	for key, value := range s.Headers {
		header[key] = reference.ReplaceAllStringFunc(value, func(ref string) string {
			if m := reference.FindStringSubmatch(ref); m[1] == "" {
				return env[m[2]]
			} else {
				return secrets[m[2]]
			}
		})
	}
	return header
}

// target returns the target of the server's tools; without is the default.
func (s *Server) target(without string) string { return cmp.Or(s.Target, without, TargetDefault) }
