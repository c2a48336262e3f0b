package config

import (
	"fmt"
	"strconv"
	"strings"
)

// setting ties one key of the file to one variable and one field.
type setting struct {
	key      string
	variable string
	field    func(*Config) any // *string, *bool, *int or *Secret
}

// settings is the one list of what can be set. Reading, printing, faults and the
// example all follow it.
var settings = []setting{
	{"listen", "OPENBOT_LISTEN", func(c *Config) any { return &c.Listen }},
	{"publicUrl", "OPENBOT_PUBLIC_URL", func(c *Config) any { return &c.PublicURL }},
	{"trustedProxies", "OPENBOT_TRUSTED_PROXIES", func(c *Config) any { return &c.TrustedProxies }},
	{"data", "OPENBOT_DATA", func(c *Config) any { return &c.Data }},
	{"token", "OPENBOT_TOKEN", func(c *Config) any { return &c.Token }},
	{"databaseUrl", "DATABASE_URL", func(c *Config) any { return &c.DatabaseURL }},
	{"redisUrl", "REDIS_URL", func(c *Config) any { return &c.RedisURL }},
	{"models.default", "OPENBOT_MODEL", func(c *Config) any { return &c.Models.Default }},
	{"models.judge", "OPENBOT_JUDGE_MODEL", func(c *Config) any { return &c.Models.Judge }},
	{"models.reviewer", "OPENBOT_REVIEWER_MODEL", func(c *Config) any { return &c.Models.Reviewer }},
	{"models.openai.apiKey", "OPENAI_API_KEY", func(c *Config) any { return &c.Models.OpenAI.APIKey }},
	{"models.openai.baseUrl", "OPENAI_BASE_URL", func(c *Config) any { return &c.Models.OpenAI.BaseURL }},
	{"models.anthropic.apiKey", "ANTHROPIC_API_KEY", func(c *Config) any { return &c.Models.Anthropic.APIKey }},
	{"models.anthropic.baseUrl", "ANTHROPIC_BASE_URL", func(c *Config) any { return &c.Models.Anthropic.BaseURL }},
	{"apps.allowPrivateNetworks", "OPENBOT_APPS_ALLOW_PRIVATE", func(c *Config) any { return &c.Apps.AllowPrivateNetworks }},
	{"apps.allowCommands", "OPENBOT_APPS_ALLOW_COMMANDS", func(c *Config) any { return &c.Apps.AllowCommands }},
	{"mail.smtpUrl", "OPENBOT_SMTP_URL", func(c *Config) any { return &c.Mail.ServerURL }},
	{"mail.from", "OPENBOT_MAIL_FROM", func(c *Config) any { return &c.Mail.From }},
	{"workers", "OPENBOT_WORKERS", func(c *Config) any { return &c.WorkerLimit }},
	{"secretKey", "OPENBOT_SECRET_KEY", func(c *Config) any { return &c.SecretKey }},
	{"tracesEndpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", func(c *Config) any { return &c.TracesEndpoint }},
}

// Variables lists the names of all environment variables that are read, in the
// order of the file.
func Variables() []string {
	names := make([]string, len(settings))
	for i, s := range settings {
		names[i] = s.variable
	}
	return names
}

func settingOf(key string) (setting, bool) {
	for _, s := range settings {
		if s.key == key {
			return s, true
		}
	}
	return setting{}, false
}

// isSection reports whether keys stand below this one.
func isSection(key string) bool {
	for _, s := range settings {
		if strings.HasPrefix(s.key, key+".") {
			return true
		}
	}
	return false
}

// name is how faults call a setting: people look for it in the file or in the
// environment.
func (s setting) name() string { return s.key + " (" + s.variable + ")" }

// set puts a text into the field. Its error never holds the text of a secret.
func (s setting) set(c *Config, text string) error {
	switch field := s.field(c).(type) {
	case *string:
		*field = text
	case *Secret:
		*field = NewSecret(text)
	case *bool:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%s must be true or false, not %s", s.name(), quote(text))
		}
		*field = value
	case *int:
		value, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("%s must be a whole number, not %s", s.name(), quote(text))
		}
		*field = value
	}
	return nil
}

// show gives the value as it may be printed.
func (s setting) show(c Config) any {
	switch field := s.field(&c).(type) {
	case *string:
		return *field
	case *bool:
		return *field
	case *int:
		return *field
	case *Secret:
		if strings.HasSuffix(s.key, "Url") {
			return maskURL(field.Reveal())
		}
		return field.String()
	}
	return nil
}

// quote makes a value of the user fit into one line of an error.
func quote(text string) string {
	const longest = 60
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return strconv.Quote(text)
}
