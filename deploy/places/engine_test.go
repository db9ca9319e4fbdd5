package places_test

// A small container engine for docker-compose.yml: it does what this file asks for, with
// processes. A service has a directory with the programs and directories of its stage of
// deploy/Dockerfile, beside the system's own tools in the place of Alpine's; its volumes;
// the user, the capabilities and the environment that the file gives it; and an address
// on a bridge, which all services know by name.

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"golang.org/x/sys/unix"

	"github.com/refold/refold/deploy/places/dockerfile"
)

// subnet is that of the bridge. Its first address is the test's.
const subnet = "10.89.0."

// engine runs a project.
type engine struct {
	t        testing.TB
	project  *types.Project
	stages   map[string]*dockerfile.Stage
	hosts    string // names and addresses of all services
	services map[string]*container
	once     int // how many containers were made by oneOff
}

// load reads the file, with variables of the environment, and makes the network.
func load(t testing.TB, file string, env ...string) *engine {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithEnv(env), cli.WithProfiles([]string{"*"}), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{t: t, services: map[string]*container{}}
	if e.project, err = options.LoadProject(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e.stages, err = dockerfile.Read("../Dockerfile"); err != nil {
		t.Fatal(err)
	}
	for i, name := range e.project.ServiceNames() {
		e.hosts += fmt.Sprintf("%s%d %s\n", subnet, 10+i, name)
	}
	e.ip("link", "add", "refold0", "type", "bridge")
	e.ip("addr", "add", subnet+"1/24", "dev", "refold0")
	e.ip("link", "set", "refold0", "up")
	return e
}

func (e *engine) ip(args ...string) {
	e.t.Helper()
	if err := ip(args...); err != nil {
		e.t.Fatal(err)
	}
}

// address is that of a service.
func (e *engine) address(service string) string {
	for line := range strings.Lines(e.hosts) {
		if address, name, _ := strings.Cut(strings.TrimSpace(line), " "); name == service {
			return address
		}
	}
	e.t.Fatalf("no service %s", service)
	return ""
}

// create makes the container of a service with its directory and its network.
func (e *engine) create(name, service, address string) *container {
	e.t.Helper()
	s := e.project.AllServices()[service]
	c := &container{name: name, service: s, out: &output{}}
	c.root, c.netns, c.confined = filepath.Join(scratch, "containers", name), name, slices.Contains(s.CapDrop, "ALL")
	if _, err := fmt.Sscanf(s.User, "%d:%d", &c.uid, &c.gid); err != nil {
		e.t.Fatalf("%s: user %q: %v", service, s.User, err)
	}
	stage := e.stages[s.Build.Target]
	c.dir = stage.Workdir
	e.fill(c, stage)
	c.env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/"}
	for key, value := range s.Environment {
		if value != nil {
			c.env = append(c.env, key+"="+*value)
		}
	}
	e.ip("netns", "add", name)
	link := "v" + address[strings.LastIndexByte(address, '.')+1:]
	e.ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
	e.ip("link", "set", link, "master", "refold0", "up")
	e.ip("-n", name, "addr", "add", address+"/24", "dev", "eth0")
	e.ip("-n", name, "link", "set", "eth0", "up")
	e.ip("-n", name, "link", "set", "lo", "up")
	c.argv = c.found(e.t, slices.Concat(stage.Entrypoint, s.Entrypoint, s.Command))
	return c
}

// fill makes the directory of a container.
func (e *engine) fill(c *container, stage *dockerfile.Stage) {
	t := e.t
	t.Helper()
	mountEmpty(t, c.root, "mode=0755")
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64"} {
		if to, err := os.Readlink(dir); err == nil { // as in /bin -> usr/bin
			if err := os.Symlink(to, c.root+dir); err != nil {
				t.Fatal(err)
			}
		} else if _, err := os.Stat(dir); err == nil {
			mount(t, dir, c.root+dir, true)
		}
	}
	mountEmpty(t, c.root+"/usr/local/bin", "mode=0755")
	programs := map[string]string{"/usr/local/bin/nats-server": "nats-server"}
	if c.service.Build.Target != "nats" {
		programs = stage.Programs
	}
	for at, name := range programs {
		mount(t, filepath.Join(dist, "bin", name), c.root+at, true)
	}
	mountKernel(t, c.root)
	for at, text := range map[string]string{
		"/etc/hosts": "127.0.0.1 localhost\n" + e.hosts, "/etc/nsswitch.conf": "hosts: files\n",
		"/etc/passwd": "root:x:0:0::/:/bin/sh\nrefold:x:10001:10001::/:/bin/sh\n", "/etc/group": "refold:x:10001:\n",
	} {
		if err := os.MkdirAll(c.root+"/etc", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(c.root+at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	makeDirs(t, c.root, "/", stage.Dirs)
	e.mountVolumes(c, stage)
	if c.service.ReadOnly {
		if err := unix.Mount("", c.root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// mountVolumes mounts the volumes of a service, and its file systems in memory. A new
// volume begins with the directories that the image has at its place.
func (e *engine) mountVolumes(c *container, stage *dockerfile.Stage) {
	t := e.t
	t.Helper()
	volumes := slices.Clone(c.service.Volumes)
	slices.SortStableFunc(volumes, func(a, b types.ServiceVolumeConfig) int { return strings.Compare(a.Target, b.Target) })
	for _, v := range volumes {
		source := v.Source
		if v.Type == types.VolumeTypeVolume {
			source = e.volume(v.Source)
			if _, err := os.Stat(source); err != nil {
				makeDirs(t, source, v.Target, stage.Dirs)
			}
		}
		mount(t, source, c.root+v.Target, v.ReadOnly)
	}
	for _, text := range c.service.Tmpfs {
		at, options, _ := strings.Cut(text, ":")
		mountEmpty(t, c.root+at, options)
	}
}

// volume is where a volume is.
func (*engine) volume(name string) string { return filepath.Join(scratch, "volumes", name) }

// makeDirs makes those directories that are at a path, or below it, relative to root.
func makeDirs(t testing.TB, root, at string, dirs []dockerfile.Dir) {
	t.Helper()
	err := os.MkdirAll(root, 0o755)
	for _, d := range dirs {
		rel, ok := strings.CutPrefix(d.Path+"/", strings.TrimSuffix(at, "/")+"/")
		if !ok || err != nil {
			continue
		}
		dir := filepath.Join(root, rel)
		if err = os.MkdirAll(dir, 0o755); err == nil {
			err = os.Chown(dir, d.UID, d.GID)
		}
		if err == nil {
			err = os.Chmod(dir, d.Mode)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func mountEmpty(t testing.TB, at, options string) {
	t.Helper()
	err := os.MkdirAll(at, 0o755)
	if err == nil {
		err = unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID, options)
	}
	if err != nil {
		t.Fatalf("mount %s: %v", at, err)
	}
}

// up starts all services that need no profile, in the order of the file, and waits until
// they are up.
func (e *engine) up() {
	e.t.Helper()
	names := slices.DeleteFunc(e.project.ServiceNames(), func(name string) bool { return len(e.project.Services[name].Profiles) > 0 })
	for _, name := range names {
		e.services[name] = e.create(name, name, e.address(name))
	}
	ctx, cancel := context.WithCancel(e.t.Context())
	e.t.Cleanup(func() {
		cancel()
		for _, c := range e.services {
			c.stop(e.t)
		}
	})
	for _, name := range names {
		c := e.services[name]
		e.publish(c)
		go func() {
			for e.ready(c) != nil {
				if !pause(ctx, 50*time.Millisecond) {
					return
				}
			}
			go c.checkHealth(ctx)
			c.supervise(ctx)
		}()
	}
	waits := ""
	defer func() {
		if e.t.Failed() {
			e.t.Log("waits for ", waits)
		}
	}()
	until(e.t, 3*time.Minute, "all services are up", func() bool {
		for _, name := range names {
			if waits = name; !e.services[name].up() {
				return false
			}
		}
		return true
	})
}

// ready tells what a service waits for before it starts.
func (e *engine) ready(c *container) error {
	for name, d := range c.service.DependsOn {
		on := e.services[name]
		on.mu.Lock()
		holds := map[string]bool{
			types.ServiceConditionStarted: on.starts > 0, types.ServiceConditionHealthy: on.healthy, types.ServiceConditionCompletedSuccessfully: on.finished,
		}[d.Condition]
		on.mu.Unlock()
		if !holds {
			return fmt.Errorf("%s is not %s", name, d.Condition)
		}
	}
	return nil
}

// oneOff is the container that docker compose run makes of a service, for another command.
func (e *engine) oneOff(service string) *container {
	e.t.Helper()
	e.once++
	return e.create(fmt.Sprint(service, "-run-", e.once), service, fmt.Sprint(subnet, 100+e.once))
}

// run is docker compose run, and returns what the command prints and its status.
func (e *engine) run(service string, args ...string) (out string, status int) {
	e.t.Helper()
	c := e.oneOff(service)
	return c.run(e.t, endWithin, append(c.argv[:1:1], args...)...)
}

// publish forwards the ports that a service publishes.
func (e *engine) publish(c *container) {
	e.t.Helper()
	for _, port := range c.service.Ports {
		l, err := net.Listen("tcp", net.JoinHostPort(port.HostIP, port.Published))
		if err != nil {
			e.t.Fatal(err)
		}
		e.t.Cleanup(func() { _ = l.Close() })
		to := fmt.Sprint(e.address(c.name), ":", port.Target)
		go func() {
			for {
				from, err := l.Accept()
				if err != nil {
					return
				}
				go forward(from, to)
			}
		}()
	}
}

func forward(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() { _, _ = io.Copy(to, from); _ = to.Close() }()
	_, _ = io.Copy(from, to)
}
