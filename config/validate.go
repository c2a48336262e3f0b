package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The roles that a process can have.
const (
	// RoleServe is API, worker and scheduler in one process.
	RoleServe = "serve"
	// RoleAPI answers HTTP.
	RoleAPI = "api"
	// RoleWorker runs tasks.
	RoleWorker = "worker"
	// RoleScheduler finds what is due.
	RoleScheduler = "scheduler"
)

const (
	minSecretKeyCharacters = 32
	minTokenCharacters     = 32
	maxTokenCharacters     = 200
	maxWorkers             = 10_000
)

// Validate reports every value that cannot work, whatever the role, in one line.
func (c Config) Validate() error {
	var found faults
	check := func(key string, fault error) {
		if fault != nil {
			found.add("%s %v", nameOf(key), fault)
		}
	}
	check("listen", checkListen(c.Listen))
	check("publicUrl", checkPublicURL(c.PublicURL))
	check("trustedProxies", checkProxies(c.Proxies()))
	check("data", checkData(c.Data))
	check("token", checkToken(c.Token.Reveal()))
	check("databaseUrl", checkServiceURL(c.DatabaseURL.Reveal(), "postgres", "postgresql"))
	check("redisUrl", checkServiceURL(c.RedisURL.Reveal(), redisSchemes...))
	check("models.default", checkModel(c.Models.Default))
	check("models.judge", checkModel(c.Models.Judge))
	check("models.reviewer", checkModel(c.Models.Reviewer))
	check("models.openai.apiKey", checkHeader(c.Models.OpenAI.APIKey.Reveal()))
	check("models.openai.baseUrl", checkWebURL(c.Models.OpenAI.BaseURL))
	check("models.anthropic.apiKey", checkHeader(c.Models.Anthropic.APIKey.Reveal()))
	check("models.anthropic.baseUrl", checkWebURL(c.Models.Anthropic.BaseURL))
	c.checkMail(&found)
	check("workers", checkWorkers(c.WorkerLimit))
	check("secretKey", checkSecretKey(c.SecretKey.Reveal()))
	check("tracesEndpoint", checkWebURL(c.TracesEndpoint))
	return found.err()
}

// ValidateRole reports, in one line, what else a process with this role needs.
// serve runs on nothing; the single roles share their work through PostgreSQL and
// Redis. Keys at rest must be the same in every process, so a database that others
// can reach needs a key that is set. Only what calls models needs their keys.
func (c Config) ValidateRole(role string) error {
	var found faults
	switch role {
	case RoleServe:
	case RoleAPI, RoleWorker, RoleScheduler:
		if c.DatabaseURL.IsZero() {
			found.add("%s is required by openbot %s; openbot serve runs without it", nameOf("databaseUrl"), role)
		}
		if c.RedisURL.IsZero() {
			found.add("%s is required by openbot %s; openbot serve runs without it", nameOf("redisUrl"), role)
		}
	default:
		return fmt.Errorf("unknown role %s; the roles are serve, api, worker and scheduler", quote(role))
	}
	if !c.DatabaseURL.IsZero() && c.SecretKey.IsZero() {
		found.add("%s is required with DATABASE_URL: set the same secret of at least %d characters for every process",
			nameOf("secretKey"), minSecretKeyCharacters)
	}
	if role == RoleServe || role == RoleWorker {
		found = append(found, c.missingProviders()...)
	}
	return found.err()
}

// missingProviders names models that no call could reach. A server of one's own
// often takes no key, so an address alone is enough.
func (c Config) missingProviders() (found faults) {
	providers := map[string]Provider{"openai": c.Models.OpenAI, "anthropic": c.Models.Anthropic}
	models := []struct{ key, model string }{
		{"models.default", c.Models.Default}, {"models.judge", c.Models.Judge}, {"models.reviewer", c.Models.Reviewer},
	}
	for _, m := range models {
		name, _, _ := strings.Cut(m.model, ":")
		provider, ok := providers[name]
		if ok && provider.APIKey.IsZero() && provider.BaseURL == "" {
			upper := strings.ToUpper(name)
			found.add("%s is %s: set %s_API_KEY, or %s_BASE_URL for a server without a key",
				nameOf(m.key), quote(m.model), upper, upper)
		}
	}
	return found
}

func nameOf(key string) string {
	s, _ := settingOf(key)
	return s.name()
}

func checkListen(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("must be host:port, such as 127.0.0.1:8080, not %s", quote(address))
	}
	if number, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(number, 10) != port {
		return fmt.Errorf("must end in a port from 0 to 65535, not %s", quote(port))
	}
	if host == "" || hostName.MatchString(host) {
		return nil
	}
	if _, err := netip.ParseAddr(host); err != nil {
		return fmt.Errorf("must start with an address or a host name, not %s", quote(host))
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

func checkData(folder string) error {
	if strings.TrimSpace(folder) == "" || strings.ContainsRune(folder, 0) {
		return errors.New("must name a folder")
	}
	return nil
}

func checkToken(token string) error {
	if token == "" {
		return nil
	}
	if len(token) < minTokenCharacters || len(token) > maxTokenCharacters || !isVisible(token) {
		return fmt.Errorf("must be %d to %d visible ASCII characters without spaces", minTokenCharacters, maxTokenCharacters)
	}
	return nil
}

func checkSecretKey(key string) error {
	if key != "" && len([]rune(key)) < minSecretKeyCharacters {
		return fmt.Errorf("must be at least %d characters", minSecretKeyCharacters)
	}
	return nil
}

func checkHeader(key string) error {
	if !isVisible(key) {
		return errors.New("must be visible ASCII characters without spaces")
	}
	return nil
}

// isVisible reports whether a text is of ASCII characters that print and are no
// space; the empty text is.
func isVisible(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

func checkWorkers(workers int) error {
	if workers < 0 || workers > maxWorkers {
		return fmt.Errorf("must be 1 to %d, or 0 to go by the cores", maxWorkers)
	}
	return nil
}

var modelName = regexp.MustCompile(`^(playbook|(openai|anthropic):[\x21-\x7e]{1,200})$`)

func checkModel(model string) error {
	if !modelName.MatchString(model) {
		return fmt.Errorf("must be playbook, openai:MODEL or anthropic:MODEL, not %s", quote(model))
	}
	return nil
}

// checkWebURL refuses a password in the address: addresses are printed and logged.
func checkWebURL(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return errors.New("must be an address that starts with http:// or https://")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("must be an address without a name, password, query or fragment")
	}
	return nil
}

// The s stands for TLS; the last four take lists of hosts.
var redisSchemes = []string{"redis", "rediss", "redis-cluster", "rediss-cluster", "redis-sentinel", "rediss-sentinel"}

// checkServiceURL looks at the outer form only: lists of hosts are no URL of the
// standard library, and the driver that opens it knows the rest.
func checkServiceURL(address string, schemes ...string) error {
	if address == "" {
		return nil
	}
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || rest == "" || !slices.Contains(schemes, scheme) || !isVisible(address) {
		return fmt.Errorf("must be an address that starts with %s:// and has no spaces", strings.Join(schemes, "://, "))
	}
	return nil
}
