package cli

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/refold/refold/client"
)

// completionCommand prints the completion script of a shell.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help returns the help text above the flags.
func (completionCommand) Help() string {
	return `bash: source <(refold completion bash), in ~/.bashrc.
zsh: source <(refold completion zsh), in ~/.zshrc after compinit.
fish: refold completion fish > ~/.config/fish/completions/refold.fish

It completes commands, flags, their values, and names of sessions: the 50 that were
active last, on the server that NATS_URL, NATS_CONTEXT or the line's own flags name.`
}

// The scripts. Each calls `refold complete` for the possible words at the cursor.
var (
	//go:embed completion/refold.bash
	bashCompletion string
	//go:embed completion/refold.zsh
	zshCompletion string
	//go:embed completion/refold.fish
	fishCompletion string
)

func (c completionCommand) Run(s streams) error {
	script := map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	fmt.Fprint(s.out, script)
	return nil
}

// completeCommand prints the possible words at the end of a command line: one a
// line, with a tab before its help. The shells' scripts call it.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after refold; the last one is completed."`
}

// completeWithin is how long a shell waits for names of sessions.
const (
	completeWithin   = 500 * time.Millisecond
	completeSessions = 50
)

// Run prints the values that begin with the last word.
func (c completeCommand) Run(ctx context.Context, s streams, conn connection, parser *kong.Kong, full *Full) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	l := &line{node: parser.Model.Node, conn: conn}
	last := ""
	if len(words) > 0 {
		last = words[len(words)-1]
		for _, word := range words[:len(words)-1] {
			l.take(word)
		}
	}
	if _, ok := l.node.Target.Addr().Interface().(*elsewhere); ok {
		if _, err := programBeside(fullProgram); err != nil {
			return nil // go run would build it now
		}
		return becomeProgram(ctx, fullProgram, append([]string{"complete", "--"}, words...), os.Environ(), s.err)
	}
	for _, v := range l.values(ctx, last) {
		if strings.HasPrefix(v.text, last) {
			fmt.Fprintf(s.out, "%s\t%s\n", v.text, v.help)
		}
	}
	return nil
}

// value is a possible word at the cursor.
type value struct{ text, help string }

// line is a command line up to the cursor.
type line struct {
	node     *kong.Node
	argument int        // which positional argument is next
	flag     *kong.Flag // whose value is next
	only     bool       // after --: only arguments follow
	conn     connection
}

// take reads a word before the cursor.
func (l *line) take(word string) {
	switch {
	case word == "=" && l.flag != nil: // bash splits --flag=value into three
	case l.flag != nil:
		l.connect(word)
		l.flag = nil
	case word == "--" && !l.only:
		l.only = true
	case strings.HasPrefix(word, "-") && !l.only:
		name, given, has := strings.Cut(word, "=")
		if l.flag = l.find(name); l.flag != nil && (has || l.flag.IsBool()) {
			l.connect(given)
			l.flag = nil
		}
	default:
		for _, child := range l.node.Children {
			if child.Name == word && l.argument == 0 {
				l.node = child
				return
			}
		}
		if l.node.DefaultCmd != nil {
			l.node = l.node.DefaultCmd
		}
		l.argument++
	}
}

// connect stores the value of a connection flag.
func (l *line) connect(value string) {
	c := &l.conn
	if of := map[string]*string{"nats": &c.NATS, "creds": &c.Creds, "context": &c.Context, "prefix": &c.Prefix}[l.flag.Name]; of != nil {
		*of = value
	}
}

// find returns the flag of that name, --name or -n.
func (l *line) find(name string) *kong.Flag {
	for _, group := range l.node.AllFlags(false) {
		for _, f := range group {
			if "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

// values returns the possible words at the cursor. last is the word there.
func (l *line) values(ctx context.Context, last string) (all []value) {
	if name, _, has := strings.Cut(last, "="); has && l.flag == nil && !l.only {
		if l.flag = l.find(name); l.flag != nil {
			for _, v := range enum(l.flag.Value) {
				all = append(all, value{text: name + "=" + v.text})
			}
		}
		return all
	}
	switch {
	case l.flag != nil:
		return enum(l.flag.Value)
	case strings.HasPrefix(last, "-") && !l.only:
		for _, group := range l.node.AllFlags(true) {
			for _, f := range group {
				all = append(all, value{"--" + f.Name, f.Help})
			}
		}
		return all
	}
	if l.argument == 0 {
		for _, child := range l.node.Children {
			if !child.Hidden {
				all = append(all, value{child.Name, child.Help})
			}
		}
	}
	node := l.node
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	if l.argument < len(node.Positional) {
		if p := node.Positional[l.argument]; p.Name == "session" {
			return append(all, l.sessions(ctx, last)...)
		} else if p.Enum != "" {
			return append(all, enum(p)...)
		}
	}
	return all
}

// enum returns the values that a flag or an argument accepts.
func enum(v *kong.Value) (all []value) {
	if v.Enum == "" {
		return nil
	}
	for _, text := range v.EnumSlice() {
		if text != "" {
			all = append(all, value{text: text})
		}
	}
	return all
}

// sessions returns the names of sessions that the server lists in time.
func (l *line) sessions(ctx context.Context, begin string) (all []value) {
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	c, err := l.conn.connect(ctx)
	if err != nil {
		return nil
	}
	defer c.Close()
	for row, err := range c.Index(ctx, client.IndexOptions{Name: begin}) {
		if err != nil || len(all) == completeSessions {
			break
		}
		all = append(all, value{row.Session, row.State})
	}
	return all
}
