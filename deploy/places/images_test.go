package places_test

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// TestImagesRun: each image, unpacked, holds all that its programs need. They print the
// version, and a session-actor and a bridge do a run that the third image asks for.
func TestImagesRun(t *testing.T) {
	t.Parallel()
	images := readImages(t)
	url := startNATS(t, "images", "", nil)
	of := func(name string) (process, []string) {
		image := images["refold/"+name+":"+version[1:]]
		if image == nil {
			t.Fatalf("no image %s", name)
		}
		return unpack(t, name, image)
	}
	refold, command := of("refold")
	for _, name := range []string{"refold", "session-actor", "bridge"} {
		p, entry := refold, command
		if name != "refold" {
			p, entry = of(name)
		}
		if out, status := p.run(t, time.Minute, append(entry, "--version")...); status != 0 || !strings.HasSuffix(strings.TrimSpace(out), " "+version) {
			t.Errorf("%s --version: status %d, %q, want %s", name, status, out, version)
		}
		switch name {
		case "session-actor":
			p.daemon(t, append(entry, "--nats", url)...).says(t, "session_actor_starts")
		case "bridge":
			p.daemon(t, append(entry, "--nats", url, "--model", "scripted=scripted:echo")...).says(t, "prefix=refold")
		}
	}
	if out, status := refold.run(t, time.Minute, append(command, "--nats", url, "run", "s1", "hello", "--provider", "scripted", "--model", "m")...); status != 0 || !strings.Contains(out, "hello") {
		t.Errorf("a run: status %d: %s", status, out)
	}
}

// readImages reads the images for this machine by name, and checks that they are well
// formed.
func readImages(t *testing.T) map[string]v1.Image {
	t.Helper()
	all := map[string]v1.Image{}
	index, err := layout.ImageIndexFromPath(filepath.Join(dist, "images"))
	if err != nil {
		t.Fatal(err)
	}
	names, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names.Manifests {
		platforms, err := index.ImageIndex(name.Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(platforms); err != nil {
			t.Errorf("%v: %v", name.Annotations, err)
		}
		of, err := platforms.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(of.Manifests, func(d v1.Descriptor) bool { return d.Platform.Architecture == runtime.GOARCH })
		if at < 0 {
			t.Fatalf("%v: no image for %s", name.Annotations, runtime.GOARCH)
		}
		if all[name.Annotations["org.opencontainers.image.ref.name"]], err = platforms.Image(of.Manifests[at].Digest); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// unpack writes an image's files to a directory, and returns how its programs run there.
func unpack(t *testing.T, name string, image v1.Image) (process, []string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(scratch, "images", name)
	layers := mutate.Extract(image)
	defer layers.Close()
	files := tar.NewReader(layers)
	for {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = write(filepath.Join(root, head.Name), head, files)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	mountKernel(t, root)
	p := process{root: root, confined: true, dir: config.Config.WorkingDir, env: config.Config.Env}
	if _, err := fmt.Sscanf(config.Config.User, "%d:%d", &p.uid, &p.gid); err != nil || p.uid == 0 {
		t.Fatalf("%s: the user is %q, want a number that is not root", name, config.Config.User)
	}
	return p, p.found(t, config.Config.Entrypoint)
}

// write writes a file or a directory of a layer.
func write(at string, head *tar.Header, content io.Reader) error {
	if head.Typeflag == tar.TypeDir {
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
	} else {
		f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if err := os.Lchown(at, head.Uid, head.Gid); err != nil {
		return err
	}
	return os.Chmod(at, head.FileInfo().Mode())
}
