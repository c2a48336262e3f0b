package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"openbot/config"
)

const (
	someToken = "tok-0123456789-0123456789-0123456789"
	someKey   = "key-0123456789-0123456789-0123456789"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "openbot.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNothingSetGivesTheDefaults(t *testing.T) {
	t.Chdir(t.TempDir())
	got, err := config.Load("", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got != config.Default() {
		t.Errorf("got %+v, want the defaults", got)
	}
}

func TestTheDefaultFileIsReadWhenItIsThere(t *testing.T) {
	t.Chdir(filepath.Dir(write(t, "workers: 3\n")))
	got, err := config.Load("", nil)
	if err != nil || got.WorkerLimit != 3 {
		t.Errorf("got %d workers and %v, want 3", got.WorkerLimit, err)
	}
}

func TestEveryVariableWinsOverItsKey(t *testing.T) {
	path := write(t, `
listen: 127.0.0.1:1
data: /file
token: file-0123456789-0123456789-0123456789
databaseUrl: postgres://file/db
redisUrl: redis://file
models:
  default: openai:file
  judge: openai:file
  reviewer: openai:file
  openai: {apiKey: file, baseUrl: http://file}
  anthropic: {apiKey: file, baseUrl: http://file}
apps: {allowPrivateNetworks: false, allowCommands: false}
publicUrl: http://file
trustedProxies: 10.0.0.1
mail: {smtpUrl: "smtp://file", from: file@example.com}
workers: 1
secretKey: file-0123456789-0123456789-0123456789
tracesEndpoint: http://file
`)
	environ := []string{
		"OPENBOT_LISTEN=[::1]:9", "OPENBOT_DATA=/env", "OPENBOT_TOKEN=" + someToken,
		"DATABASE_URL=postgres://env/db", "REDIS_URL=rediss://env",
		"OPENBOT_MODEL=openai:env", "OPENBOT_JUDGE_MODEL=anthropic:env", "OPENBOT_REVIEWER_MODEL=playbook",
		"OPENAI_API_KEY=env1", "OPENAI_BASE_URL=http://env1", "ANTHROPIC_API_KEY=env2", "ANTHROPIC_BASE_URL=http://env2",
		"OPENBOT_APPS_ALLOW_PRIVATE=true", "OPENBOT_APPS_ALLOW_COMMANDS=1", "OPENBOT_PUBLIC_URL=https://env.example/in", "OPENBOT_TRUSTED_PROXIES=10.0.0.0/8, ::1",
		"OPENBOT_SMTP_URL=smtps://env", "OPENBOT_MAIL_FROM=env@example.com", "OPENBOT_WORKERS=7",
		"OPENBOT_SECRET_KEY=" + someKey, "OTEL_EXPORTER_OTLP_ENDPOINT=http://env3:4318",
	}
	if len(environ) != len(config.Variables()) {
		t.Fatalf("this test sets %d variables of %d", len(environ), len(config.Variables()))
	}
	file, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if file.Listen != "127.0.0.1:1" || file.Models.Anthropic.APIKey.Reveal() != "file" || file.Workers() != 1 {
		t.Errorf("the file was not read: %+v", file)
	}
	got, err := config.Load(path, environ)
	if err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{
		{got.Listen, "[::1]:9"}, {got.Data, "/env"}, {got.Token.Reveal(), someToken},
		{got.DatabaseURL.Reveal(), "postgres://env/db"}, {got.RedisURL.Reveal(), "rediss://env"},
		{got.Models.Default, "openai:env"}, {got.Models.Judge, "anthropic:env"}, {got.Models.Reviewer, "playbook"},
		{got.Models.OpenAI.APIKey.Reveal(), "env1"}, {got.Models.OpenAI.BaseURL, "http://env1"},
		{got.Models.Anthropic.APIKey.Reveal(), "env2"}, {got.Models.Anthropic.BaseURL, "http://env2"},
		{got.SecretKey.Reveal(), someKey}, {got.TracesEndpoint, "http://env3:4318"},
		{got.PublicURL, "https://env.example/in"}, {strings.Join(got.Proxies(), "|"), "10.0.0.0/8|::1"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("got %q, want %q", pair[0], pair[1])
		}
	}
	if !got.Apps.AllowPrivateNetworks || !got.Apps.AllowCommands || got.Workers() != 7 {
		t.Errorf("got %+v and %d workers", got.Apps, got.Workers())
	}
}

func TestAnEmptyVariableCountsAsNotSet(t *testing.T) {
	got, err := config.Load(write(t, "workers: 5"), []string{"OPENBOT_WORKERS=", "OPENBOT_LISTEN="})
	if err != nil || got.WorkerLimit != 5 || got.Listen != config.Default().Listen {
		t.Errorf("got %+v and %v", got, err)
	}
}

func TestFaultsNameTheKeyAndTheReasonInOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		environ []string
		want    []string
	}{
		"unknown key":            {file: "listne: x", want: []string{`line 1: unknown key "listne"`}},
		"unknown key below":      {file: "apps:\n  allowAll: true", want: []string{`line 2: unknown key "apps.allowAll"`}},
		"another spelling":       {file: "database_url: x", want: []string{"did you mean databaseUrl?"}},
		"key twice":              {file: "workers: 1\nworkers: 2", want: []string{"line 2", "workers"}},
		"list for a value":       {file: "data: [a]", want: []string{"data (OPENBOT_DATA) must be one plain value"}},
		"value for a section":    {file: "models: playbook", want: []string{"models must hold keys of its own"}},
		"alias":                  {file: "data: &a x\nlisten: *a", want: []string{"listen (OPENBOT_LISTEN) must be one plain value"}},
		"broken YAML":            {file: "data: [", want: []string{"openbot.yaml is not valid YAML"}},
		"two documents":          {file: "data: a\n---\ndata: b", want: []string{"one YAML document"}},
		"no mapping":             {file: "- a", want: []string{"list of keys with values"}},
		"binary":                 {file: "data: !!binary aGk=", want: []string{"one plain value"}},
		"bad bool":               {file: "apps: {allowCommands: perhaps}", want: []string{`apps.allowCommands (OPENBOT_APPS_ALLOW_COMMANDS) must be true or false, not "perhaps"`}},
		"bad number":             {environ: []string{"OPENBOT_WORKERS=many"}, want: []string{`workers (OPENBOT_WORKERS) must be a whole number, not "many"`}},
		"too many":               {environ: []string{"OPENBOT_WORKERS=10001"}, want: []string{"1 to 10000"}},
		"negative":               {environ: []string{"OPENBOT_WORKERS=-1"}, want: []string{"1 to 10000"}},
		"unknown variable":       {environ: []string{"OPENBOT_LISTN=x"}, want: []string{`unknown variable "OPENBOT_LISTN"`}},
		"listen without port":    {environ: []string{"OPENBOT_LISTEN=localhost"}, want: []string{"host:port"}},
		"listen with bad port":   {environ: []string{"OPENBOT_LISTEN=localhost:http"}, want: []string{"port from 0 to 65535"}},
		"listen with large port": {environ: []string{"OPENBOT_LISTEN=:65536"}, want: []string{"port from 0 to 65535"}},
		"listen with bad host":   {environ: []string{"OPENBOT_LISTEN=a b:80"}, want: []string{"host name"}},
		"path with a quote":      {environ: []string{`OPENBOT_PUBLIC_URL=https://bots.example/a"b`}, want: []string{"publicUrl (OPENBOT_PUBLIC_URL) must have a path of letters"}},
		"path that goes up":      {environ: []string{"OPENBOT_PUBLIC_URL=https://bots.example/a/../b"}, want: []string{"publicUrl (OPENBOT_PUBLIC_URL) must have a path of letters"}},
		"no proxy":               {environ: []string{"OPENBOT_TRUSTED_PROXIES=10.0.0.1,front"}, want: []string{`trustedProxies (OPENBOT_TRUSTED_PROXIES) must be addresses or networks such as 10.0.0.0/8, separated by commas, not "front"`}},
		"short token":            {environ: []string{"OPENBOT_TOKEN=0123456789012345678901234567890"}, want: []string{"token (OPENBOT_TOKEN) must be 32 to 200"}},
		"long token":             {environ: []string{"OPENBOT_TOKEN=" + strings.Repeat("x", 201)}, want: []string{"32 to 200"}},
		"token with a space":     {environ: []string{"OPENBOT_TOKEN=" + strings.Repeat("x y", 20)}, want: []string{"visible"}},
		"token not ASCII":        {environ: []string{"OPENBOT_TOKEN=" + strings.Repeat("é", 40)}, want: []string{"visible"}},
		"short secret":           {environ: []string{"OPENBOT_SECRET_KEY=short"}, want: []string{"secretKey (OPENBOT_SECRET_KEY) must be at least 32"}},
		"other database":         {environ: []string{"DATABASE_URL=mysql://u:hunter2@h/d"}, want: []string{"databaseUrl (DATABASE_URL)", "postgres://"}},
		"database without URL":   {environ: []string{"DATABASE_URL=hunter2"}, want: []string{"postgres://"}},
		"other queue":            {environ: []string{"REDIS_URL=http://h"}, want: []string{"redisUrl (REDIS_URL)", "redis://"}},
		"unknown provider":       {environ: []string{"OPENBOT_MODEL=openia:gpt"}, want: []string{"models.default (OPENBOT_MODEL)", "openai:MODEL"}},
		"provider alone":         {environ: []string{"OPENBOT_JUDGE_MODEL=openai:"}, want: []string{"models.judge (OPENBOT_JUDGE_MODEL)"}},
		"base address":           {environ: []string{"OPENAI_BASE_URL=api"}, want: []string{"models.openai.baseUrl (OPENAI_BASE_URL)", "https://"}},
		"base with password":     {environ: []string{"ANTHROPIC_BASE_URL=http://u:hunter2@h"}, want: []string{"without a name, password"}},
		"traces":                 {environ: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317"}, want: []string{"tracesEndpoint (OTEL_EXPORTER_OTLP_ENDPOINT)"}},
		"key with a line break":  {environ: []string{"OPENAI_API_KEY=hunter2\nX: y"}, want: []string{"models.openai.apiKey (OPENAI_API_KEY)"}},
		"all at once": {file: "nope: 1\nworkers: x", environ: []string{"OPENBOT_LISTEN=x", "OPENBOT_NOPE=1"},
			want: []string{"nope", "workers", "listen", "OPENBOT_NOPE"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.Load(write(t, c.file), c.environ)
			if err == nil {
				t.Fatal("no fault was found")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q is more than one line", err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q shows a secret", err)
			}
		})
	}
}

func TestABrokenFileShowsNoSecret(t *testing.T) {
	for _, content := range []string{
		"token: *hunter2", "token: 'hunter2", "token: \"hunter2\\q\"", "token: !hunter2!x y", "token: [hunter2",
		"token: {hunter2: 1}", "token: |\n hunter2\n\tx", "%hunter2",
	} {
		_, err := config.Load(write(t, content), nil)
		if err == nil {
			t.Errorf("%q was accepted", content)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q for %q shows a secret", err, content)
		}
	}
}

func TestWhatIsNotOursInTheEnvironmentIsLeftAlone(t *testing.T) {
	_, err := config.Load(write(t, ""), []string{
		"PATH=/bin", "OPENBOT_TEST_DATABASE_URL=x", "OPENBOT_TEST_REDIS_URL=x", "OPENBOT_NPM_DIR=x",
		// What Kubernetes sets for Services named openbot and openbot-api.
		"OPENBOT_SERVICE_HOST=10.0.0.1", "OPENBOT_SERVICE_PORT=80", "OPENBOT_SERVICE_PORT_HTTP=80", "OPENBOT_PORT=tcp://10.0.0.1:80",
		"OPENBOT_PORT_80_TCP=tcp://10.0.0.1:80", "OPENBOT_PORT_80_TCP_PROTO=tcp", "OPENBOT_PORT_80_TCP_PORT=80", "OPENBOT_PORT_80_TCP_ADDR=10.0.0.1",
		"OPENBOT_API_SERVICE_HOST=10.0.0.1", "OPENBOT_API_PORT_80_TCP_ADDR=10.0.0.1",
	})
	if err != nil {
		t.Error(err)
	}
}

func TestANamedFileMustBeReadable(t *testing.T) {
	folder := t.TempDir()
	large := filepath.Join(folder, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# x\n", 1<<19)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(folder, "absent.yaml"), folder, large} {
		if _, err := config.Load(path, nil); err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: got %v, want a fault that names it", path, err)
		}
	}
}

func TestTheEdgesThatAreAllowed(t *testing.T) {
	for _, environ := range [][]string{
		{"OPENBOT_TOKEN=" + strings.Repeat("!", 32)}, {"OPENBOT_TOKEN=" + strings.Repeat("~", 200)},
		{"OPENBOT_SECRET_KEY=" + strings.Repeat("ä", 32)}, {"OPENBOT_WORKERS=10000"}, {"OPENBOT_LISTEN=:0"},
		{"OPENBOT_LISTEN=0.0.0.0:80"}, {"OPENBOT_LISTEN=[fe80::1%eth0]:80"}, {"OPENBOT_LISTEN=bots.example.org:443"},
		{"DATABASE_URL=postgresql:///db?host=/run/postgresql"}, {"REDIS_URL=rediss-cluster://a:1,b:2,c:3"},
		{"REDIS_URL=redis-sentinel://:p@a:1,b:2/main/0"}, {"OPENBOT_MODEL=openai:org/model-1.5:latest"},
	} {
		if _, err := config.Load(write(t, "data:\n"), environ); err != nil {
			t.Errorf("%v: %v", environ, err)
		}
	}
}

func TestRoles(t *testing.T) {
	const database, redis, key = "DATABASE_URL=postgres://h/d", "REDIS_URL=redis://h", "OPENBOT_SECRET_KEY=" + someKey
	for name, c := range map[string]struct {
		roles   []string
		environ []string
		want    []string // empty: it is enough
	}{
		"serve needs nothing":               {[]string{"serve"}, nil, nil},
		"serve may use Redis alone":         {[]string{"serve"}, []string{redis}, nil},
		"single roles need both":            {[]string{"api", "worker", "scheduler"}, nil, []string{"databaseUrl (DATABASE_URL)", "redisUrl (REDIS_URL)"}},
		"single roles with all":             {[]string{"api", "worker", "scheduler"}, []string{database, redis, key}, nil},
		"a shared database needs a key":     {[]string{"serve", "api", "worker", "scheduler"}, []string{database, redis}, []string{"secretKey (OPENBOT_SECRET_KEY)"}},
		"a model needs its provider":        {[]string{"serve", "worker"}, []string{database, redis, key, "OPENBOT_MODEL=openai:m", "OPENBOT_JUDGE_MODEL=anthropic:m"}, []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENBOT_JUDGE_MODEL"}},
		"an address of one's own is enough": {[]string{"serve", "worker"}, []string{database, redis, key, "OPENBOT_MODEL=openai:m", "OPENAI_BASE_URL=http://h"}, nil},
		"api and scheduler call no model":   {[]string{"api", "scheduler"}, []string{database, redis, key, "OPENBOT_MODEL=openai:m"}, nil},
		"an unknown role":                   {[]string{"cook"}, nil, []string{"unknown role"}},
		"the file's faults stand there too": {[]string{"api"}, []string{"OPENBOT_WORKERS=x"}, []string{"OPENBOT_WORKERS", "DATABASE_URL"}},
	} {
		for _, role := range c.roles {
			t.Run(name+"/"+role, func(t *testing.T) {
				_, err := config.LoadRole(write(t, ""), c.environ, role)
				if len(c.want) == 0 && err != nil {
					t.Fatal(err)
				}
				for _, want := range c.want {
					if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
						t.Errorf("got %v, want one line with %q", err, want)
					}
				}
			})
		}
	}
}

func TestWorkersGoByTheCores(t *testing.T) {
	if got := config.Default().Workers(); got < 4 || got%4 != 0 {
		t.Errorf("got %d, want at least 4 and 8 a core", got)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("token: "+someToken, "OPENBOT_WORKERS=2")
	f.Add("models: {openai: {apiKey: x}}", "DATABASE_URL=postgres://u:p@h/d")
	f.Add("a: &a [*a]\n<<: *a", "OPENBOT_=\x00")
	f.Add("? [a]\n: b", "REDIS_URL=redis://:s3cretpass@h?password=x")
	f.Fuzz(func(t *testing.T, file, variable string) {
		c, err := config.Load(write(t, file), []string{variable})
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("%q is more than one line", err)
			}
			return
		}
		if err := c.Validate(); err != nil {
			t.Fatalf("Load let through %v", err)
		}
		printed := c.Redacted()
		for _, secret := range []config.Secret{c.Token, c.SecretKey} {
			if !secret.IsZero() && strings.Contains(printed, secret.Reveal()) {
				t.Fatalf("%q shows a secret", printed)
			}
		}
	})
}
