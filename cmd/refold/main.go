// Command refold is the command line program for people: it starts runs and
// follows them, shows and replays sessions, and tries Refold out. For the few
// commands that link large libraries it starts refold-full.
package main

import "github.com/refold/refold/cmd/refold/cli"

func main() { cli.Program(nil) }
