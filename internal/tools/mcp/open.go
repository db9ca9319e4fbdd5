package mcp

import "context"

// Open returns the Servers that a file lists, with the pins of its lock. The error
// names the file, and what is wrong in it.
func Open(file string, o Options) (*Servers, error) {
	config, err := Load(file, o.Env)
	if err != nil {
		return nil, err
	}
	lock, err := ReadLock(file)
	if err != nil {
		return nil, err
	}
	return New(config, lock, o)
}

// Import starts the servers of a Config, requests their tools, and stops them. It fails
// if one is not there.
func Import(ctx context.Context, c *Config, o Options) (*Imported, error) {
	servers, err := New(c, nil, o)
	if err != nil {
		return nil, err
	}
	defer servers.Close()
	return servers.Import(ctx)
}
