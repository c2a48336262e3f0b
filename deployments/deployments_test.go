// Package deployments_test checks what can be checked about the containers without
// an engine that runs them.
package deployments_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"openbot/config"
)

type service struct {
	Image       string
	Build       struct{ Context, Dockerfile string }
	Command     any
	Environment map[string]string
	Ports       []string
	ReadOnly    bool `yaml:"read_only"`
	Deploy      struct{ Replicas int }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Healthcheck struct{ Test []string }
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func compose(t *testing.T) map[string]service {
	t.Helper()
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal([]byte(read(t, "../docker-compose.yml")), &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// ours are the services that run OpenBot, with the command of each.
var ours = map[string][]any{
	"migrate": {"migrate", "up"}, "api": {"api"}, "worker": {"worker"}, "scheduler": {"scheduler"},
}

func TestEveryRoleRunsWithSettingsThatOpenBotKnows(t *testing.T) {
	services := compose(t)
	if len(services) != len(ours)+2 {
		t.Errorf("there are %d services, want OpenBot's, PostgreSQL and Redis", len(services))
	}
	for name, command := range ours {
		s := services[name]
		if got, ok := s.Command.([]any); !ok || !slices.Equal(got, command) {
			t.Errorf("%s runs %v, want %v", name, s.Command, command)
		}
		if !s.ReadOnly {
			t.Errorf("%s may write to its image", name)
		}
		for variable := range s.Environment {
			if !slices.Contains(config.Variables(), variable) {
				t.Errorf("%s sets %s, which is no setting", name, variable)
			}
		}
		// The start itself says whether the values fit together.
		role := name
		if name == "migrate" {
			role = "worker"
		}
		c, err := config.LoadRole("../config/example.yaml", filledIn(s.Environment), role)
		if err != nil {
			t.Errorf("%s would not start: %v", name, err)
		}
		if c.DatabaseURL.IsZero() || c.RedisURL.IsZero() {
			t.Errorf("%s has no database or no Redis", name)
		}
	}
	for _, name := range []string{"api", "worker", "scheduler"} {
		if got := services[name].DependsOn["migrate"].Condition; got != "service_completed_successfully" {
			t.Errorf("%s waits for migrate to be %q", name, got)
		}
	}
	if services["worker"].Deploy.Replicas != 2 || services["scheduler"].Deploy.Replicas != 2 {
		t.Error("worker and scheduler must run twice")
	}
}

var reference = regexp.MustCompile(`\$\{([A-Z_]+)(:[-?])?([^}]*)\}`)

// filledIn gives the environment as it is with a secret for everything required and
// the default for the rest.
func filledIn(environment map[string]string) []string {
	var environ []string
	for name, value := range environment {
		value = reference.ReplaceAllStringFunc(value, func(text string) string {
			part := reference.FindStringSubmatch(text)
			if part[2] == ":?" {
				return strings.Repeat("s", 32)
			}
			return part[3]
		})
		environ = append(environ, name+"="+value)
	}
	return environ
}

func TestOnlyTheAPIIsPublishedAndOnlyHere(t *testing.T) {
	for name, s := range compose(t) {
		switch {
		case name == "api" && !slices.Equal(s.Ports, []string{"127.0.0.1:8080:8080"}):
			t.Errorf("the API is published as %v", s.Ports)
		case name != "api" && len(s.Ports) > 0:
			t.Errorf("%s is published as %v", name, s.Ports)
		}
	}
}

func TestTheServersBelowAreSetUpAsOpenBotNeedsThem(t *testing.T) {
	services := compose(t)
	if postgres := services["postgres"]; postgres.Image != "postgres:15" || len(postgres.Healthcheck.Test) == 0 {
		t.Errorf("got %+v", postgres)
	}
	redis := services["redis"]
	command, _ := redis.Command.(string)
	if redis.Image != "redis:7" || len(redis.Healthcheck.Test) == 0 {
		t.Errorf("got %+v", redis)
	}
	for _, want := range []string{"--appendonly yes", "--maxmemory-policy noeviction", "--requirepass"} {
		if !strings.Contains(command, want) {
			t.Errorf("Redis runs as %q, without %q", command, want)
		}
	}
}

func TestSecretsAreRequiredAndTheExampleNamesEveryVariable(t *testing.T) {
	text := read(t, "../docker-compose.yml")
	used := map[string]string{}
	for _, part := range reference.FindAllStringSubmatch(text, -1) {
		used[part[1]] = part[2]
	}
	for _, secret := range []string{"OPENBOT_SECRET_KEY", "POSTGRES_PASSWORD", "REDIS_PASSWORD"} {
		if used[secret] != ":?" {
			t.Errorf("%s is not required", secret)
		}
	}
	example := map[string]bool{}
	for line := range strings.Lines(read(t, "env.example")) {
		if name, _, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			example[name] = true
			if _, ok := used[name]; !ok {
				t.Errorf("env.example sets %s, which nothing reads", name)
			}
		}
	}
	for name := range used {
		if !example[name] {
			t.Errorf("env.example does not name %s", name)
		}
	}
	// A bare $NAME would be empty without a word.
	if bare := regexp.MustCompile(`\$[A-Za-z_]`).FindString(text); bare != "" {
		t.Errorf("%q does not say what happens when it is not set", bare)
	}
}

func TestTheImage(t *testing.T) {
	text := read(t, "Dockerfile")
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	if version == nil {
		t.Fatal("go.mod names no version")
	}
	for _, want := range []string{
		"FROM golang:" + version[1] + "-", "CGO_ENABLED=0", "-tags nomsgpack", "FROM scratch",
		"ca-certificates.crt", "USER 65532:65532", `ENTRYPOINT ["/openbot"]`, `CMD ["serve"]`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
	for _, part := range regexp.MustCompile(`(?m)^ENV (OPENBOT_\w+)=`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(config.Variables(), part[1]) {
			t.Errorf("the Dockerfile sets %s, which is no setting", part[1])
		}
	}
	for name := range ours {
		build := compose(t)[name].Build
		if _, err := os.Stat(filepath.Join("..", build.Context, build.Dockerfile)); err != nil || build.Dockerfile == "" {
			t.Errorf("%s is built from %q: %v", name, build.Dockerfile, err)
		}
	}
}

func TestNoSecretReachesTheBuilder(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(read(t, "../.dockerignore")), "\n")
	if !slices.Contains(lines, "*") {
		t.Fatal(".dockerignore does not leave everything out at first")
	}
	for _, line := range lines {
		if name, ok := strings.CutPrefix(line, "!"); ok && slices.Contains([]string{".env", "data", ".git", "openbot.yaml"}, name) {
			t.Errorf(".dockerignore lets %s in", name)
		}
	}
	// Every folder with a package of the server must get in, or the image does not build.
	entries, err := os.ReadDir("..")
	if err != nil {
		t.Fatal(err)
	}
	outside := []string{"bench", "build", "data", "deployments"}
	for _, entry := range entries {
		sources, _ := filepath.Glob(filepath.Join("..", entry.Name(), "*.go"))
		if entry.IsDir() && len(sources) > 0 && !slices.Contains(outside, entry.Name()) && !slices.Contains(lines, "!"+entry.Name()) {
			t.Errorf(".dockerignore leaves out the package %s", entry.Name())
		}
	}
}

// TestTheCommandsExist looks at the commands that the program offers.
func TestTheCommandsExist(t *testing.T) {
	sources, err := filepath.Glob("../*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no source of the commands was found: %v", err)
	}
	var text strings.Builder
	for _, source := range sources {
		text.WriteString(read(t, source))
	}
	offered := map[string]bool{}
	for _, part := range regexp.MustCompile(`(?:Use:\s+|roleCommand\(|run\()"([a-z]+)`).FindAllStringSubmatch(text.String(), -1) {
		offered[part[1]] = true
	}
	for _, command := range []string{"serve", "migrate", "up", "api", "worker", "scheduler"} {
		if !offered[command] {
			t.Errorf("the program offers no command %s", command)
		}
	}
}
