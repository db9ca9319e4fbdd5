// Command images writes the images of deploy/Dockerfile without an engine, on nothing
// instead of Alpine: static programs, the directories of their user, /tmp, and the
// certificates of public authorities. They have no shell, so the bridge serves no host
// tools.
//
//	images VERSION DIRECTORY ARCHIVE…
//
// The archives are those of deploy/release.sh for Linux. The result is an OCI layout in
// DIRECTORY, with an image for several platforms of each name, such as
// refold/bridge:0.1.0. The same archives give the same bytes.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/refold/refold/deploy/places/dockerfile"
)

// names are the stages that become images. The server's is on Docker Hub.
var names = []string{"refold", "session-actor", "bridge"}

func main() {
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: images VERSION DIRECTORY ARCHIVE…")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func write(version, dir string, archives []string) error {
	stages, err := dockerfile.Read("../Dockerfile")
	if err != nil {
		return err
	}
	indexes := map[string]v1.ImageIndex{}
	for _, name := range names {
		indexes[name] = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	}
	for _, archive := range archives {
		arch := regexp.MustCompile(`_linux_(\w+)\.tar\.gz$`).FindStringSubmatch(archive)
		if arch == nil {
			return fmt.Errorf("%s: want an archive for Linux, such as refold_0.1.0_linux_amd64.tar.gz", archive)
		}
		programs, err := readPrograms(archive)
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		for _, name := range names {
			image, err := build(stages[name], arch[1], version, programs)
			if err != nil {
				return fmt.Errorf("%s: image %s: %w", archive, name, err)
			}
			indexes[name] = mutate.AppendManifests(indexes[name], mutate.IndexAddendum{
				Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch[1]}},
			})
		}
	}
	out, err := layout.Write(dir, empty.Index)
	for _, name := range names {
		if err == nil {
			err = out.AppendIndex(indexes[name], layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "refold/" + name + ":" + version}))
		}
	}
	return err
}

// readPrograms reads the programs of an archive by name.
func readPrograms(archive string) (map[string][]byte, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	programs, files := map[string][]byte{}, tar.NewReader(z)
	for {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			return programs, nil
		}
		if err != nil {
			return nil, err
		}
		if dir, name := path.Split(head.Name); head.Typeflag == tar.TypeReg && path.Base(dir) == "bin" {
			if programs[name], err = io.ReadAll(files); err != nil {
				return nil, err
			}
		}
	}
}

// build builds the image of a stage.
func build(s *dockerfile.Stage, arch, version string, programs map[string][]byte) (v1.Image, error) {
	var files bytes.Buffer
	t := &tree{Writer: tar.NewWriter(&files), dirs: map[string]bool{".": true}}
	id, _, _ := strings.Cut(s.User, ":")
	errs := []error{
		t.add(tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, nil),
		t.add(tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("refold:x:"+s.User+":refold:/:/sbin/nologin\n")),
		t.add(tar.Header{Name: "etc/group", Mode: 0o644}, []byte("refold:x:"+id+":\n")),
		t.add(tar.Header{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644}, authorities()),
	}
	for _, d := range s.Dirs {
		errs = append(errs, t.add(tar.Header{Name: d.Path[1:] + "/", Typeflag: tar.TypeDir, Mode: int64(d.Mode), Uid: d.UID, Gid: d.GID}, nil))
	}
	for _, at := range slices.Sorted(maps.Keys(s.Programs)) {
		program, ok := programs[s.Programs[at]]
		if !ok {
			errs = append(errs, fmt.Errorf("the archive has no program %s", s.Programs[at]))
			continue
		}
		errs = append(errs, t.add(tar.Header{Name: at[1:], Mode: 0o755}, program))
	}
	if err := errors.Join(append(errs, t.Close())...); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", arch
	config.Config = v1.Config{
		User: s.User, WorkingDir: s.Workdir, Entrypoint: s.Entrypoint, Env: []string{"PATH=/usr/local/bin"},
		Labels: map[string]string{"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0"},
	}
	return mutate.ConfigFile(image, config)
}

// tree is a layer in the making.
type tree struct {
	*tar.Writer
	dirs map[string]bool // that it has
}

// add adds a file or, with a slash at the end of its name, a directory.
func (t *tree) add(head tar.Header, content []byte) error {
	name := strings.TrimSuffix(head.Name, "/")
	if parent := path.Dir(name); !t.dirs[parent] {
		if err := t.add(tar.Header{Name: parent + "/", Typeflag: tar.TypeDir, Mode: 0o755}, nil); err != nil {
			return err
		}
	}
	t.dirs[name] = true
	head.Size = int64(len(content))
	if err := t.WriteHeader(&head); err != nil {
		return err
	}
	_, err := t.Write(content)
	return err
}

// authorities are the certificates of the authorities that browsers trust.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
	}
	return b.Bytes()
}
