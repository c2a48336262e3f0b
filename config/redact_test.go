package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"openbot/config"
)

func TestASecretIsNeverPrinted(t *testing.T) {
	secret := config.NewSecret("hunter2")
	type holder struct {
		Open   config.Secret
		hidden config.Secret
		whole  config.Config
	}
	values := []any{secret, &secret, []config.Secret{secret}, map[string]config.Secret{"a": secret},
		holder{Open: secret, hidden: secret, whole: config.Config{Token: secret}}}
	hex := fmt.Sprintf("%x", "hunter2")
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T", "%U", "%10s", "%!"} {
			got := fmt.Sprintf(verb, value)
			if strings.Contains(got, "hunter2") || strings.Contains(strings.ToLower(got), hex) {
				t.Errorf("%s of %T gives %q", verb, value, got)
			}
		}
		for name, encode := range map[string]func(any) ([]byte, error){"JSON": json.Marshal, "YAML": yaml.Marshal} {
			got, err := encode(value)
			if err != nil || bytes.Contains(got, []byte("hunter2")) {
				t.Errorf("%s of %T gives %q, %v", name, value, got, err)
			}
		}
		var log bytes.Buffer
		for _, handler := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
			slog.New(handler).Info("x", "value", value)
		}
		if strings.Contains(log.String(), "hunter2") {
			t.Errorf("slog of %T gives %q", value, log.String())
		}
	}
	if got := fmt.Sprintf("%v %s %q", secret, secret, secret); got != "*** *** ***" {
		t.Errorf("got %q", got)
	}
	if secret.Reveal() != "hunter2" || !secret.Equal(config.NewSecret("hunter2")) || secret.Equal(config.NewSecret("hunter")) {
		t.Error("the secret itself was lost")
	}
}

func TestRedactedShowsEverythingButSecrets(t *testing.T) {
	c := config.Default()
	c.Listen = ":80"
	for _, s := range []*config.Secret{&c.Token, &c.SecretKey, &c.Models.OpenAI.APIKey, &c.Models.Anthropic.APIKey} {
		*s = config.NewSecret("hunter2")
	}
	for address, want := range map[string]string{
		"postgres://bot:hunter2@db:5432/openbot?sslmode=require":          "postgres://bot:***@db:5432/openbot?sslmode=require",
		"postgres://bot:hun@hunter2/x?@db/openbot":                        "postgres://bot:***@db/openbot",
		"postgres://db/openbot?user=bot&password=hunter2&sslmode=disable": "postgres://db/openbot?user=bot&password=***&sslmode=disable",
		"rediss-cluster://:hunter2@a:1,b:2,c:3":                           "rediss-cluster://:***@a:1,b:2,c:3",
		"redis://a:1,:hunter2@b:2":                                        "redis://a:***@b:2",
		"redis-sentinel://a:1/main?sentinel_password=hunter2":             "redis-sentinel://a:1/main?sentinel_password=***",
		"redis://localhost:6379":                                          "redis://localhost:6379",
	} {
		c.DatabaseURL, c.RedisURL = config.NewSecret(address), config.NewSecret(address)
		printed := c.Redacted()
		if strings.Contains(printed, "hunter2") {
			t.Errorf("%s shows a secret", printed)
		}
		var got struct {
			Listen, Token string
			DatabaseURL   string `yaml:"databaseUrl"`
			RedisURL      string `yaml:"redisUrl"`
		}
		if err := yaml.Unmarshal([]byte(printed), &got); err != nil {
			t.Fatal(err)
		}
		if got.Listen != ":80" || got.Token != "***" || got.DatabaseURL != want || got.RedisURL != want {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

func TestTheExampleHoldsEveryKeyWithItsDefault(t *testing.T) {
	got, err := config.Load("example.yaml", nil)
	if err != nil || got != config.Default() {
		t.Errorf("the example gives %+v and %v, want the defaults", got, err)
	}
	content, err := os.ReadFile("example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var example, redacted map[string]any
	if err := yaml.Unmarshal(content, &example); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(config.Default().Redacted()), &redacted); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(example, redacted) {
		t.Errorf("the example holds %v, the settings are %v", example, redacted)
	}
	// The struct is the third list of keys: its tags must agree with the other two.
	encoded, err := yaml.Marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(encoded, &fields); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(example, fields) {
		t.Errorf("the example holds %v, the struct %v", example, fields)
	}
	for _, variable := range config.Variables() {
		if !bytes.Contains(content, []byte(variable)) {
			t.Errorf("the example does not name %s", variable)
		}
	}
}
