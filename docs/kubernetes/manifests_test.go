// Package kubernetes contains manifests, and this test of them. It is a separate module, because the service does not
// need Kubernetes' packages.
package kubernetes

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// manifests contains the objects of the files by kind, and also by name for kinds with several objects.
type manifests struct {
	deployment apps.Deployment
	service    core.Service
	ingress    networking.Ingress
	budget     policy.PodDisruptionBudget
	policies   []networking.NetworkPolicy
	claim      core.PersistentVolumeClaim
	backup     batch.CronJob
	secret     core.Secret
}

// read decodes both files into Kubernetes' own types. An unknown or repeated field is an error.
func read(t *testing.T) *manifests {
	t.Helper()
	m := &manifests{}
	kinds := map[string]any{
		"apps/v1 Deployment": &m.deployment, "v1 Service": &m.service, "networking.k8s.io/v1 Ingress": &m.ingress,
		"policy/v1 PodDisruptionBudget": &m.budget, "v1 PersistentVolumeClaim": &m.claim, "batch/v1 CronJob": &m.backup,
		"v1 Secret": &m.secret,
	}
	for _, file := range []string{"footfall.yaml", "secret.yaml"} {
		for _, document := range bytes.Split(must(os.ReadFile(file))(t), []byte("\n---\n")) {
			var kind meta.TypeMeta
			check(t, yaml.Unmarshal(document, &kind))
			name := kind.APIVersion + " " + kind.Kind
			into := kinds[name]
			if name == "networking.k8s.io/v1 NetworkPolicy" {
				m.policies = append(m.policies, networking.NetworkPolicy{})
				into = &m.policies[len(m.policies)-1]
			} else {
				delete(kinds, name) // one of each
			}
			if into == nil {
				t.Fatalf("%s: %s is not expected, or not again", file, name)
			}
			if err := yaml.UnmarshalStrict(document, into); err != nil {
				t.Fatalf("%s: %s: %v", file, name, err)
			}
		}
	}
	if len(kinds) > 0 {
		t.Fatalf("missing: %v", kinds)
	}
	return m
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return value
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Every name by which one object refers to another exists.
func TestObjectsFindEachOther(t *testing.T) {
	m := read(t)
	pods, copies := m.deployment.Spec.Template, m.backup.Spec.JobTemplate.Spec.Template
	if *m.deployment.Spec.Replicas != 2 {
		t.Error("there are two instances")
	}
	selects := func(what string, selector *meta.LabelSelector, of core.PodTemplateSpec, but core.PodTemplateSpec) {
		s := must(meta.LabelSelectorAsSelector(selector))(t)
		if !s.Matches(labels.Set(of.Labels)) || s.Matches(labels.Set(but.Labels)) {
			t.Errorf("%s selects pods %v, and not those with %v", what, s, of.Labels)
		}
	}
	selects("Deployment", m.deployment.Spec.Selector, pods, copies)
	selects("Service", &meta.LabelSelector{MatchLabels: m.service.Spec.Selector}, pods, copies)
	selects("PodDisruptionBudget", m.budget.Spec.Selector, pods, copies)
	for _, spread := range pods.Spec.TopologySpreadConstraints {
		selects("spread", spread.LabelSelector, pods, copies)
	}
	if len(m.policies) != 2 {
		t.Fatal("there are two policies")
	}
	selects("NetworkPolicy", &m.policies[0].Spec.PodSelector, pods, copies)
	selects("NetworkPolicy", &m.policies[1].Spec.PodSelector, copies, pods)

	has := func(port intstr.IntOrString) {
		t.Helper()
		if !slices.ContainsFunc(pods.Spec.Containers[0].Ports, func(p core.ContainerPort) bool { return p.Name == port.StrVal }) {
			t.Errorf("the container has no port %q", port.StrVal)
		}
	}
	for _, port := range m.service.Spec.Ports {
		has(port.TargetPort)
	}
	for _, rule := range m.policies[0].Spec.Ingress {
		has(*rule.Ports[0].Port)
	}
	for path, probe := range map[string]*core.Probe{
		"/livez": pods.Spec.Containers[0].LivenessProbe, "/readyz": pods.Spec.Containers[0].ReadinessProbe,
	} {
		if probe.HTTPGet.Path != path {
			t.Errorf("asked is %s, and not %s", probe.HTTPGet.Path, path)
		}
		has(probe.HTTPGet.Port)
	}
	backend := m.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if backend.Name != m.service.Name || backend.Port.Name != m.service.Spec.Ports[0].Name {
		t.Errorf("the Ingress leads to %v", backend)
	}
	if claimed := copies.Spec.Volumes[0].PersistentVolumeClaim.ClaimName; claimed != m.claim.Name {
		t.Errorf("claim %s does not exist", claimed)
	}
}

// Every key that pods read from the secret exists.
func TestSecretHasWhatIsRead(t *testing.T) {
	m := read(t)
	pods, copies := m.deployment.Spec.Template.Spec, m.backup.Spec.JobTemplate.Spec.Template.Spec
	has := func(name, key string) {
		t.Helper()
		if name != m.secret.Name || m.secret.StringData[key] == "" {
			t.Errorf("%s is missing in secret %s", key, name)
		}
	}
	for _, env := range slices.Concat(pods.Containers[0].Env, copies.Containers[0].Env) {
		if env.ValueFrom != nil {
			has(env.ValueFrom.SecretKeyRef.Name, env.ValueFrom.SecretKeyRef.Key)
		}
	}
	volume := pods.Volumes[0].Secret
	has(volume.SecretName, volume.Items[0].Key)
	if mount := pods.Containers[0].VolumeMounts[0]; mount.Name != pods.Volumes[0].Name {
		t.Errorf("volume %s does not exist", mount.Name)
	}
}

// No pod may do more than it needs.
func TestPodsAreConfined(t *testing.T) {
	m := read(t)
	for _, pod := range []core.PodSpec{m.deployment.Spec.Template.Spec, m.backup.Spec.JobTemplate.Spec.Template.Spec} {
		container := pod.Containers[0]
		inside := container.SecurityContext
		if !*pod.SecurityContext.RunAsNonRoot || *pod.AutomountServiceAccountToken || !*inside.ReadOnlyRootFilesystem ||
			*inside.AllowPrivilegeEscalation || !slices.Equal(inside.Capabilities.Drop, []core.Capability{"ALL"}) ||
			container.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s is not confined", container.Name)
		}
	}
}

// The names of settings are the program's, and images are those of the other files here.
func TestManifestsFitTheProject(t *testing.T) {
	m := read(t)
	var program strings.Builder
	for _, file := range []string{"main.go", "serve.go", "serveflags.go", "countries.go"} {
		program.Write(must(os.ReadFile("../../cmd/footfall/" + file))(t))
	}
	pod := m.deployment.Spec.Template.Spec
	for _, env := range pod.Containers[0].Env {
		if strings.HasPrefix(env.Name, "FOOTFALL_") && !strings.Contains(program.String(), `env:"`+env.Name+`"`) {
			t.Errorf("setting %s does not exist", env.Name)
		}
	}
	user := regexp.MustCompile(`(?m)^USER (\d+):(\d+)$`).FindSubmatch(must(os.ReadFile("../../Dockerfile"))(t))
	if want := strconv.FormatInt(*pod.SecurityContext.RunAsUser, 10); want != string(user[1]) {
		t.Errorf("the image's user is %s, and not %s", user[1], want)
	}
	compose := must(os.ReadFile("../../docker-compose.yml"))(t)
	if image := m.backup.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image; !strings.Contains(string(compose), "image: "+image+"\n") {
		t.Errorf("docker-compose.yml has another PostgreSQL than %s", image)
	}
}
