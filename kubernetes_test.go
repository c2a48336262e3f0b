package main

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"openbot/config"
)

const manifests = "deployments/kubernetes"

type labels map[string]string

// covers reports whether a selector picks something with these labels.
func (selector labels) covers(l labels) bool {
	for k, v := range selector {
		if l[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

type container struct {
	Args    []string
	EnvFrom []struct {
		ConfigMapRef struct{ Name string } `yaml:"configMapRef"`
		SecretRef    struct{ Name string } `yaml:"secretRef"`
	} `yaml:"envFrom"`
	Ports []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe   probe `yaml:"startupProbe"`
	LivenessProbe  probe `yaml:"livenessProbe"`
	ReadinessProbe probe `yaml:"readinessProbe"`
	Resources      struct{ Requests, Limits map[string]string }
	Security       struct {
		Escalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
		Caps       struct {
			Drop []string
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	VolumeMounts []struct {
		MountPath string `yaml:"mountPath"`
	} `yaml:"volumeMounts"`
}

type manifest struct {
	Kind     string
	Metadata struct {
		Name   string
		Labels labels
	}
	Data map[string]string
	Spec struct {
		Replicas    *int
		Selector    yaml.Node
		PodSelector struct {
			MatchLabels labels `yaml:"matchLabels"`
		} `yaml:"podSelector"`
		Ports []struct {
			TargetPort string `yaml:"targetPort"`
		}
		Target  struct{ Kind, Name string } `yaml:"scaleTargetRef"`
		Min     int                         `yaml:"minReplicas"`
		Max     int                         `yaml:"maxReplicas"`
		Metrics []struct {
			External struct{ Metric struct{ Name string } }
		}
		Template struct {
			Metadata struct{ Labels labels }
			Spec     struct {
				Grace    int `yaml:"terminationGracePeriodSeconds"`
				Security struct {
					NonRoot bool `yaml:"runAsNonRoot"`
					User    int  `yaml:"runAsUser"`
				} `yaml:"securityContext"`
				Containers []container
			}
		}
	}
}

// picks gives the selector of a manifest, in either of its two forms.
func (m manifest) picks(t *testing.T) labels {
	t.Helper()
	if m.Kind == "NetworkPolicy" {
		return m.Spec.PodSelector.MatchLabels
	}
	var wrapped struct {
		MatchLabels labels `yaml:"matchLabels"`
	}
	if err := m.Spec.Selector.Decode(&wrapped); err == nil && wrapped.MatchLabels != nil {
		return wrapped.MatchLabels
	}
	var plain labels
	must(t, m.Spec.Selector.Decode(&plain))
	return plain
}

// kubernetes reads every manifest that the kustomization names, and sees to it that it
// names them all.
func kubernetes(t *testing.T) []manifest {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(manifests, "kustomization.yaml"))
	must(t, err)
	var top struct{ Resources []string }
	must(t, yaml.Unmarshal(raw, &top))
	files, err := filepath.Glob(filepath.Join(manifests, "*.yaml"))
	must(t, err)
	if len(files) != len(top.Resources)+1 {
		t.Errorf("kustomization.yaml names %v, the folder holds %v", top.Resources, files)
	}
	var all []manifest
	for _, name := range top.Resources {
		raw, err := os.ReadFile(filepath.Join(manifests, name))
		must(t, err)
		decoder := yaml.NewDecoder(bytes.NewReader(raw))
		for {
			var m manifest
			err := decoder.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if m.Kind == "" || m.Metadata.Name == "" {
				t.Errorf("%s holds something without kind or name", name)
			}
			all = append(all, m)
		}
	}
	return all
}

func ofKind(all []manifest, kind string) map[string]manifest {
	found := map[string]manifest{}
	for _, m := range all {
		if m.Kind == kind {
			found[m.Metadata.Name] = m
		}
	}
	return found
}

func TestKubernetesRunsCommandsAndSettingsThatOpenBotHas(t *testing.T) {
	all := kubernetes(t)
	settings := ofKind(all, "ConfigMap")["openbot"].Data
	environ := []string{"DATABASE_URL=postgres://openbot@db:5432/openbot", "REDIS_URL=redis://redis:6379/0", "OPENBOT_SECRET_KEY=" + strings.Repeat("s", 32)}
	for name, value := range settings {
		if !slices.Contains(config.Variables(), name) {
			t.Errorf("the ConfigMap sets %s, which is no setting", name)
		}
		environ = append(environ, name+"="+value)
	}
	deployments := ofKind(all, "Deployment")
	if got := slices.Sorted(maps.Keys(deployments)); !slices.Equal(got, []string{"openbot-api", "openbot-scheduler", "openbot-worker"}) {
		t.Errorf("the Deployments are %v", got)
	}
	maps.Copy(deployments, ofKind(all, "Job"))
	for name, m := range deployments {
		if len(m.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("%s has %d containers", name, len(m.Spec.Template.Spec.Containers))
		}
		c := m.Spec.Template.Spec.Containers[0]
		found, rest, err := command().Find(c.Args)
		if err != nil || !found.Runnable() || found.ParseFlags(rest) != nil || len(found.Flags().Args()) > 0 {
			t.Errorf("%s runs %v, which the program does not take: %v", name, c.Args, err)
		}
		role := c.Args[0]
		if role == "migrate" {
			role = "scheduler"
		}
		if role != m.Spec.Template.Metadata.Labels["app.kubernetes.io/component"] && c.Args[0] != "migrate" {
			t.Errorf("%s is labelled as another role", name)
		}
		cfg, err := config.LoadRole("config/example.yaml", environ, role)
		if err != nil {
			t.Errorf("%s would not start: %v", name, err)
		}
		if len(c.EnvFrom) != 2 || c.EnvFrom[0].ConfigMapRef.Name != "openbot" || c.EnvFrom[1].SecretRef.Name != "openbot" {
			t.Errorf("%s takes its settings from %+v", name, c.EnvFrom)
		}
		for _, p := range c.Ports {
			if !strings.HasSuffix(cfg.Listen, ":8080") || p.ContainerPort != 8080 || p.Name != "http" {
				t.Errorf("%s listens on %s and names port %+v", name, cfg.Listen, p)
			}
		}
		written := map[string]bool{}
		for _, v := range c.VolumeMounts {
			written[v.MountPath] = true
		}
		if !written[cfg.Data] || !written["/tmp"] {
			t.Errorf("%s cannot write to %s or /tmp", name, cfg.Data)
		}
	}
}

func TestKubernetesLetsNothingRunAsRootOrWithoutBounds(t *testing.T) {
	all := kubernetes(t)
	running := ofKind(all, "Deployment")
	maps.Copy(running, ofKind(all, "Job"))
	for name, m := range running {
		pod := m.Spec.Template.Spec
		c := pod.Containers[0]
		if !pod.Security.NonRoot || pod.Security.User == 0 || !c.Security.ReadOnly || c.Security.Escalation == nil || *c.Security.Escalation ||
			!slices.Equal(c.Security.Caps.Drop, []string{"ALL"}) {
			t.Errorf("%s has rights that it does not need: %+v %+v", name, pod.Security, c.Security)
		}
		if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" || c.Resources.Limits["memory"] == "" {
			t.Errorf("%s has no bounds: %+v", name, c.Resources)
		}
		if pod.Grace <= int(stopWithin.Seconds()) {
			t.Errorf("%s is killed after %d s, and a stop may take %s", name, pod.Grace, stopWithin)
		}
	}
}

func TestKubernetesProbesWhatIsServedAndScalesOnWhatIsShown(t *testing.T) {
	all := kubernetes(t)
	app, err := Open(t.Context(), Options{Config: backend{name: "SQLite"}.settings(t.TempDir()), Role: "serve", Out: io.Discard, Logger: testLogger(t)})
	must(t, err)
	t.Cleanup(func() { must(t, app.Close()) })
	for name, m := range ofKind(all, "Deployment") {
		handler := app.server.Handler
		if name != "openbot-api" {
			handler = healthOnly(handler)
		}
		c := m.Spec.Template.Spec.Containers[0]
		for _, p := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequest("GET", "/"+strings.TrimPrefix(p.HTTPGet.Path, "/"), nil))
			if w.Code != 200 || p.HTTPGet.Port != "http" {
				t.Errorf("%s probes %+v, which gives %d", name, p.HTTPGet, w.Code)
			}
		}
		if c.LivenessProbe.HTTPGet.Path != "/healthz" {
			t.Errorf("%s is restarted when the database is away", name)
		}
	}
	w := httptest.NewRecorder()
	app.server.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	scaler := ofKind(all, "HorizontalPodAutoscaler")["openbot-worker"].Spec
	if scaler.Target.Name != "openbot-worker" || scaler.Min < 2 || scaler.Max <= scaler.Min || len(scaler.Metrics) != 1 {
		t.Fatalf("the autoscaler is %+v", scaler)
	}
	if metric := scaler.Metrics[0].External.Metric.Name; metric == "" || !strings.Contains(w.Body.String(), "\n"+metric+"{") {
		t.Errorf("/metrics shows no %q", metric)
	}
	if ofKind(all, "Deployment")["openbot-worker"].Spec.Replicas != nil {
		t.Error("the Deployment of workers would undo what the autoscaler set")
	}
}

func TestKubernetesSelectorsPickWhatTheyMean(t *testing.T) {
	all := kubernetes(t)
	running := ofKind(all, "Deployment")
	for name, m := range running {
		if !m.picks(t).covers(m.Spec.Template.Metadata.Labels) {
			t.Errorf("%s does not pick its own pods", name)
		}
		budget, ok := ofKind(all, "PodDisruptionBudget")[name]
		if !ok || !budget.picks(t).covers(m.Spec.Template.Metadata.Labels) {
			t.Errorf("%s has no disruption budget of its own", name)
		}
	}
	service := ofKind(all, "Service")["openbot"]
	for name, m := range running {
		if service.picks(t).covers(m.Spec.Template.Metadata.Labels) != (name == "openbot-api") {
			t.Errorf("the Service and %s do not fit", name)
		}
	}
	if len(service.Spec.Ports) != 1 || service.Spec.Ports[0].TargetPort != "http" {
		t.Errorf("the Service goes to %+v", service.Spec.Ports)
	}
	policies := ofKind(all, "NetworkPolicy")
	if len(policies) != 3 {
		t.Errorf("there are %d network policies", len(policies))
	}
	for name, p := range policies {
		if p.picks(t)["app.kubernetes.io/name"] != "openbot" {
			t.Errorf("%s picks %v", name, p.picks(t))
		}
	}
}
