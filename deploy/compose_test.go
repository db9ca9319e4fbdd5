package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// compose is what the checks read of docker-compose.yml.
type compose struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Image string `yaml:"image"`
	Build struct {
		Dockerfile string `yaml:"dockerfile"`
		Target     string `yaml:"target"`
	} `yaml:"build"`
	Command     []string                  `yaml:"command"`
	Ports       []string                  `yaml:"ports"`
	Volumes     []string                  `yaml:"volumes"`
	DependsOn   map[string]map[string]any `yaml:"depends_on"`
	Healthcheck map[string]any            `yaml:"healthcheck"`
	Environment map[string]string         `yaml:"environment"`
	Profiles    []string                  `yaml:"profiles"`

	User        string   `yaml:"user"`
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
}

// isNATS says whether the service is a server, and no program of Refold's.
func (s service) isNATS() bool { return s.Build.Target == "nats" }

// isDaemon says whether it is a session-actor or a bridge.
func (s service) isDaemon() bool {
	return s.Build.Target == "session-actor" || s.Build.Target == "bridge"
}

// TestComposeFileIsConsistent: everything that docker-compose.yml names exists,
// services wait only for services with a health check, and no port is open to
// other machines.
func TestComposeFileIsConsistent(t *testing.T) {
	t.Parallel()
	c, dockerfile := readCompose(t), readDockerfile(t)
	counts := map[string]int{}
	for name, s := range c.Services {
		counts[strings.TrimRight(name, "-0123456789")]++
		switch {
		case s.Build.Target == "":
			if !pinned.MatchString(s.Image) {
				t.Errorf("%s: image %q has no version", name, s.Image)
			}
		case !strings.Contains(dockerfile, " AS "+s.Build.Target+"\n"):
			t.Errorf("%s: %s has no stage %q", name, s.Build.Dockerfile, s.Build.Target)
		case s.Build.Dockerfile != "deploy/Dockerfile":
			t.Errorf("%s: built from %q", name, s.Build.Dockerfile)
		}
		for other, how := range s.DependsOn {
			waited, ok := c.Services[other]
			if !ok {
				t.Errorf("%s: waits for %s, which is no service", name, other)
			}
			if how["condition"] == "service_healthy" && waited.Healthcheck == nil {
				t.Errorf("%s: waits for %s to be healthy, which has no health check", name, other)
			}
		}
		for _, v := range s.Volumes {
			checkVolume(t, name, v, c.Volumes)
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %q is open to other machines", name, p)
			}
		}
	}
	for kind, want := range map[string]int{"nats": 3, "session-actor": 2, "models": 2, "tools": 2, "roles": 1} {
		if got := counts[kind]; got != want {
			t.Errorf("%d services of kind %s, want %d", got, kind, want)
		}
	}
}

// userID is the user and group of all containers: a number, so that
// orchestrators can see that it is not root.
const userID = "10001:10001"

// TestContainersAreConfined: no container runs as root or can become root. It
// writes only to volumes, whose directories its image creates for it.
func TestContainersAreConfined(t *testing.T) {
	t.Parallel()
	for name, s := range readCompose(t).Services {
		if s.User != userID || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Equal(s.SecurityOpt, []string{"no-new-privileges:true"}) {
			t.Errorf("%s runs as %q, read-only %t, without %v, with %v", name, s.User, s.ReadOnly, s.CapDrop, s.SecurityOpt)
		}
		user, owned := stage(t, s.Build.Target)
		if user != userID {
			t.Errorf("%s: the image's user is %q, want %s", name, user, userID)
		}
		for _, v := range s.Volumes {
			if at := strings.Split(v, ":"); !strings.HasPrefix(v, ".") && !slices.Contains(owned, at[1]) {
				t.Errorf("%s: the image has no %s that belongs to its user", name, at[1])
			}
		}
	}
}

// stage reads the last user of a stage of the Dockerfile, and the directories
// that it gives to that user.
func stage(t *testing.T, name string) (user string, owned []string) {
	t.Helper()
	text := readDockerfile(t)
	from := regexp.MustCompile(`(?m)^FROM (\S+) AS ` + name + `$`).FindStringSubmatchIndex(text)
	if from == nil {
		return "", nil
	}
	if parent := text[from[2]:from[3]]; !strings.Contains(parent, ":") {
		user, owned = stage(t, parent)
	}
	text, _, _ = strings.Cut(text[from[1]:], "\nFROM ")
	for _, m := range regexp.MustCompile(`(?m)^USER (\S+)$`).FindAllStringSubmatch(text, -1) {
		user = m[1]
	}
	for _, m := range regexp.MustCompile(`install -d -o 10001 -g 10001 -m 0700((?:[\s\\]+/\S+)+)`).FindAllStringSubmatch(text, -1) {
		owned = append(owned, strings.Fields(strings.ReplaceAll(m[1], "\\", ""))...)
	}
	return user, owned
}

// TestDaemonsDeclareTheServersDurability: the daemons' flags say that the servers
// sync every write, as deploy/nats.conf configures, and name each server.
func TestDaemonsDeclareTheServersDurability(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	asked := 0
	for name, s := range c.Services {
		if !s.isDaemon() {
			continue
		}
		asked++
		if got, want := s.Environment["REFOLD_DURABILITY"], "always"; got != want {
			t.Errorf("%s: REFOLD_DURABILITY is %q, want %q", name, got, want)
		}
		at := slices.Index(s.Command, "--monitor")
		if at < 0 || at+1 == len(s.Command) {
			t.Errorf("%s: asks no server how it syncs", name)
			continue
		}
		for other, of := range c.Services {
			if of.isNATS() && !strings.Contains(s.Command[at+1], "http://"+other+":8222") {
				t.Errorf("%s: does not ask %s how it syncs", name, other)
			}
		}
	}
	if want := 6; asked != want {
		t.Errorf("%d daemons, want %d", asked, want)
	}
}

// TestComposeCommandsAreValid: the service roles writes the keys that the
// others mount, and every daemon accepts its flags in docker-compose.yml and
// the config file of its user. --version makes it read them and exit.
func TestComposeCommandsAreValid(t *testing.T) {
	t.Parallel()
	type run struct{ program, flags string }
	seen, dir := map[run]bool{}, t.TempDir()
	execute := func(name, program string, command []string, more ...string) {
		args := slices.Concat([]string{"run", "../cmd/" + program}, command, more)
		for i, arg := range args {
			args[i] = strings.Replace(arg, "/roles", dir, 1)
		}
		if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %s %q: %v\n%s", name, program, command, err, out)
		}
	}
	services := readCompose(t).Services
	execute("roles", "refold", services["roles"].Command)
	for name, s := range services {
		checkKeys(t, name, s, dir)
		of := run{s.Build.Target, strings.Join(s.Command, " ")}
		if !s.isDaemon() || seen[of] {
			continue
		}
		seen[of] = true
		execute(name, of.program, s.Command, "--version")
	}
	if got, want := len(seen), 3; got != want {
		t.Errorf("%d programs with flags, want %d", got, want)
	}
}

// checkKeys: a service that is a user mounts the files of that user, read-only,
// and no other key. A server mounts what all servers share, and its own certificate.
func checkKeys(t *testing.T, name string, s service, dir string) {
	t.Helper()
	var seen []string
	for _, v := range s.Volumes {
		source, at, _ := strings.Cut(v, ":")
		if !strings.HasPrefix(source, "roles") || name == "roles" {
			continue
		}
		path, readOnly := strings.CutSuffix(at, ":ro")
		if seen = append(seen, path); !readOnly {
			t.Errorf("%s may write to %s", name, path)
		}
		switch {
		case source == "roles-server":
		case s.isNATS():
			if number, ok := strings.CutPrefix(source, "roles-tls"); !ok || name != "nats"+number {
				t.Errorf("%s mounts %s, which belongs to another service", name, source)
			}
			if _, err := os.Stat(filepath.Join(dir, "tls", name, "server.pem")); err != nil {
				t.Errorf("%s mounts a certificate that the service roles does not write: %v", name, err)
			}
		default:
			if _, err := os.Stat(strings.Replace(path, "/roles", dir, 1) + "/seed.nk"); err != nil {
				t.Errorf("%s mounts keys that the service roles does not write: %v", name, err)
			}
		}
	}
	want := 1
	if s.isNATS() {
		want = 2
	}
	if name != "roles" && len(seen) != want {
		t.Errorf("%s sees %q, want the files of one user or server", name, seen)
	}
}

var pinned = regexp.MustCompile(`^[a-z/]+:\d+\.\d+\.\d+`)

// checkVolume: a volume is declared, or it is a file next to docker-compose.yml.
func checkVolume(t *testing.T, service, v string, declared map[string]any) {
	t.Helper()
	source, _, _ := strings.Cut(v, ":")
	if strings.HasPrefix(source, ".") {
		if _, err := os.Stat(filepath.Join("..", source)); err != nil {
			t.Errorf("%s: mounts a file that isn't there: %v", service, err)
		}
		return
	}
	if _, ok := declared[source]; !ok {
		t.Errorf("%s: volume %q is not declared", service, source)
	}
}

// TestDockerfileIsConsistent: its images have versions, it copies programs that it
// builds from folders that exist, and it builds with Go of at least the version in
// go.mod.
func TestDockerfileIsConsistent(t *testing.T) {
	t.Parallel()
	text := readDockerfile(t)
	var stages []string
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+) AS (\S+)$`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(stages, m[1]) && !regexp.MustCompile(`:\d+\.\d+`).MatchString(m[1]) {
			t.Errorf("image %s has no version", m[1])
		}
		stages = append(stages, m[2])
	}
	if got, want := len(stages), strings.Count("\n"+text, "\nFROM "); got != want || got == 0 {
		t.Errorf("read %d stages of %d", got, want)
	}
	var built []string
	for _, m := range regexp.MustCompile(`-o (/out/\S+) \./(\S+)`).FindAllStringSubmatch(text, -1) {
		built = append(built, m[1])
		if _, err := os.Stat(filepath.Join("..", m[2])); err != nil {
			t.Errorf("builds a program that isn't there: %v", err)
		}
	}
	for _, m := range regexp.MustCompile(`COPY --from=build (\S+) `).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(built, m[1]) {
			t.Errorf("copies %s, and builds %q", m[1], built)
		}
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	wants := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))
	if wants == nil || !strings.Contains(text, "FROM golang:"+wants[1]+".") {
		t.Errorf("go.mod asks for Go %v; the Dockerfile builds with another", wants)
	}
}

func readCompose(t *testing.T) compose {
	t.Helper()
	text, err := os.ReadFile("../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func readDockerfile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
