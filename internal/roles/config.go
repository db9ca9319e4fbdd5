package roles

import (
	"fmt"
	"strconv"
	"strings"
)

// Config prints the accounts as an include file for the NATS server's
// configuration. key returns the public key of a user.
func (f *File) Config(key func(User) string) (string, error) {
	accounts, err := f.Plan()
	if err != nil {
		return "", err
	}
	storage, err := size(f.Storage)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("accounts {\n")
	for _, a := range accounts {
		fmt.Fprintf(&b, "  %q {\n", a.Name)
		if a.Home {
			if storage > 0 {
				fmt.Fprintf(&b, "    jetstream { max_file: %d }\n", storage)
			} else {
				b.WriteString("    jetstream: enabled\n")
			}
		}
		printLimits(&b, a.Limits)
		b.WriteString("    users: [\n")
		for _, u := range a.Users {
			printUser(&b, u, key(u.User))
		}
		b.WriteString("    ]\n")
		printAll(&b, "exports", a.Exports, printExport)
		printAll(&b, "imports", a.Imports, printImport)
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// printAll prints a list of an account, or nothing if it is empty.
func printAll[T any](b *strings.Builder, key string, all []T, write func(*strings.Builder, T)) {
	if len(all) == 0 {
		return
	}
	b.WriteString("    " + key + ": [\n")
	for _, of := range all {
		write(b, of)
	}
	b.WriteString("    ]\n")
}

func printLimits(b *strings.Builder, l Limits) {
	payload, _ := size(l.Payload) // Users has checked it
	if l.Connections+l.Subscriptions == 0 && payload == 0 {
		return
	}
	b.WriteString("    limits {")
	for _, of := range []struct {
		key string
		n   int64
	}{{"max_connections", int64(l.Connections)}, {"max_subscriptions", int64(l.Subscriptions)}, {"max_payload", payload}} {
		if of.n > 0 {
			fmt.Fprintf(b, " %s: %d,", of.key, of.n)
		}
	}
	b.WriteString(" }\n")
}

func printUser(b *strings.Builder, p Permissions, key string) {
	fmt.Fprintf(b, "      # %s: %s\n      {nkey: %s, permissions: {\n", p.User.Name, p.User.Roles(), key)
	fmt.Fprintf(b, "        publish: %s\n        subscribe: %s\n", list(p.Publish), list(p.Subscribe))
	if p.Responses {
		b.WriteString("        allow_responses: {max: 1, expires: \"24h\"}\n")
	}
	b.WriteString("      }}\n")
}

func printExport(b *strings.Builder, e Export) {
	kind, response := "service", ""
	switch {
	case e.Stream:
		kind = "stream"
	case e.Answers == Often:
		response = ", response: stream"
	}
	fmt.Fprintf(b, "      {%s: %s, accounts: %s%s}\n", kind, strconv.Quote(e.Pattern), list(e.Accounts), response)
}

func printImport(b *strings.Builder, i Import) {
	kind, to := "service", ""
	if i.Stream {
		kind = "stream"
	}
	if i.To != "" {
		to = ", to: " + strconv.Quote(i.To)
	}
	fmt.Fprintf(b, "      {%s: {account: %q, subject: %s}%s}\n", kind, i.From, strconv.Quote(i.Pattern), to)
}

func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
