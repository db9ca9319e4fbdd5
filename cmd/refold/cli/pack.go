package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refold/refold/actors/spaces"

	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/spacefiles"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/space"
)

// packCommand has the commands about packs.
type packCommand struct {
	Sign    packSignCommand    `cmd:"" help:"Write the signature of a pack's folder into it. Needs no server."`
	Publish packPublishCommand `cmd:"" help:"Publish a pack's folder, signed, as the version in its index. A version is published once."`
	List    packListCommand    `cmd:"" help:"List the published versions of packs, with their hashes and keys."`
	Enable  packEnableCommand  `cmd:"" help:"Enable a pack in a session: its tools are offered from the next turn."`
	Disable packDisableCommand `cmd:"" help:"Remove a pack and its tools from a session."`
}

// packFolder has the flags for a pack's folder that is signed.
type packFolder struct {
	Dir     string `arg:"" type:"existingdir" help:"The folder, with an agent.workspace.json of kind pack."`
	Key     string `required:"" type:"existingfile" placeholder:"FILE" help:"File with the seed of a NATS nkey, as nk -gen user writes it, or a credentials file."`
	Secrets bool   `name:"allow-secrets" help:"Accept files with text that looks like a key."`
}

// read builds the folder's manifest and signs it. It prints problems.
func (p packFolder) read(ctx context.Context, s streams) (*bundled, space.Signature, error) {
	signer, err := spacefiles.ReadSigner(p.Key)
	if err != nil {
		return nil, space.Signature{}, err
	}
	b, err := bundle(ctx, s, "", p.Dir)
	if err != nil {
		return nil, space.Signature{}, err
	}
	if b.built.Manifest.Kind != space.Pack {
		return nil, space.Signature{}, fmt.Errorf("%s: is a workspace: a pack has an %s with \"kind\": \"pack\", a name and a version", p.Dir, spacefiles.IndexName)
	}
	if found := b.built.Secrets(); len(found) > 0 && !p.Secrets {
		for _, problem := range found {
			fmt.Fprintln(s.out, placed(p.Dir, problem))
		}
		return nil, space.Signature{}, fmt.Errorf("%s: %s; --allow-secrets accepts such files", p.Dir, transcript.Count(len(found), "problem"))
	}
	signature, err := signer.Sign(b.built.Manifest.Bytes())
	return b, signature, err
}

// packSignCommand signs a folder.
type packSignCommand struct{ packFolder }

func (c packSignCommand) Run(ctx context.Context, s streams) error {
	b, signature, err := c.read(ctx, s)
	if err != nil {
		return err
	}
	m := b.built.Manifest
	all, err := spacefiles.AddSignature(c.Dir, m.Bytes(), signature)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Dir, err)
	}
	fmt.Fprintf(s.out, "%s: manifest %s is signed by %s\n", transcript.Named(m.Space, m.Version), m.Hash(), signersOf(all))
	return nil
}

// packPublishCommand publishes a folder.
type packPublishCommand struct{ packFolder }

// Help returns the help text above the flags.
func (packPublishCommand) Help() string {
	return `The files go to REFOLD_BLOBS, then the manifest to REFOLD_PACKS. A published version
never changes: publishing the same content again only adds the signature of another
key, and other content needs another version. No session changes: refold pack enable upgrades one.

    nk -gen user > publisher.seed
    refold pack publish packs/crm --key publisher.seed
    refold pack list`
}

func (c packPublishCommand) Run(ctx context.Context, s streams, conn connection) error {
	pack, signature, err := c.read(ctx, s)
	if err != nil {
		return err
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := pack.store(ctx, b); err != nil {
		return err
	}
	m := pack.built.Manifest
	stands, again, err := b.PublishPack(ctx, journal.Published{
		Pack: m.Space, Version: m.Version, Manifest: m.Bytes(), Signatures: []space.Signature{signature},
	})
	if err != nil {
		return err
	}
	verb := "is published"
	if again {
		verb = "was published already"
	}
	fmt.Fprintf(s.out, "%s %s, at sequence %d: manifest %s, signed by %s\n", transcript.Named(m.Space, m.Version), verb, stands.Seq, m.Hash(), signersOf(stands.Signatures))
	return nil
}

// packListCommand lists the published versions.
type packListCommand struct {
	Pack string `arg:"" optional:"" help:"Only this pack."`
	asJSON
}

func (c packListCommand) Run(ctx context.Context, s streams, conn connection) error {
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	all, err := b.Packs(ctx, c.Pack)
	if err != nil {
		return err
	}
	table := newWholeTable(s.out, "PACK", "VERSION", "SEQUENCE", "MANIFEST", "KEYS")
	listed := 0
	for _, p := range all {
		switch {
		case c.JSON:
			printJSON(s.out, packJSON{p.Pack, p.Version, p.Seq, codec.Sum(p.Manifest), keysOf(p.Signatures)})
		default:
			table.texts(p.Pack, p.Version, fmt.Sprint(p.Seq), codec.Sum(p.Manifest).String(), cmp.Or(signersOf(p.Signatures), "-"))
		}
		listed++
	}
	if c.JSON {
		return nil
	}
	if listed == 0 {
		return errors.New(strings.TrimSpace("nothing is published"+transcript.Prefixed(" of ", c.Pack)) + ": refold pack publish DIR --key FILE publishes a pack")
	}
	table.flush()
	return nil
}

// packJSON is a version of a pack as JSON.
type packJSON struct {
	Pack     string     `json:"pack"`
	Version  string     `json:"version"`
	Seq      uint64     `json:"seq"`
	Manifest codec.Hash `json:"manifest"`
	Keys     []string   `json:"keys"` // whose signatures sign the manifest
}

// keysOf returns the keys of signatures.
func keysOf(signatures []space.Signature) []string {
	keys := make([]string, len(signatures))
	for i := range signatures {
		keys[i] = signatures[i].Key
	}
	return slices.Compact(keys)
}

// signersOf returns the keys of signatures as text.
func signersOf(signatures []space.Signature) string { return strings.Join(keysOf(signatures), ", ") }

// packEnableCommand makes a session adopt a pack.
type packEnableCommand struct {
	Session string      `arg:"" help:"The session."`
	Pack    string      `arg:"" help:"The pack, as a grant names it, optionally with a version: crm, crm@1, crm@1.4.2."`
	Apply   spaces.Mode `default:"next_step_boundary" placeholder:"MODE" help:"When its tools are offered: next_step_boundary, next_run or immediate_if_idle."`
}

// Help returns the help text above the flags.
func (packEnableCommand) Help() string {
	return `It is refold space sync with --apply: a bridge reads the pack, the session checks
that its grant trusts the manifest, and the tools join before the next turn. Enabling
another version upgrades the session, or downgrades it if the version is complete:

    refold pack enable s1 crm
    refold pack enable s1 crm@1.5
    refold pack enable s1 crm@1.4.2`
}

func (c packEnableCommand) Run(ctx context.Context, s streams, conn connection) error {
	pack, version, named := strings.Cut(c.Pack, "@")
	if named && version == "" {
		return &statusError{statusUsage, "pack enable: " + c.Pack + ": a version follows the @, such as 1, 1.4 or 1.4.2"}
	}
	return spaceSyncCommand{Session: c.Session, Space: pack, Version: version, Apply: c.Apply, kind: space.Pack}.Run(ctx, s, conn)
}

// packDisableCommand removes a pack from a session.
type packDisableCommand struct {
	Session string `arg:"" help:"The session."`
	Pack    string `arg:"" help:"The pack."`
}

func (c packDisableCommand) Run(ctx context.Context, s streams, conn connection) error {
	_, err := askSpace(ctx, conn, c.Session, func(api *client.Client) (uint64, error) { return api.DetachPack(ctx, c.Session, c.Pack) })
	if err == nil {
		_, err = fmt.Fprintf(s.out, "%s is disabled: its tools are gone\n", c.Pack)
	}
	return err
}
