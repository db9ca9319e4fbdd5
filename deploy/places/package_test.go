package places_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"golang.org/x/sys/unix"
)

// instances are those of refold-bridge@.service in docs/deployment.md.
var instances = []string{"models", "tools"}

// TestDebianPackageRunsItsUnits: the package is installed on a copy of this system, keys
// are made as docs/deployment.md says, and each unit is started with its settings, by a
// plain supervisor. A run completes, is read over HTTP, and retention makes a pass. It is
// not parallel: docker-compose.yml publishes the ports that the page has, too.
func TestDebianPackageRunsItsUnits(t *testing.T) {
	system := process{root: copySystem(t, "package"), env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}}
	install(t, system)
	page, err := os.ReadFile("../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	commands := regexp.MustCompile(`(?m)^    sudo (sh -c '.+'|refold roles --file .+|chmod .+|chown .+)$`).FindAllStringSubmatch(string(page), -1)
	if roles == nil || len(commands) < 7 {
		t.Fatalf("docs/deployment.md has a file of roles: %t, and %d commands with which keys are made", roles != nil, len(commands))
	}
	if err := os.WriteFile(system.root+"/etc/refold/roles.yaml", roles[1], 0o600); err != nil {
		t.Fatal(err)
	}
	token := ""
	for _, c := range commands {
		out, status := system.run(t, time.Minute, "/bin/sh", "-c", c[1])
		if status != 0 {
			t.Fatalf("%s: status %d: %s", c[1], status, out)
		}
		if m := regexp.MustCompile(`shows again: (\S+)`).FindStringSubmatch(out); m != nil {
			token = m[1]
		}
	}
	startNATS(t, "package", fmt.Sprintf("include %q", rel(t, filepath.Join(system.root, "etc/refold/roles/server/accounts.conf"))), []int{4222, 8222})
	addSettings(t, system, "bridge-models.env", "OPENAI_API_KEY=k", "OPENAI_BASE_URL="+serveModel(t, "127.0.0.1:0"))

	startUnit(t, system, "refold-session-actor.service", "").says(t, "session_actor_starts")
	for _, instance := range instances {
		startUnit(t, system, "refold-bridge@.service", instance).says(t, "prefix=refold")
	}
	startUnit(t, system, "refold-serve.service", "").says(t, "The HTTP API is at")
	out, status := system.run(t, endWithin, "/usr/bin/refold", "--context", "/etc/refold/roles/users/refold/client/context.json",
		"run", "s1", "--provider", "openai", "--model", "gpt-4.1", "write ledger")
	if status != 0 || !strings.Contains(out, "The end, with 0 unknown.") {
		t.Errorf("a run: status %d: %s", status, out)
	}
	if text := get(t, "http://127.0.0.1:8080/v1/sessions/s1/runs/1", token); !strings.Contains(text, `"lifecycle":"completed"`) {
		t.Errorf("over HTTP the run is %s", text)
	}
	pass := startUnit(t, system, "refold-retain.service", "")
	select {
	case <-pass.ended:
		if status := pass.ProcessState.ExitCode(); status != 0 {
			t.Errorf("refold-retain: status %d", status)
		}
	case <-time.After(time.Minute):
		t.Error("refold-retain does not end within a minute")
	}
}

// copySystem mounts a copy of this system: what is written there is nowhere else.
func copySystem(t *testing.T, name string) (root string) {
	t.Helper()
	dir := filepath.Join(scratch, name)
	root = filepath.Join(dir, "root")
	for _, sub := range []string{"upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mount("overlay", root, "overlay", 0, fmt.Sprintf("lowerdir=/,upperdir=%[1]s/upper,workdir=%[1]s/work", dir)); err != nil {
		t.Fatalf("mount overlay: %v: the kernel needs overlayfs", err)
	}
	mountKernel(t, root)
	mountEmpty(t, root+"/run", "mode=0755")
	return root
}

// install installs the package, and checks what the units name.
func install(t *testing.T, system process) {
	t.Helper()
	const file = "/run/refold.deb"
	content, err := os.ReadFile(filepath.Join(dist, "refold_"+version[1:]+"_"+runtime.GOARCH+".deb"))
	if err == nil {
		err = os.WriteFile(system.root+file, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, status := system.run(t, time.Minute, "/usr/bin/dpkg", "--install", file); status != 0 {
		t.Fatalf("dpkg --install: status %d: %s", status, out)
	}
	if out, _ := system.run(t, time.Minute, "/usr/bin/refold", "version"); out != "refold "+version+"\n" {
		t.Errorf("refold version prints %q, want %s", out, version)
	}
	units, err := filepath.Glob("../systemd/*.service")
	if err != nil || len(units) != 4 {
		t.Errorf("%d units, %v: this test starts four", len(units), err)
	}
	timer := options(t, system, "refold-retain.timer")
	if len(timer["OnCalendar"]) != 1 {
		t.Errorf("the timer is due at %v", timer["OnCalendar"])
	}
}

// options are those of an installed unit, by name.
func options(t *testing.T, system process, name string) map[string][]string {
	t.Helper()
	f, err := os.Open(filepath.Join(system.root, "usr/lib/systemd/system", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := unit.DeserializeOptions(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	by := map[string][]string{}
	for _, o := range all {
		by[o.Name] = append(by[o.Name], o.Value)
	}
	return by
}

// startUnit starts what a unit of type simple or oneshot names, as systemd would: its
// user, its directory for files, its environment, and its command line.
func startUnit(t *testing.T, system process, name, instance string) *daemon {
	t.Helper()
	o := options(t, system, name)
	one := func(option string) string {
		if values := o[option]; len(values) == 1 {
			return strings.ReplaceAll(values[0], "%i", instance)
		}
		t.Fatalf("%s: %s is %q, want one value", name, option, o[option])
		return ""
	}
	p := system
	p.uid, p.gid = ids(t, system, one("User"))
	env := settingsOf(t, system, one("EnvironmentFile"))
	for key, value := range env {
		p.env = append(slices.Clone(p.env), key+"="+value)
	}
	if len(o["StateDirectory"]) > 0 {
		dir := filepath.Join(system.root, "var/lib", one("StateDirectory"))
		mode, err := strconv.ParseUint(one("StateDirectoryMode"), 8, 32)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err == nil {
			err = os.Chmod(dir, os.FileMode(mode))
		}
		if err == nil {
			err = os.Chown(dir, int(p.uid), int(p.gid))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var argv []string
	for _, word := range strings.Fields(one("ExecStart")) {
		if key, ok := strings.CutPrefix(word, "$"); ok {
			argv = append(argv, strings.Fields(env[key])...)
		} else {
			argv = append(argv, word)
		}
	}
	return p.pivoted().daemon(t, p.found(t, argv)...)
}

// ids finds a user that the package has made.
func ids(t *testing.T, system process, user string) (uid, gid uint32) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(system.root, "etc/passwd"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + user + `:[^:]*:(\d+):(\d+):`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("the package has made no user %s", user)
	}
	u, _ := strconv.ParseUint(string(m[1]), 10, 32)
	g, _ := strconv.ParseUint(string(m[2]), 10, 32)
	return uint32(u), uint32(g)
}

// settingsOf reads a file of settings.
func settingsOf(t *testing.T, system process, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(system.root, path))
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && key[0] != '#' {
			env[key] = strings.Trim(value, `"`)
		}
	}
	return env
}

// addSettings does what an administrator does in an editor.
func addSettings(t *testing.T, system process, name string, lines ...string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(system.root, "etc/refold", name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.WriteString(f, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
}

// rel is a path as an include of the server's configuration names it.
func rel(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Rel(filepath.Join(scratch, "nats-package"), path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func get(t *testing.T, url, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
