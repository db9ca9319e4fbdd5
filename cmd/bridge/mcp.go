package main

import (
	"errors"
	"log/slog"

	"github.com/refold/refold/cmd/settings"
	"github.com/refold/refold/internal/tools/mcp"
)

// kindMCP is the value of --tools for MCP servers.
const kindMCP = "mcp"

// openMCP opens --tools [NAME=]mcp:FILE: an executor for each target of the
// file's servers. A server starts with its first call.
func (o *offers) openMCP(of offer, env settings.Environment, log *slog.Logger) error {
	if of.file == "" {
		return errors.New("name the file that lists the servers: mcp:FILE")
	}
	servers, err := mcp.Open(of.file, mcp.Options{Target: of.name, Env: env, Secrets: o.secrets, Version: settings.Version(), Logger: log})
	if err != nil {
		return err
	}
	o.mcp = append(o.mcp, servers)
	for target, tools := range servers.Executors() {
		if err := o.add(target, tools); err != nil {
			return err
		}
	}
	return nil
}
