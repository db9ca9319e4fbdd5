// Package kubernetes_test checks deploy/kubernetes without a cluster: kustomize builds it,
// the API's own types read each object strictly, and Refold's programs take the arguments
// of their containers.
package kubernetes_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const manifests = "../../kubernetes"

// object is an object of the API, and what it says of pods.
type object struct {
	name   string
	typed  any
	pod    *core.PodSpec
	labels map[string]string // of the pods
	daemon bool              // its pods don't end
}

// read builds the folder and decodes every object.
func read(t *testing.T) (all []object) {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range built.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		o := decode(t, r.GetKind(), text)
		if o.name = r.GetKind() + "/" + r.GetName(); r.GetKind() != "Namespace" && r.GetNamespace() != "refold" {
			t.Errorf("%s is in the namespace %q", o.name, r.GetNamespace())
		}
		all = append(all, o)
	}
	return all
}

func decode(t *testing.T, kind string, text []byte) object {
	t.Helper()
	var o object
	into := func(v any) {
		if err := yaml.UnmarshalStrict(text, v); err != nil {
			t.Errorf("%s: %v\n%s", kind, err, text)
		}
		o.typed = v
	}
	switch kind {
	case "Deployment":
		d := &apps.Deployment{}
		into(d)
		o.pod, o.labels, o.daemon = &d.Spec.Template.Spec, d.Spec.Template.Labels, true
	case "CronJob":
		j := &batch.CronJob{}
		into(j)
		o.pod, o.labels = &j.Spec.JobTemplate.Spec.Template.Spec, j.Spec.JobTemplate.Spec.Template.Labels
	case "Job":
		j := &batch.Job{}
		into(j)
		o.pod, o.labels = &j.Spec.Template.Spec, j.Spec.Template.Labels
	case "Service":
		into(&core.Service{})
	case "ConfigMap":
		into(&core.ConfigMap{})
	case "Namespace":
		into(&core.Namespace{})
	case "NetworkPolicy":
		into(&networking.NetworkPolicy{})
	case "PodDisruptionBudget":
		into(&policy.PodDisruptionBudget{})
	default:
		t.Errorf("unknown kind %s: decode it here", kind)
	}
	return o
}

// TestKustomizationListsEachFile: a file that nobody lists is applied by nobody.
func TestKustomizationListsEachFile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(manifests, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var k kustomize.Kustomization
	if err := yaml.UnmarshalStrict(text, &k); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		if other := []string{"kustomization.yaml", "nats-values.yaml"}; !slices.Contains(other, name) && !slices.Contains(k.Resources, name) {
			t.Errorf("%s is not in kustomization.yaml", name)
		}
	}
}

// TestObjectsRefer: every pod is confined, mounts volumes that it has, and is probed where
// its program listens; a Service and a PodDisruptionBudget select pods that are there, and
// each Deployment has a budget.
func TestObjectsRefer(t *testing.T) {
	t.Parallel()
	all := read(t)
	selected := func(labels map[string]string) (found []string) {
		for _, o := range all {
			if o.pod != nil && includes(o.labels, labels) {
				found = append(found, o.name)
			}
		}
		return found
	}
	var budgets []string
	for _, o := range all {
		switch v := o.typed.(type) {
		case *core.Service:
			if len(selected(v.Spec.Selector)) != 1 {
				t.Errorf("%s selects the pods of %v", o.name, selected(v.Spec.Selector))
			}
		case *policy.PodDisruptionBudget:
			budgets = append(budgets, selected(v.Spec.Selector.MatchLabels)...)
		case *apps.Deployment:
			if !includes(o.labels, v.Spec.Selector.MatchLabels) {
				t.Errorf("%s does not select its pods", o.name)
			}
		}
	}
	maps := configMaps(all)
	for _, o := range all {
		if o.daemon && !slices.Contains(budgets, o.name) {
			t.Errorf("%s has no PodDisruptionBudget", o.name)
		}
		if o.pod != nil {
			checkPod(t, o, maps)
		}
	}
}

func configMaps(all []object) map[string]*core.ConfigMap {
	found := map[string]*core.ConfigMap{}
	for _, o := range all {
		if m, ok := o.typed.(*core.ConfigMap); ok {
			found[m.Name] = m
		}
	}
	return found
}

func checkPod(t *testing.T, o object, maps map[string]*core.ConfigMap) {
	t.Helper()
	if s := o.pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *s.RunAsUser != 10001 || s.SeccompProfile == nil {
		t.Errorf("%s may run as root", o.name)
	}
	volumes := map[string]bool{}
	for _, v := range o.pod.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && maps[v.ConfigMap.Name] == nil {
			t.Errorf("%s: no ConfigMap %s", o.name, v.ConfigMap.Name)
		}
	}
	for _, c := range o.pod.Containers {
		if s := c.SecurityContext; s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || len(s.Capabilities.Drop) != 1 {
			t.Errorf("%s: %s is not confined", o.name, c.Name)
		}
		if !strings.HasSuffix(c.Image, ":0.1.0") {
			t.Errorf("%s: image %s has no version", o.name, c.Image)
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] || !m.ReadOnly {
				t.Errorf("%s: mount %s", o.name, m.Name)
			}
		}
		if !o.daemon {
			continue
		}
		if !slices.Contains(c.Args, "--http=0.0.0.0:9464") {
			t.Errorf("%s serves no health: %q", o.name, c.Args)
		}
		for path, probe := range map[string]*core.Probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || !hasPort(c, probe.HTTPGet.Port.StrVal, 9464) {
				t.Errorf("%s: its probe of %s is %v", o.name, path, probe)
			}
		}
	}
}

func hasPort(c core.Container, name string, number int32) bool {
	return slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == name && p.ContainerPort == number })
}

func includes(labels, wanted map[string]string) bool {
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return len(wanted) > 0
}

// TestProgramsTakeTheArguments: each container's program accepts its arguments and its
// environment, with the keys that refold roles writes where the pod mounts them. Daemons
// read their flags and files and print the version; commands fail only because no server
// answers.
func TestProgramsTakeTheArguments(t *testing.T) {
	t.Parallel()
	bin, etc := t.TempDir(), t.TempDir()
	for name, folder := range map[string]string{"refold": "refold", "refold-full": "refold-full", "session-actor": "session-actor", "bridge": "bridge"} {
		command(t, "go", "build", "-C", "../../..", "-o", filepath.Join(bin, name), "./cmd/"+folder)
	}
	page, err := os.ReadFile("../../../docs/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	roles := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if roles == nil {
		t.Fatal("docs/deployment.md has no file of roles")
	}
	file := bytes.Replace(roles[1], []byte(":4222"), []byte(":1"), 1) // where no server is
	if err := os.WriteFile(filepath.Join(etc, "roles.yaml"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, filepath.Join(bin, "refold"), "roles", "--file", filepath.Join(etc, "roles.yaml"), "--dir", filepath.Join(etc, "roles"))
	all := read(t)
	retain := configMaps(all)["retain"]
	if retain == nil {
		t.Fatal("no ConfigMap retain")
	}
	for name, text := range map[string]string{"http/tokens.yaml": "tokens: []\n", "http/secret": strings.Repeat("s", 32), "retain/retain.yaml": retain.Data["retain.yaml"]} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(etc, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here := strings.NewReplacer("/etc/refold", etc, "0.0.0.0:", "127.0.0.1:1")
	ran := 0
	for _, o := range all {
		if o.pod == nil {
			continue
		}
		c := o.pod.Containers[0]
		for _, m := range c.VolumeMounts {
			if _, err := os.Stat(here.Replace(m.MountPath)); err != nil {
				t.Errorf("%s mounts what refold roles does not write: %v", o.name, err)
			}
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(c.Image, "refold/"), ":")
		args, want, status := append([]string(nil), c.Args...), "no NATS server answers", 1
		if name != "refold" {
			args, want, status = append(args, "--version"), "refold-"+name, 0
		}
		var env []string
		for _, e := range c.Env {
			env = append(env, e.Name+"="+here.Replace(e.Value))
		}
		for i := range args {
			args[i] = here.Replace(args[i])
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, name), args...)
		cmd.Env = append(os.Environ(), env...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: %s %q: status %d, want %d and %q: %s", o.name, name, args, got, status, want, out)
		}
		ran++
	}
	if ran != 5 {
		t.Errorf("%d programs ran, want 5", ran)
	}
}

func command(t *testing.T, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
}
